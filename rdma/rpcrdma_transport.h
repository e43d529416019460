// SPDX-License-Identifier: GPL-2.0-or-later
// RPC-over-RDMA version 1 (RFC 8166, its NFS binding RFC 8267) over one connection of a Fabric.
//
// READ data come by a Write chunk, WRITE data go by a Read chunk at their XDR position, both
// inline where they fit; replies that may exceed the inline size get a Reply chunk, calls that do
// a position-zero Read chunk. Credits begin with one call and follow the grant in each reply.
//
// A call is never sent twice on one connection: when its time is up the connection is closed,
// drained, and everything outstanding is sent again on the next one, in order. A call ends, and
// its buffer is free, only after the reply and the completion of its Send; with key_per_call also
// after its keys are dead. Without key_per_call the keys of add_memory()'s regions are long-lived:
// a call that is given up then costs the connection, so that the server can't write any more.
//
// rpcrdma_transport.cc: calls, timers, ends; rpcrdma_connect.cc: life of the connection;
// rpcrdma_send.cc, rpcrdma_receive.cc: data path.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "call_table.h"
#include "cm_private_data.h"
#include "fabric.h"
#include "region_table.h"
#include "rpcrdma_header.h"
#include "setup_gate.h"
#include "tcp_socket.h"
#include "transport.h"

namespace nfsrdma {

/// RFC 8166 has no bound on credits; ours is on the memory of the receive buffers.
constexpr uint32_t kCreditsMax = 1024;
constexpr uint32_t kOfferedInlineMax = 65536;

struct RpcRdmaOptions {
  uint32_t inline_size = 4096;  ///< offered for both directions, 1024 to kOfferedInlineMax bytes
  uint32_t credits = 0;         ///< asked for, and receives posted; 0: as many as there are slots
  bool key_per_call = false;    ///< chunks get keys of their own, dead before the call ends
};

class RpcRdmaTransport final : public Transport {
 public:
  /// Connects over `fabric`, waiting at most config.connect_timeout_ms.
  static Result<std::unique_ptr<RpcRdmaTransport>> open(const TransportConfig& config,
                                                        const RpcRdmaOptions& options,
                                                        std::unique_ptr<Fabric> fabric);
  ~RpcRdmaTransport() override;

  void set_sink(CallSink* sink) override { sink_ = sink; }
  Result<void> add_memory(Bytes memory) override;

  uint32_t acquire() override { return calls_.acquire(); }
  void release(uint32_t slot) override { calls_.release(slot); }
  Bytes head(uint32_t slot) override { return {calls_.head(slot), calls_.head_max()}; }
  uint32_t xid(uint32_t slot) const override { return calls_.xid(slot); }
  void submit(uint32_t slot, const Call& call) override;

  void flush() override;
  uint32_t progress() override;

  uint32_t outstanding() const override { return outstanding_; }
  uint32_t unsent() const override { return queue_.size(); }
  bool prepare_wait(pollfd& wait) override;
  bool sleep_receiving(uint64_t now, uint64_t until_ns) override;
  uint64_t next_timer_ns() const override;
  void abandon(const Error& error) override;

  const TransportCounters& counters() const override;
  TransportInfo info() const override;

 private:
  enum class Link : uint8_t { kUp, kConnecting, kDown };

  // A call has at most a chunk for its reply and three segments of a position-zero Read chunk.
  static constexpr uint32_t kKeysPerCall = 4;
  static constexpr uint32_t kNone = UINT32_MAX;

  // Why a call ends with an error although its reply came.
  enum class Verdict : uint8_t { kGood, kErrVers, kErrChunk, kTooMuchData, kEndsEarly };

  // What RDMA adds to a call slot. Valid from submit() to the call's end.
  struct RdmaCall {
    RegionId bulk_region = kNoRegion;
    uint32_t reply_buffer = kNone;  // of the pool, offered as Reply chunk
    uint32_t reply_offered = 0;     // bytes of the Reply chunk
    uint32_t write_offered = 0;     // bytes of the Write chunk
    uint32_t keys_dying = 0;        // unbound, kUnbound not seen
    uint32_t key_count = 0;         // bound for this call, and alive
    std::array<RemoteKey, kKeysPerCall> keys{};
    bool send_done = false;  // the memory of the Send is ours again
    bool replied = false;
    // Of the reply:
    Verdict verdict = Verdict::kGood;
    uint32_t detail_a = 0;  // numbers for the verdict's text
    uint32_t detail_b = 0;
    uint32_t receive_buffer = kNone;  // held until the call ends
    ConstBytes head;                  // lies there or in the reply buffer
    uint32_t bulk_length = 0;
    uint64_t received_ns = 0;
  };

