// SPDX-License-Identifier: GPL-2.0-or-later
// RPC over TCP (RFC 5531 section 11): one connection.
//
// A call is sent again with its xid after a reconnect, which comes from the same local port, so
// that the server's duplicate request cache recognises it. A record half sent or half received
// is given up only by closing the connection.
//
// tcp_transport.cc: life of the connection and timers; tcp_send.cc, tcp_receive.cc: data path.
#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "call_table.h"
#include "tcp_socket.h"
#include "transport.h"

namespace nfsrdma {

class TcpTransport final : public Transport {
 public:
  /// Connects, waiting at most config.connect_timeout_ms.
  static Result<std::unique_ptr<TcpTransport>> open(const TransportConfig& config);
  ~TcpTransport() override;

  void set_sink(CallSink* sink) override { sink_ = sink; }
  Result<void> add_memory(Bytes) override { return {}; }

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

  const TransportCounters& counters() const override { return counters_; }
  TransportInfo info() const override;

 private:
  enum class Link : uint8_t { kUp, kConnecting, kDown };

  // What the receiver does with the next bytes of the stream.
  enum class Receiving : uint8_t {
    kRecords,   // into the receive buffer, to be cut into records
    kBulk,      // straight into the bulk buffer of receive_.slot
    kSkip,      // to nowhere: the rest of a record that nobody waits for
    kAssembly,  // into the assembly buffer: a record in several fragments
  };

  struct ReceiveState {
    Receiving mode = Receiving::kRecords;
    uint32_t slot = kNoSlot;   // kBulk: whose buffer; kNoSlot once the call was given up
    uint32_t bulk_length = 0;  // kBulk: of the whole bulk
    uint32_t bulk_done = 0;
    uint32_t head_length = 0;  // kBulk: bytes of head kept in saved_head_
    uint64_t skip_after = 0;   // kBulk: pad and whatever else the record holds behind the bulk
    uint64_t left = 0;         // kSkip, kAssembly: bytes of this fragment still to come
    bool last_fragment = true;
    uint32_t assembled = 0;  // kAssembly
    uint32_t empty_fragments = 0;
  };

  TcpTransport(const TransportConfig& config, Socket socket, const SocketAddress& server);

  // tcp_transport.cc
  void lose_link(const std::string& why);
  void try_connect(uint64_t now);
  void link_up();
  void run_timers(uint64_t now);
  void time_out(uint32_t slot, uint64_t now);
  void end_call(uint32_t slot, const Error& error);
  void finish(uint32_t slot);

  // tcp_send.cc
  struct Gather;
  enum class Sending : uint8_t { kAll, kLater, kBroken };
  Sending send_gathered(Gather& gather);
  bool send_joined();
  bool send_split();
  void sent_bytes(size_t bytes);
  uint32_t record_length(uint32_t slot) const;

  // tcp_receive.cc
  void receive();
  bool take_records();
  bool take_whole(ConstBytes record);
  bool start_bulk(ConstBytes partial, uint64_t record_left);
  size_t receive_more(int flags);
  bool finish_bulk_if_done();
  bool take_assembly_bytes();
  void deliver(uint32_t slot, ConstBytes head, uint32_t bulk_length);
  void refuse_reply(uint32_t slot, std::string why);

  TransportConfig config_;
  SocketAddress server_;
  Socket socket_;
  Link link_ = Link::kUp;
  CallSink* sink_ = nullptr;
  TransportCounters counters_;

  CallTable calls_;
  SlotQueue queue_;        // submitted, in order; the first may be half sent
  size_t front_sent_ = 0;  // bytes of the first one's record that have left
  bool send_blocked_ = false;
  uint32_t outstanding_ = 0;
  uint32_t on_wire_ = 0;
  uint64_t order_ = 0;
  std::vector<uint32_t> resend_;  // scratch for lose_link()

  std::unique_ptr<std::byte[]> buffer_;
  size_t buffer_size_;
  size_t begin_ = 0;
  size_t end_ = 0;
  ReceiveState receive_;
  bool drained_ = false;    // the last receive call took all that there was
  bool received_ = false;   // sleep_receiving() brought bytes that nobody has looked at
  bool may_sleep_ = false;  // receive calls on socket_ sleep
  std::unique_ptr<std::byte[]> saved_head_;
  std::unique_ptr<std::byte[]> assembly_;
  size_t record_max_;
  uint64_t received_ns_ = 0;
  uint32_t ended_ = 0;  // calls ended during one progress()

  uint16_t local_port_ = 0;
  Socket held_port_;  // keeps it while there is no connection
  uint32_t connect_failures_ = 0;
  uint32_t port_refusals_ = 0;  // in a row: local_port_ could not be bound or connected from
  uint64_t connect_at_ns_ = 0;  // kDown: when to try; kConnecting: when to give up
  uint64_t last_received_ns_ = 0;
  uint64_t scan_at_ns_ = 0;
  uint64_t scan_interval_ns_;
  std::string last_error_;
};

}  // namespace nfsrdma
