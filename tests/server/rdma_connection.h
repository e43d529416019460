// SPDX-License-Identifier: GPL-2.0-or-later
// One RPC-over-RDMA connection (RFC 8166): calls in, with their Read chunks fetched by RDMA Read,
// into the protocol core; replies out, data by RDMA Write into the Write chunk, long replies into
// the Reply chunk.
//
// Threads: its worker's.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cm_private_data.h"
#include "fabric.h"
#include "rdma_staging.h"
#include "rpcrdma_header.h"
#include "service.h"

namespace nfsrdma::memd {

struct RdmaServerOptions {
  std::string listen = "127.0.0.1";
  uint16_t port = 0;
  bool verbs = false;  ///< listen on the RDMA device that has the address, else iWARP over TCP
  uint32_t threads = 1;
  uint32_t credits = 64;  ///< the grant in each reply; 0 is granted as it stands
  uint32_t inline_size = 4096;
  bool crc = true;        ///< iWARP: insist on the CRC; false: only where the client asks for it
  uint64_t delay_ns = 0;  ///< of replies to READ, WRITE, COMMIT
  uint64_t late_ns = 1'000'000'000;
};

/// What the connections of one thread share.
struct RdmaShared {
  const RdmaServerOptions& options;
  NfsService& service;
  FaultPlan& faults;
  Fabric& fabric;
  StagingPool staging;
  bool staging_freed = false;  ///< a buffer came back: calls that wait for one may go on
  ServiceCounters counters;
  std::unique_ptr<std::byte[]> reply_head;  ///< kReplyHeadMax, scratch
  ReplyMessage reply;                       ///< scratch
};

class RdmaConnection {
 public:
  /// `connection` is in state kRequested.
  RdmaConnection(std::unique_ptr<Connection> connection, RdmaShared& shared);
  ~RdmaConnection();

  /// Accepts the peer. An error: the connection is of no use.
  Result<void> accept();
  void progress(uint64_t now);
  /// Calls that waited for staging memory go on.
  void resume();
  [[nodiscard]] bool dead() const { return dead_; }
  [[nodiscard]] bool starved() const { return !starved_.empty(); }
  bool prepare_wait(pollfd& wait) { return connection_->prepare_wait(wait); }
  [[nodiscard]] uint64_t next_timer_ns() const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // A call from its receive buffer to the completion of its reply.
  struct Op {
    uint32_t receive = kNone;  // buffer that holds the call, until the reply is built
    RdmaHeader header;         // its views point into that buffer
    Staging in;                // sink of the Read chunk
    uint32_t reads_posted = 0;
    uint32_t reads_left = 0;
    uint32_t in_bytes = 0;

    Staging out;  // source of Writes
    struct Write {
      RemoteMemory sink;
      uint32_t offset;  // in `out`
      uint32_t length;
    };
    std::vector<Write> writes;
    uint32_t writes_posted = 0;
    uint32_t message_bytes = 0;  // in the op's send buffer
    uint32_t sends_left = 0;     // not posted
    uint32_t sends_out = 0;      // posted, not completed
    RemoteKey invalidate = 0;
    bool has_invalidate = false;
    uint64_t due_ns = 0;
  };

  // The lists of a reply while it is put together.
  struct ReplyLists {
    std::vector<std::vector<RdmaSegment>> writes;
    std::vector<RdmaSegment> reply;
  };

  // rdma_connection.cc
  void take_completion(const Completion& completion);
  void start_next();
  void start(uint32_t op);
  bool plan_reads(Op& op);
  void pump_reads();
  void end(uint32_t op);
  void die() { dead_ = true; }
  Bytes send_buffer(uint32_t op);
  void free_staging(Staging& staging);

  // rdma_reply.cc
  bool execute(uint32_t op);
  bool call_of(Op& op, CallMessage& call, ConstBytes& bulk);
  void error_reply(uint32_t op, RdmaErrcode errcode);
  void build_reply(uint32_t op, ReplyMessage& reply);
  bool place_bulk(Op& op, const ReplyMessage& reply, ReplyLists& lists, bool shorter);
  bool finish_message(uint32_t op, const ReplyMessage& reply, ReplyLists& lists, bool inline_bulk);
  void choose_invalidate(Op& op) const;
  void answer(uint32_t op, uint64_t delay_ns);
  void pump_replies();
  bool post_reply(uint32_t op);
  [[nodiscard]] uint32_t grant(const ReplyMessage& reply) const;

  std::unique_ptr<Connection> connection_;
  RdmaShared& shared_;
  CmPrivateData peer_;
  uint32_t send_inline_ = kInlineSizeDefault;
  std::string peer_host_;
  bool dead_ = false;

  uint32_t receives_;
  std::unique_ptr<std::byte[]> receive_memory_;
  std::unique_ptr<std::byte[]> send_memory_;
  RegionId receive_region_ = kNoRegion;
  RegionId send_region_ = kNoRegion;

  struct Waiting {
    uint32_t buffer;
    uint32_t bytes;
  };
  std::deque<Waiting> waiting_;  // messages that wait for an op
  std::vector<Op> ops_;
  std::vector<uint32_t> free_ops_;
  std::deque<uint32_t> reading_;  // with segments to be read
  std::deque<uint32_t> starved_;  // for staging memory
  std::vector<uint32_t> delayed_;
  std::deque<uint32_t> replying_;
  std::vector<std::byte> assembled_;  // scratch: a call with data in its middle
  uint32_t writes_unsignalled_ = 0;
};

}  // namespace nfsrdma::memd