  // How one call goes out; made and used up by send_call().
  struct Marshalled;

  RpcRdmaTransport(const TransportConfig& config, const RpcRdmaOptions& options,
                   std::unique_ptr<Fabric> fabric);

  // rpcrdma_connect.cc
  Result<void> prepare();
  Result<void> open_link(uint64_t deadline);
  void try_connect(uint64_t now);
  void link_up();
  void lose_link(Error why);

  // rpcrdma_transport.cc
  void run_timers(uint64_t now);
  void time_out(uint32_t slot, uint64_t now);
  void end_call(uint32_t slot, const Error& error);
  void end_unsendable();
  void forget_reply_buffer(RdmaCall& rdma);

  // rpcrdma_send.cc
  enum class Sending : uint8_t { kPosted, kLater, kLinkLost };
  Sending send_call(uint32_t slot);
  bool offer_for_reply(uint32_t slot, Marshalled& out);
  void choose_call_form(uint32_t slot, Marshalled& out) const;
  Result<void> offer_for_call(uint32_t slot, Marshalled& out);
  Result<RdmaSegment> name_memory(RdmaCall& rdma, RegionId region, ConstBytes memory,
                                  Access access);
  bool post_call(uint32_t slot, Marshalled& out);
  void count_stalls();
  void calls_sent();

  // rpcrdma_receive.cc
  void receive();
  void take_completion(const Completion& completion);
  void take_message(const Completion& completion);
  bool take_invalidation(uint32_t slot, RemoteKey key);
  const char* take_reply(uint32_t slot, const RdmaHeader& header);
  const char* take_lists(RdmaCall& rdma, const RdmaHeader& header, uint32_t* placed,
                         ConstBytes* rpc);
  void take_bulk(uint32_t slot, ConstBytes rpc, uint32_t placed);
  void retire_keys(uint32_t slot);
  void finish_if_done(uint32_t slot);
  void finish(uint32_t slot);
  Error verdict_error(const RdmaCall& rdma) const;
  void broken(uint32_t slot, const std::string& what);

  TransportConfig config_;
  RpcRdmaOptions options_;
  SocketAddress server_;
  SocketAddress local_;  // length 0: the fabric's choice
  Link link_ = Link::kDown;
  uint64_t link_epoch_ = 0;  // moves on whenever a connection ends
  CallSink* sink_ = nullptr;
  mutable TransportCounters counters_;

  CallTable calls_;
  std::vector<RdmaCall> rdma_;
  SlotQueue queue_;                         // submitted, not sent, in order
  std::vector<uint32_t> unsendable_;        // their memory is in no region; kAcquired, not queued
  std::vector<uint32_t> posted_;            // scratch of flush()
  std::vector<uint32_t> resend_;            // scratch of lose_link()
  std::array<Completion, 64> completions_;  // scratch of receive(): costs more to make than to use
  uint32_t outstanding_ = 0;
  uint32_t in_flight_ = 0;  // sent and not ended: each holds a receive buffer, or will
  uint64_t order_ = 0;
  uint64_t stalls_counted_to_ = 0;  // in order_'s count
  uint32_t ended_ = 0;              // calls ended during one progress()

  uint32_t credits_asked_;
  uint32_t credits_ = 1;          // in force on this connection
  uint32_t credits_granted_ = 0;  // as the last reply said it
  uint32_t send_inline_ = kInlineSizeDefault;
  uint32_t receive_inline_ = kInlineSizeDefault;
  uint32_t sends_unsignalled_ = 0;
  bool ring_needed_ = false;
  CmPrivateData peer_;

  // Memory that the fabric knows stands before the fabric, so that it outlives it.
  struct PageDelete {
    void operator()(std::byte* memory) const;
  };
  using Pages = std::unique_ptr<std::byte[], PageDelete>;
  static Pages make_pages(size_t bytes);
  Pages receive_memory_;
  Pages reply_memory_;
  size_t reply_stride_ = 0;
  std::vector<uint32_t> reply_buffers_;  // free ones
  RegionId heads_region_ = kNoRegion;
  RegionId reply_region_ = kNoRegion;
  RegionTable regions_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Connection> connection_;

  SetupLease lease_;
  std::string lease_name_;
  uint32_t connect_failures_ = 0;
  uint64_t connect_at_ns_ = 0;  // kDown: when to try
  uint64_t last_received_ns_ = 0;
  uint64_t scan_at_ns_ = 0;
  uint64_t scan_interval_ns_;
  Error last_error_;
};

}  // namespace nfsrdma
