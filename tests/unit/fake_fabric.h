// SPDX-License-Identifier: GPL-2.0-or-later
// A Fabric without a network: the test is the peer. It sees what was posted, sends messages, reads
// and writes memory by its keys, holds completions back, and breaks the connection when it likes.
//
// What fabric.h demands of the user is checked: calls in the wrong state, receive buffers posted
// twice, queues overrun, memory outside its region. A breach is a test failure.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fabric.h"

namespace nfsrdma::testing {

class FakeConnection;

class FakeFabric final : public Fabric {
 public:
  struct Options {
    uint32_t inline_max = 0;
    uint32_t gather_max = 4;
    bool remote_invalidation = false;
    bool slow_unbind = false;  ///< unbind_key() needs a completion
  };
  explicit FakeFabric(const Options& options) : options_(options) {}

  std::string_view name() const override { return "fake"; }
  std::string device() const override { return "fake0"; }
  Result<RegionId> register_memory(Bytes memory, Access access) override {
    if (refuse_registration) return fail(ENOMEM, "no memory may be locked");
    regions.push_back({memory, access, true});
    return static_cast<RegionId>(regions.size() - 1);
  }
  void deregister_memory(RegionId region) override { regions[region].alive = false; }
  RemoteMemory remote_memory(RegionId region, const std::byte* at) const override {
    return {kRegionKey + region, reinterpret_cast<uint64_t>(at)};
  }
  KeyPerCall key_per_call() const override { return KeyPerCall::kTableEntry; }
  bool remote_invalidation() const override { return options_.remote_invalidation; }
  Result<std::unique_ptr<Connection>> make_connection(const ConnectionConfig& config) override;
  Result<std::unique_ptr<Listener>> listen(const ListenConfig&) override {
    return fail(EOPNOTSUPP, "no listener");
  }

  static constexpr RemoteKey kRegionKey = 0x1000;
  struct Region {
    Bytes memory;
    Access access;
    bool alive;
  };
  std::vector<Region> regions;
  bool refuse_registration = false;
  bool accept_connects = true;          ///< set-up ends well at the next poll()
  Error connect_error;                  ///< with a code: set-up fails so
  std::vector<std::byte> private_data;  ///< that comes with the peer's reply
  FakeConnection* connection = nullptr;
  [[nodiscard]] const Options& options() const { return options_; }

 private:
  Options options_;
};

class FakeConnection final : public Connection {
 public:
  struct Sent {
    std::vector<std::byte> bytes;
    uint64_t context;
    uint32_t flags;
    uint32_t life;  ///< connects before it
  };

  FakeConnection(FakeFabric& fabric, const ConnectionConfig& config)
      : fabric_(fabric), config_(config) {
    limits_.inline_max = fabric.options().inline_max;
    limits_.gather_max = fabric.options().gather_max;
    limits_.message_max = 1u << 30;
  }
  ~FakeConnection() override { fabric_.connection = nullptr; }

  // The test's side.
  std::deque<Sent> sent;      ///< rung; taken by the test
  bool send_done_now = true;  ///< completions of Sends come at once
  bool refuse_posts = false;  ///< the queue is full
  std::vector<std::byte> request_private_data;
  uint32_t connects = 0;
  uint32_t closes = 0;
  struct Bound {
    RemoteKey key;
    Bytes memory;
    Access access;
  };
  std::vector<Bound> bound;
  std::vector<std::pair<RemoteKey, uint64_t>> unbinding;
  [[nodiscard]] size_t receives_posted() const { return posted_.size(); }
  [[nodiscard]] const ConnectionConfig& config() const { return config_; }

