// SPDX-License-Identifier: GPL-2.0-or-later
// A session whose calls a test answers one by one, in any order: the transport only holds them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rpc_script.h"
#include "session.h"

namespace nfsrdma::testing {

/// A call on the wire, its arguments read by hand.
struct WireCall {
  class HeldTransport* transport = nullptr;
  uint32_t slot = 0;
  uint32_t xid = 0;
  NfsProcedure procedure{};
  uint32_t file = 0;  ///< first byte of the handle
  uint64_t offset = 0;
  uint32_t count = 0;
  StableHow stable{};
  ConstBytes data;
  Bytes in;
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const std::byte b : data) text += std::to_integer<char>(b);
    return text;
  }
};

/// Allocates nothing per call.
class HeldTransport final : public Transport {
 public:
  HeldTransport(uint32_t slots, std::vector<WireCall>* wire) : slots_(slots), wire_(wire) {
    for (uint32_t i = slots; i-- > 0;) free_.push_back(i);
    queue_.reserve(slots);
    for (Slot& slot : slots_) slot.head.resize(1024);
  }

  void set_sink(CallSink* sink) override { sink_ = sink; }
  Result<void> add_memory(Bytes) override { return {}; }
  uint32_t acquire() override {
    if (free_.empty()) return kNoSlot;
    const uint32_t slot = free_.back();
    free_.pop_back();
    slots_[slot].xid = next_xid_++;
    return slot;
  }
  void release(uint32_t slot) override { free_.push_back(slot); }
  Bytes head(uint32_t slot) override { return slots_[slot].head; }
  uint32_t xid(uint32_t slot) const override { return slots_[slot].xid; }
  void submit(uint32_t slot, const Call& call) override {
    slots_[slot].call = call;
    queue_.push_back(slot);
  }

  void flush() override {
    ++counters_.send_calls;
    for (const uint32_t slot : queue_) {
      wire_->push_back(parse(slot));
      ++outstanding_;
      sink_->on_sent(slot, now_ns());
    }
    queue_.clear();
  }
  uint32_t progress() override {
    while (answer && !wire_->empty()) {
      const WireCall call = wire_->front();
      wire_->erase(wire_->begin());
      answer(call);
    }
    return 0;
  }
  uint32_t outstanding() const override { return outstanding_ + unsent(); }
  uint32_t unsent() const override { return static_cast<uint32_t>(queue_.size()); }
  bool prepare_wait(pollfd& wait) override {
    wait = {-1, 0, 0};
    return !answer || wire_->empty();
  }
  bool sleep_receiving(uint64_t, uint64_t) override {
    if (asleep) asleep();
    return asleep != nullptr;
  }
  uint64_t next_timer_ns() const override { return kNever; }
  void abandon(const Error& error) override {
    flush();
    const std::vector<WireCall> calls = std::exchange(*wire_, {});
    for (const WireCall& call : calls) {
      if (call.transport != this) {
        wire_->push_back(call);
        continue;
      }
      Reply reply;
      reply.error = &error;
      end(call, reply);
    }
  }
  const TransportCounters& counters() const override { return counters_; }
  TransportInfo info() const override { return {"held", "", "", {}}; }

  void end(const WireCall& call, const Reply& reply) {
    --outstanding_;
    free_.push_back(call.slot);
    sink_->on_reply(call.slot, reply);
  }

  std::function<void(const WireCall&)> answer;  ///< set: progress() answers all with it
  std::function<void()> asleep;  ///< set: it sleeps receiving, this happens meanwhile

 private:
  struct Slot {
    std::vector<std::byte> head;
    Call call;
    uint32_t xid = 0;
  };

