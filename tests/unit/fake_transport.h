// SPDX-License-Identifier: GPL-2.0-or-later
// A transport without a network: replies come from a function of the test's own, at once or after
// a delay, or never. It keeps the calls it was given, so a test can compare their bytes.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport.h"

namespace nfsrdma::testing {

/// What the scripted peer does with a call.
struct Script {
  std::vector<std::byte> reply{};  ///< from the xid on; the bulk data of a READ included
  uint64_t delay_ns = 0;           ///< the reply comes this much later
  bool lost = false;               ///< no reply ever comes
  std::optional<Error> error{};    ///< the call ends with this error
  uint32_t retransmissions = 0;    ///< as if the call had been sent again this often
  bool drop_connection = false;    ///< the peer closes; the call is sent again to the script
  bool bad_xid = false;            ///< a reply to another call: dropped and counted
};

class FakeTransport final : public Transport {
 public:
  /// `call` is the whole message: head, and bulk data with their pad.
  using Answer = std::function<Script(ConstBytes call)>;

  explicit FakeTransport(Answer answer, TransportConfig config = {})
      : answer_(std::move(answer)), config_(std::move(config)) {
    slots_.resize(config_.slots);
    for (Slot& slot : slots_) slot.head.resize(config_.head_max);
  }

  void set_sink(CallSink* sink) override { sink_ = sink; }
  Result<void> add_memory(Bytes /*memory*/) override { return {}; }

  uint32_t acquire() override {
    for (uint32_t i = 0; i < slots_.size(); i++) {
      if (slots_[i].state != State::kFree) continue;
      slots_[i].state = State::kAcquired;
      slots_[i].xid = next_xid_++;
      return i;
    }
    return kNoSlot;
  }
  void release(uint32_t slot) override { slots_[slot].state = State::kFree; }
  Bytes head(uint32_t slot) override { return slots_[slot].head; }
  [[nodiscard]] uint32_t xid(uint32_t slot) const override { return slots_[slot].xid; }

  void submit(uint32_t slot, const Call& call) override {
    slots_[slot].call = call;
    slots_[slot].state = State::kQueued;
    queue_.push_back(slot);
  }

  void flush() override {
    for (const uint32_t slot : std::exchange(queue_, {})) send(slot, true);
  }

  uint32_t progress() override {
    counters_.recv_calls++;
    uint32_t ended = 0;
    for (uint32_t i = 0; i < slots_.size(); i++) {
      Slot& slot = slots_[i];
      if (slot.state != State::kSent) continue;
      if (slot.script.drop_connection) {
        counters_.reconnects++;
        slot.retransmissions++;
        send(i, false);
        continue;
      }
      if (slot.due_ns == kNever || slot.due_ns > now_ns()) continue;
      deliver(i);
      ended++;
    }
    return ended;
  }

  [[nodiscard]] uint32_t outstanding() const override {
    return static_cast<uint32_t>(std::ranges::count_if(slots_, [](const Slot& slot) {
      return slot.state == State::kQueued || slot.state == State::kSent;
    }));
  }
  [[nodiscard]] uint32_t unsent() const override { return static_cast<uint32_t>(queue_.size()); }

  bool prepare_wait(pollfd& wait) override {
    wait = {-1, 0, 0};
    return next_timer_ns() > now_ns();
  }
  [[nodiscard]] uint64_t next_timer_ns() const override {
    uint64_t next = kNever;
    for (const Slot& slot : slots_) {
      if (slot.state != State::kSent) continue;
      next = std::min(next, slot.script.drop_connection ? 0 : slot.due_ns);
    }
    return next;
  }

  void abandon(const Error& error) override {
    queue_.clear();
    for (uint32_t i = 0; i < slots_.size(); i++) {
      if (slots_[i].state != State::kQueued && slots_[i].state != State::kSent) continue;
      slots_[i].state = State::kFree;
      Reply reply;
      reply.error = &error;
      if (sink_ != nullptr) sink_->on_reply(i, reply);
    }
  }

  [[nodiscard]] const TransportCounters& counters() const override { return counters_; }
  [[nodiscard]] TransportInfo info() const override {
    return {"fake", "", config_.host + ":" + std::to_string(config_.port), {}};
  }

  /// Every message sent, in order, retransmissions too.
  [[nodiscard]] const std::vector<std::vector<std::byte>>& calls() const { return calls_; }

 private:
  enum class State { kFree, kAcquired, kQueued, kSent };
  struct Slot {
    State state = State::kFree;
    uint32_t xid = 0;
    uint32_t retransmissions = 0;
    uint64_t due_ns = 0;
    std::vector<std::byte> head;
    Call call;
    Script script;
  };

  void send(uint32_t index, bool first) {
    Slot& slot = slots_[index];
    std::vector<std::byte> message(slot.head.begin(), slot.head.begin() + slot.call.head_length);
    message.insert(message.end(), slot.call.bulk_out.begin(), slot.call.bulk_out.end());
    message.resize(message.size() + xdr_pad(static_cast<uint32_t>(slot.call.bulk_out.size())));
    calls_.push_back(message);
    slot.state = State::kSent;
    slot.script = answer_(message);
    slot.due_ns = slot.script.lost ? kNever : now_ns() + slot.script.delay_ns;
    counters_.send_calls++;
    if (slot.script.bad_xid) {
      counters_.bad_replies++;
      slot.due_ns = kNever;
    }
    if (!first) return;
    slot.retransmissions = 0;
    if (sink_ != nullptr) sink_->on_sent(index, now_ns());
  }

  void deliver(uint32_t index) {
    Slot& slot = slots_[index];
    slot.state = State::kFree;
    const Script script = slot.script;
    Reply reply;
    reply.received_ns = now_ns();
    reply.retransmissions = slot.retransmissions + script.retransmissions;
    reply.head = script.reply;
    if (script.error) {
      reply.error = &*script.error;
      reply.head = {};
    } else if (!slot.call.bulk_in.empty()) {
      place_bulk(slot.call, reply);
    }
    if (sink_ != nullptr) sink_->on_reply(index, reply);
  }

  static void place_bulk(const Call& call, Reply& reply) {
    const int at = call.split(reply.head);
    if (at <= 0) return;
    const ConstBytes bulk = reply.head.subspan(static_cast<size_t>(at));
    const uint32_t length = load_be32(bulk.data() - 4);
    reply.bulk_length =
        static_cast<uint32_t>(std::min({size_t{length}, bulk.size(), call.bulk_in.size()}));
    std::memcpy(call.bulk_in.data(), bulk.data(), reply.bulk_length);
    reply.head = reply.head.first(static_cast<size_t>(at));
  }

  Answer answer_;
  TransportConfig config_;
  CallSink* sink_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<uint32_t> queue_;
  std::vector<std::vector<std::byte>> calls_;
  uint32_t next_xid_ = 0x10000001;
  TransportCounters counters_;
};

}  // namespace nfsrdma::testing