  /// A Send of the peer. False: no receive is posted, or not connected.
  bool peer_send(ConstBytes message, RemoteKey invalidate = 0) {
    if (state_ != ConnectionState::kEstablished || posted_.empty()) return false;
    EXPECT_LE(message.size(), config_.receive_size);
    const uint32_t buffer = posted_.front();
    posted_.pop_front();
    std::memcpy(config_.receive_memory.data() + size_t{buffer} * config_.receive_size,
                message.data(), message.size());
    Completion completion;
    completion.kind = CompletionKind::kReceive;
    completion.buffer = buffer;
    completion.bytes = static_cast<uint32_t>(message.size());
    if (invalidate != 0) {
      completion.invalidated = true;
      completion.key = invalidate;
      std::erase_if(bound, [&](const Bound& b) { return b.key == invalidate; });
    }
    events_.push_back(completion);
    return true;
  }
  /// An RDMA Write of the peer; false: refused.
  bool peer_write(RemoteKey key, uint64_t address, ConstBytes bytes) {
    std::byte* at = reach(key, address, bytes.size(), Access::kRemoteWrite);
    if (at == nullptr) return false;
    std::memcpy(at, bytes.data(), bytes.size());
    return true;
  }
  /// An RDMA Read of the peer; empty: refused.
  std::vector<std::byte> peer_read(RemoteKey key, uint64_t address, size_t length) {
    const std::byte* at = reach(key, address, length, Access::kRemoteRead);
    if (at == nullptr) return {};
    return {at, at + length};
  }
  void complete_sends() {
    for (const uint64_t context : undone_) {
      Completion done;
      done.kind = CompletionKind::kSendDone;
      done.context = context;
      events_.push_back(done);
    }
    undone_.clear();
    send_queue_ = 0;
  }
  void complete_unbinds() {
    for (const auto& [key, context] : unbinding) {
      std::erase_if(bound, [key = key](const Bound& b) { return b.key == key; });
      Completion done;
      done.kind = CompletionKind::kUnbound;
      done.context = context;
      events_.push_back(done);
    }
    unbinding.clear();
  }
  void disconnect(Error why) {
    error_ = std::move(why);
    state_ = ConnectionState::kFailed;
    events_.push_back(Completion());
  }

  // Connection.
  Result<void> start_connect(const ConnectRequest& request) override {
    EXPECT_EQ(state_, ConnectionState::kIdle);
    request_private_data.assign(request.private_data.begin(), request.private_data.end());
    ++connects;
    posted_.clear();
    for (uint32_t i = 0; i < config_.receive_count; ++i) posted_.push_back(i);
    state_ = ConnectionState::kConnecting;
    return {};
  }
  Result<void> accept(Fabric&, const ConnectionConfig&, ConstBytes) override {
    return fail(EINVAL, "a client");
  }
  void reject(ConstBytes) override {}
  ConstBytes peer_private_data() const override { return fabric_.private_data; }
  ConnectionState state() const override { return state_; }
  const Error& error() const override { return error_; }
  const ConnectionLimits& limits() const override { return limits_; }