  WireCall parse(uint32_t slot) {
    WireCall call;
    const Call& submitted = slots_[slot].call;
    XdrReader from(ConstBytes(slots_[slot].head).first(submitted.head_length));
    call.transport = this;
    call.slot = slot;
    call.xid = from.u32();
    EXPECT_EQ(call.xid, slots_[slot].xid);
    EXPECT_EQ(from.u32(), 0u);
    EXPECT_EQ(from.u32(), 2u);
    EXPECT_EQ(from.u32(), kNfsProgram);
    EXPECT_EQ(from.u32(), 3u);
    call.procedure = static_cast<NfsProcedure>(from.u32());
    from.skip(4);
    from.opaque(400);
    from.skip(4);
    from.opaque(400);
    const ConstBytes handle = from.opaque(64);
    if (!handle.empty()) call.file = std::to_integer<uint32_t>(handle[0]);
    if (call.procedure == NfsProcedure::kGetattr) return call;
    call.offset = from.u64();
    call.count = from.u32();
    if (call.procedure == NfsProcedure::kWrite) {
      call.stable = static_cast<StableHow>(from.u32());
      EXPECT_EQ(from.u32(), call.count);
      EXPECT_EQ(submitted.bulk_out.size(), call.count);
    }
    EXPECT_TRUE(from.ok());
    EXPECT_EQ(from.left(), 0u);
    call.data = submitted.bulk_out;
    call.in = submitted.bulk_in;
    if (call.procedure == NfsProcedure::kRead) {
      EXPECT_EQ(call.in.size(), call.count);
    }
    return call;
  }

  CallSink* sink_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_, queue_;
  std::vector<WireCall>* wire_;
  uint32_t next_xid_ = 100;
  uint32_t outstanding_ = 0;
  TransportCounters counters_;
};

/// Results written by hand, without an allocation.
class Answer {
 public:
  explicit Answer(const WireCall& call) : call_(call) {
    u32(call.xid);
    u32(1);
    for (int i = 0; i < 4; i++) u32(0);
  }
  Answer& u32(uint32_t word) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes_[size_++] = std::byte(word >> shift);
    return *this;
  }
  /// As the server keeps it: bytes without an order.
  Answer& verifier(uint64_t value) {
    std::memcpy(&bytes_[size_], &value, 8);
    size_ += 8;
    return *this;
  }
  void send(uint32_t bulk_length = 0) {
    Reply reply;
    reply.head = {bytes_.data(), size_};
    reply.bulk_length = bulk_length;
    reply.received_ns = now_ns();
    if (call_.transport != nullptr) call_.transport->end(call_, reply);
  }

 private:
  const WireCall call_;
  std::array<std::byte, 256> bytes_{};
  size_t size_ = 0;
};

inline void answer_status(const WireCall& call, uint32_t status) {
  Answer answer(call);
  answer.u32(status).u32(0);
  if (call.procedure != NfsProcedure::kRead) answer.u32(0);
  answer.send();
}
inline void answer_read(const WireCall& call, ConstBytes data, bool eof) {
  if (data.size() > call.in.size()) return;  // no such call: the test has failed already
  std::copy(data.begin(), data.end(), call.in.begin());
  const auto length = static_cast<uint32_t>(data.size());
  Answer(call).u32(0).u32(0).u32(length).u32(eof ? 1 : 0).u32(length).send(length);
}
inline void answer_read(const WireCall& call, std::string_view data, bool eof = false) {
  answer_read(call, std::as_bytes(std::span(data)), eof);
}
inline void answer_write(const WireCall& call, uint32_t count, StableHow committed,
                         uint64_t verifier) {
  Answer(call)
      .u32(0)
      .u32(0)
      .u32(0)
      .u32(count)
      .u32(static_cast<uint32_t>(committed))
      .verifier(verifier)
      .send();
}
inline void answer_commit(const WireCall& call, uint64_t verifier) {
  Answer(call).u32(0).u32(0).u32(0).verifier(verifier).send();
}

