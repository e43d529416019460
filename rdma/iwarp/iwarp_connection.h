// SPDX-License-Identifier: GPL-2.0-or-later
// One iWARP connection: set-up (iwarp_setup.cc), then a Transmitter and a Receiver over its socket.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric.h"
#include "iwarp_fabric_impl.h"
#include "iwarp_keys.h"
#include "iwarp_rx.h"
#include "iwarp_socket.h"
#include "iwarp_tx.h"
#include "mpa.h"

namespace nfsrdma::iwarp {

/// Receives one MPA frame and not a byte more, as the bytes come.
class MpaFrameReader {
 public:
  enum class Status { kMore, kWhole, kClosed, kError };

  void reset() { got_ = 0; }
  /// kError: error() says why.
  Status read(int fd, bool reply);
  ConstBytes bytes() const { return {buffer_.data(), got_}; }
  const Error& error() const { return error_; }

 private:
  std::array<std::byte, kMpaFrameBytes + kMpaPrivateMax> buffer_;
  size_t got_ = 0;
  Error error_;
};

class IwarpConnection final : public Connection {
 public:
  /// A client's, idle.
  IwarpConnection(IwarpFabric& fabric, const ConnectionConfig& config);
  /// A server's, in state kRequested. `request` is a valid one, `deadline_ns` that of set-up.
  IwarpConnection(Socket socket, const MpaFrame& request, uint64_t deadline_ns);
  ~IwarpConnection() override { close(); }

  Result<void> start_connect(const ConnectRequest& request) override;
  Result<void> accept(Fabric& fabric, const ConnectionConfig& config,
                      ConstBytes private_data) override;
  void reject(ConstBytes private_data) override;

  ConstBytes peer_private_data() const override {
    return {peer_private_.data(), peer_private_bytes_};
  }
  ConnectionState state() const override { return state_; }
  const Error& error() const override { return error_; }
  const ConnectionLimits& limits() const override { return limits_; }

  bool post_receive(uint32_t buffer) override {
    return state_ == ConnectionState::kEstablished && rx_->post_receive(buffer);
  }
  bool post_send(uint64_t context, std::span<const LocalSpan> gather, uint32_t flags,
                 RemoteKey key) override {
    return state_ == ConnectionState::kEstablished && tx_->post_send(context, gather, flags, key);
  }
  bool post_write(uint64_t context, std::span<const LocalSpan> gather, RemoteMemory sink,
                  uint32_t flags) override {
    return state_ == ConnectionState::kEstablished && tx_->post_write(context, gather, sink, flags);
  }
  bool post_read(uint64_t context, LocalSpan sink, RemoteMemory source) override {
    return state_ == ConnectionState::kEstablished && tx_->post_read(context, sink, source);
  }
  void ring() override;
  uint32_t poll(std::span<Completion> completions) override;
  bool prepare_wait(pollfd& wait) override;
  bool sleep_receiving(uint64_t now, uint64_t until_ns) override;
  uint64_t next_timer_ns() const override;

  Result<RemoteMemory> bind_key(RegionId region, ConstBytes memory, Access access) override;
  bool unbind_key(RemoteKey key, uint64_t context) override;
  void close() override;

  std::string peer_address() const override { return peer_text(socket_.get()); }
  std::string local_address() const override { return local_text(socket_.get()); }
  std::vector<std::pair<std::string, std::string>> negotiated() const override;
  const FabricCounters& counters() const override { return counters_; }

 private:
  enum class Phase : uint8_t { kNone, kTcp, kReply, kReadyToReceive };

  void configure(IwarpFabric& fabric, const ConnectionConfig& config);
  void drive_setup();
  void tcp_connected();
  void read_reply();
  void judge_reply(const MpaFrame& reply);
  void agree(const MpaFrame& peer);
  bool send_frame(const MpaFrame& frame);
  void establish();
  void setup_timed_out();
  bool keep_private(ConstBytes private_data);

  void fail_with(int code, std::string text);
  void stream_failed();
  void wake_peer();
  uint32_t report_unbound(std::span<Completion> out);

  IwarpFabric* fabric_ = nullptr;
  ConnectionConfig config_;
  KeySpace keys_;
  std::optional<Transmitter> tx_;
  std::optional<Receiver> rx_;

  Socket socket_;
  ConnectionState state_ = ConnectionState::kIdle;
  Phase phase_ = Phase::kNone;
  bool client_ = true;
  bool may_sleep_ = false;  // receive calls on socket_ sleep
  bool report_established_ = false;
  bool report_disconnected_ = false;
  Error error_;
  ConnectionLimits limits_;
  FabricCounters counters_;

  std::string peer_name_;  // for messages: "server.example (10.0.0.1:20049)"
  uint32_t timeout_ms_ = 0;
  uint64_t deadline_ns_ = 0;
  MpaFrameReader reader_;
  bool crc_ = false;
  uint32_t segment_ = 0;
  uint32_t ird_ = 0, ord_ = 0;  // asked for, then agreed
  MpaFrame request_;            // server: what the peer asked for; its private data are below
  std::array<std::byte, kMpaPrivateMax> own_private_;
  size_t own_private_bytes_ = 0;
  std::array<std::byte, kMpaPrivateMax> peer_private_;
  size_t peer_private_bytes_ = 0;

  // siw's accept race: see wake_peer().
  uint64_t wake_at_ns_ = 0;
  uint64_t wake_delay_ns_ = 0;

  struct Unbound {
    uint64_t context;
    uint64_t position;  // of the stream: behind it no byte of the key's memory is left to send
  };
  bool can_report_unbound() const {
    return !unbound_.empty() && (state_ != ConnectionState::kEstablished ||
                                 unbound_.front().position <= tx_->sent_position());
  }
  std::vector<Unbound> unbound_;
};

}  // namespace nfsrdma::iwarp
