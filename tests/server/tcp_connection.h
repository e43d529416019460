// SPDX-License-Identifier: GPL-2.0-or-later
// One TCP connection: records in (RFC 5531 section 11), the protocol core, records out.
//
// One receive call takes in as many calls as have arrived; their replies leave in one send call.
// While more waits to be sent than SendQueue allows, nothing is read, so a client that does not
// read its replies stops being served and costs bounded memory.
//
// Threads: its loop's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "event_loop.h"
#include "faults.h"
#include "send_queue.h"

namespace nfsrdma::memd {

struct TcpOptions {
  std::string listen = "127.0.0.1";
  uint16_t port = 0;
  uint16_t portmap_port = 0;  ///< 0: none
  uint32_t threads = 1;
  uint64_t delay_ns = 0;  ///< of replies to READ, WRITE, COMMIT
  uint64_t late_ns = 1'000'000'000;
};

class TcpConnection final : public LoopClient {
 public:
  /// Owns `socket` (non-blocking) from here on.
  TcpConnection(int socket, std::string peer_host, uint16_t peer_port, EventLoop& loop,
                NfsService& service, FaultPlan& faults, const TcpOptions& options,
                std::atomic<uint32_t>& connections);
  ~TcpConnection() override;

  void start(uint64_t id);

  void ready(uint32_t events) override;
  void deliver(std::vector<std::byte> record, bool trickle) override;
  [[nodiscard]] bool dead() const override { return dead_; }

 private:
  void receive();
  void process();
  bool next_record(ConstBytes& message, size_t& consumed);
  bool answer(ConstBytes message);
  void answer_with_faults(ReplyMessage& reply);
  void send_record(std::vector<std::byte> record, bool trickle, uint64_t delay_ns);
  void release_held();
  void flush();
  void update_interest();
  void die();
  [[nodiscard]] bool may_answer() const;

  const int socket_;
  const std::string peer_host_;
  const uint16_t peer_port_;
  EventLoop& loop_;
  NfsService& service_;
  FaultPlan& faults_;
  const TcpOptions& options_;
  std::atomic<uint32_t>& connections_;
  uint64_t id_ = 0;

  const size_t in_length_;
  std::unique_ptr<std::byte[]> in_;
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  std::vector<std::byte> assembly_;  ///< fragments of a record that came in several
  SendQueue out_;
  ReplyMessage reply_;

  uint32_t interest_ = 0;
  uint32_t delayed_ = 0;  ///< replies put off
  bool blocked_ = false;  ///< the socket takes no more for now
  bool close_after_flush_ = false;
  bool dead_ = false;
  std::vector<std::vector<std::byte>> held_;  ///< Fault::kReorder: of this batch
};

}  // namespace nfsrdma::memd
