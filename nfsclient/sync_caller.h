// SPDX-License-Identifier: GPL-2.0-or-later
// Calls over a Transport, one at a time, each waited for until a deadline.
//
// The transport must have no other user while a call waits: a call whose time is up abandons all
// that is outstanding. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rpc_caller.h"
#include "rpc_message.h"
#include "transport.h"

namespace nfsrdma {

struct SyncCallerConfig {
  std::string server;  ///< "host:port", for messages
  Credential credential;
  uint32_t call_timeout_ms = 20'000;  ///< from call() to its reply, connecting included
  /// A peer that takes the connection and drops it this often during one call is no RPC server.
  uint32_t dropped_connections_max = 4;
  StopFlag stop = nullptr;  ///< ends a call that waits with EINTR
};

class SyncCaller final : public RpcCaller, private CallSink {
 public:
  SyncCaller(std::unique_ptr<Transport> transport, SyncCallerConfig config);
  /// Borrows `transport`, which must live longer; takes its sink, and clears it when destroyed.
  SyncCaller(Transport& transport, SyncCallerConfig config);
  ~SyncCaller() override;
  SyncCaller(const SyncCaller&) = delete;
  SyncCaller& operator=(const SyncCaller&) = delete;

  /// Errors as RpcCaller says; ENOBUFS when the transport has no free slot; E2BIG when header and
  /// arguments exceed the transport's head.
  Result<ConstBytes> call(uint32_t program, uint32_t version, uint32_t procedure,
                          ConstBytes arguments, uint32_t reply_max) override;
  [[nodiscard]] uint32_t retransmissions() const override { return retransmissions_; }

  [[nodiscard]] Transport& transport() { return transport_; }
  [[nodiscard]] const SyncCallerConfig& config() const { return config_; }

 private:
  void on_sent(uint32_t slot, uint64_t sent_ns) override;
  void on_reply(uint32_t slot, const Reply& reply) override;
  void wait(uint64_t deadline_ns);
  void give_up(Error error);
  [[nodiscard]] Error timed_out(uint64_t bad_replies_before) const;

  std::unique_ptr<Transport> owned_;
  Transport& transport_;
  SyncCallerConfig config_;

  uint32_t slot_ = kNoSlot;  ///< the slot waited for
  uint32_t reply_max_ = 0;
  bool too_long_ = false;
  uint32_t retransmissions_ = 0;
  Error error_;
  std::vector<std::byte> reply_;
};

}  // namespace nfsrdma