  bool post_receive(uint32_t buffer) override {
    if (state_ != ConnectionState::kEstablished) return false;
    EXPECT_LT(buffer, config_.receive_count);
    EXPECT_EQ(std::count(posted_.begin(), posted_.end(), buffer), 0) << "posted twice";
    posted_.push_back(buffer);
    return true;
  }
  bool post_send(uint64_t context, std::span<const LocalSpan> gather, uint32_t flags,
                 RemoteKey) override {
    if (state_ != ConnectionState::kEstablished || refuse_posts) return false;
    EXPECT_LE(gather.size(), limits_.gather_max);
    EXPECT_LT(send_queue_, config_.send_depth) << "the send queue is overrun";
    Sent send{{}, context, flags, connects};
    for (const LocalSpan& span : gather) {
      const FakeFabric::Region& region = fabric_.regions.at(span.region);
      EXPECT_GE(span.address, region.memory.data());
      EXPECT_LE(span.address + span.length, region.memory.data() + region.memory.size());
      send.bytes.insert(send.bytes.end(), span.address, span.address + span.length);
    }
    const bool quiet = (flags & kQuiet) != 0;
    EXPECT_TRUE(!quiet || send.bytes.size() <= limits_.inline_max);
    ++send_queue_;
    batch_.push_back(std::move(send));
    return true;
  }
  bool post_write(uint64_t, std::span<const LocalSpan>, RemoteMemory, uint32_t) override {
    ADD_FAILURE() << "a client writes";
    return false;
  }
  bool post_read(uint64_t, LocalSpan, RemoteMemory) override {
    ADD_FAILURE() << "a client reads";
    return false;
  }
  void ring() override {
    ++counters_.send_calls;
    for (Sent& send : batch_) {
      if ((send.flags & kQuiet) == 0) undone_.push_back(send.context);
      sent.push_back(std::move(send));
    }
    batch_.clear();
    if (send_done_now) complete_sends();
  }
  uint32_t poll(std::span<Completion> completions) override {
    ++counters_.recv_calls;
    if (state_ == ConnectionState::kConnecting) {
      if (fabric_.connect_error.code != 0) {
        disconnect(fabric_.connect_error);
      } else if (fabric_.accept_connects) {
        state_ = ConnectionState::kEstablished;
        events_.emplace_back();
        events_.back().kind = CompletionKind::kEstablished;
      }
    }
    uint32_t count = 0;
    while (count < completions.size() && !events_.empty()) {
      completions[count++] = events_.front();
      events_.pop_front();
    }
    return count;
  }
  bool prepare_wait(pollfd&) override { return events_.empty(); }
  uint64_t next_timer_ns() const override { return UINT64_MAX; }
  Result<RemoteMemory> bind_key(RegionId region, ConstBytes memory, Access access) override {
    const FakeFabric::Region& whole = fabric_.regions.at(region);
    EXPECT_GE(memory.data(), whole.memory.data());
    EXPECT_LE(memory.data() + memory.size(), whole.memory.data() + whole.memory.size());
    EXPECT_TRUE(has(whole.access, access));
    if (bound.size() >= config_.key_count) return fail(ENOMEM, "no key is left");
    bound.push_back({next_key_, {const_cast<std::byte*>(memory.data()), memory.size()}, access});
    return RemoteMemory{next_key_++, reinterpret_cast<uint64_t>(memory.data())};
  }
  bool unbind_key(RemoteKey key, uint64_t context) override {
    EXPECT_EQ(
        std::count_if(bound.begin(), bound.end(), [&](const Bound& b) { return b.key == key; }), 1)
        << "not bound";
    if (fabric_.options().slow_unbind) {
      unbinding.emplace_back(key, context);
      return false;
    }
    std::erase_if(bound, [&](const Bound& b) { return b.key == key; });
    return true;
  }
  void close() override {
    if (state_ != ConnectionState::kIdle) ++closes;
    state_ = ConnectionState::kIdle;
    events_.clear();
    batch_.clear();
    undone_.clear();
    bound.clear();
    unbinding.clear();
    posted_.clear();
    send_queue_ = 0;
  }
  std::string peer_address() const override { return "fake:1"; }
  std::string local_address() const override { return "fake:2"; }
  std::vector<std::pair<std::string, std::string>> negotiated() const override {
    return {{"ird", "16"}};
  }
  const FabricCounters& counters() const override { return counters_; }

 private:
  std::byte* reach(RemoteKey key, uint64_t address, size_t length, Access access) {
    if (state_ != ConnectionState::kEstablished) return nullptr;
    auto* at = reinterpret_cast<std::byte*>(address);
    const auto inside = [&](Bytes memory, Access granted) {
      return has(granted, access) && at >= memory.data() &&
             at + length <= memory.data() + memory.size();
    };
    for (const Bound& b : bound) {
      if (b.key == key) return inside(b.memory, b.access) ? at : nullptr;
    }
    const uint32_t region = key - FakeFabric::kRegionKey;
    if (region >= fabric_.regions.size() || !fabric_.regions[region].alive) return nullptr;
    return inside(fabric_.regions[region].memory, fabric_.regions[region].access) ? at : nullptr;
  }

  FakeFabric& fabric_;
  ConnectionConfig config_;
  ConnectionLimits limits_;
  ConnectionState state_ = ConnectionState::kIdle;
  Error error_;
  FabricCounters counters_;
  std::deque<Completion> events_;
  std::deque<uint32_t> posted_;
  std::vector<Sent> batch_;
  std::vector<uint64_t> undone_;
  uint32_t send_queue_ = 0;
  RemoteKey next_key_ = 0x9000;
};

inline Result<std::unique_ptr<Connection>> FakeFabric::make_connection(
    const ConnectionConfig& config) {
  auto made = std::make_unique<FakeConnection>(*this, config);
  connection = made.get();
  return std::unique_ptr<Connection>(std::move(made));
}

}  // namespace nfsrdma::testing