class SessionTest : public ::testing::Test, protected IssueSink {
 protected:
  void open(SessionConfig config, uint32_t slots = 16, uint32_t connections = 1) {
    wire_.reserve(4096);
    issued_.reserve(65536);
    std::vector<std::unique_ptr<Transport>> transports;
    for (uint32_t i = 0; i < connections; i++) {
      auto transport = std::make_unique<HeldTransport>(slots, &wire_);
      held_.push_back(transport.get());
      transports.push_back(std::move(transport));
    }
    statistics_ = std::make_unique<SessionStatistics>();
    session_ = std::make_unique<Session>(config, std::move(transports), Credential::none(),
                                         statistics_.get(), static_cast<IssueSink*>(this));
    file_ = open_file(1);
  }
  SessionFile* open_file(uint32_t id) {
    FileHandle handle;
    handle.length = 16;
    handle.bytes[0] = std::byte(id);
    return session_->open_file("file" + std::to_string(id), handle);
  }
  static SessionConfig config(uint32_t depth = 16) {
    SessionConfig config;
    config.depth = depth;
    config.poll = PollMode::kEvent;
    return config;
  }
  static SessionConfig kept(uint64_t bytes = 4096) {
    SessionConfig config = SessionTest::config();
    config.uncommitted_max = bytes;
    return config;
  }

  void on_issued(void* user) override { issued_.push_back(user); }

  static void* user(uintptr_t number) { return reinterpret_cast<void*>(number); }
  void write(uintptr_t number, uint64_t offset, std::string_view data,
             StableHow stable = StableHow::kUnstable, bool commit_after = false) {
    ASSERT_TRUE(session_->write(user(number), file_, offset, std::as_bytes(std::span(data)), stable,
                                commit_after));
  }
  void read(uintptr_t number, uint64_t offset, Bytes to) {
    ASSERT_TRUE(session_->read(user(number), file_, offset, to));
  }
  void sync(uintptr_t number) { ASSERT_TRUE(session_->sync(user(number), file_)); }

  /// The oldest call on the wire; it must be there, and be this one.
  WireCall next(NfsProcedure procedure) {
    session_->wait(0, 0);
    if (wire_.empty()) {
      ADD_FAILURE() << "no call on the wire";
      return {};
    }
    const WireCall call = wire_.front();
    wire_.erase(wire_.begin());
    EXPECT_EQ(call.procedure, procedure);
    return call;
  }
  size_t on_wire() {
    session_->wait(0, 0);
    return wire_.size();
  }
  /// "3:0 4:5/28 ": user:bytes, user:bytes/errno.
  std::string completions() {
    session_->wait(0, 0);
    std::string text;
    while (session_->ready() != 0) {
      const IoCompletion done = session_->take();
      text += std::to_string(reinterpret_cast<uintptr_t>(done.user)) + ":" +
              std::to_string(done.bytes) +
              (done.error != 0 ? "/" + std::to_string(done.error) : "") + " ";
    }
    return text;
  }
  /// Goes on until so many calls are on the wire, 10 s at most.
  void wait_on_wire(size_t calls) {
    const uint64_t give_up = now_ns() + 10'000'000'000;
    while (wire_.size() < calls && now_ns() < give_up)
      session_->wait(session_->ready() + 1, now_ns() + 5'000'000);
    ASSERT_EQ(wire_.size(), calls);
  }
  void settle(uint32_t ms) {
    const uint64_t end = now_ns() + uint64_t{ms} * 1'000'000;
    while (now_ns() < end) session_->wait(session_->ready() + 1, end);
  }

  std::vector<WireCall> wire_;
  std::vector<HeldTransport*> held_;
  std::unique_ptr<SessionStatistics> statistics_;
  std::unique_ptr<Session> session_;
  SessionFile* file_ = nullptr;
  std::vector<void*> issued_;
};

constexpr NfsProcedure kRead = NfsProcedure::kRead;
constexpr NfsProcedure kWrite = NfsProcedure::kWrite;
constexpr NfsProcedure kCommit = NfsProcedure::kCommit;
constexpr StableHow kUnstable = StableHow::kUnstable;
constexpr StableHow kFileSync = StableHow::kFileSync;

inline std::string text_of(ConstBytes bytes) {
  std::string text;
  for (const std::byte b : bytes) text += std::to_integer<char>(b);
  return text;
}

}  // namespace nfsrdma::testing
