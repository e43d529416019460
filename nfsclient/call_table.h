// SPDX-License-Identifier: GPL-2.0-or-later
// The call slots of one connection: xids, heads and life of each call. Shared by the transports.
//
// xid = base + (generation << bits | slot): base is random for each table, so that two runs of one
// job do not meet in a server's duplicate request cache, and a reply names its slot directly. The
// generation moves on whenever a slot is taken, so a late or repeated reply finds nobody.
//
// One thread. All memory is taken in the constructor.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "transport.h"

namespace nfsrdma {

enum class CallState : uint8_t { kFree, kAcquired, kQueued, kSent };

struct CallSlot {
  Call call;
  uint64_t first_sent_ns = 0;  ///< 0: the call's last byte has not left yet
  uint64_t wait_start_ns = 0;  ///< when it was queued or last sent: where timeo counts from
  uint64_t queued_ns = 0;      ///< when it was submitted: where the major timeout counts from
  uint64_t order = 0;          ///< of submission
  uint32_t generation = 0;
  uint32_t retransmissions = 0;
  CallState state = CallState::kFree;
};

class CallTable {
 public:
  /// `head_room` bytes stand free before each head, for a transport's own header.
  CallTable(uint32_t slots, uint32_t head_max, uint32_t head_room);

  uint32_t acquire();
  void release(uint32_t slot);  ///< from any state; the xid is dead from here on

  CallSlot& operator[](uint32_t slot) { return slots_[slot]; }
  const CallSlot& operator[](uint32_t slot) const { return slots_[slot]; }

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(slots_.size()); }
  [[nodiscard]] uint32_t xid(uint32_t slot) const {
    return base_ + ((slots_[slot].generation << bits_) | slot);
  }
  /// The slot that waits for a reply to `xid`, or kNoSlot.
  [[nodiscard]] uint32_t find(uint32_t xid) const {
    const uint32_t relative = xid - base_;
    const uint32_t slot = relative & ((1u << bits_) - 1);
    if (slot >= slots_.size()) return kNoSlot;
    const CallSlot& found = slots_[slot];
    const bool waits = found.state == CallState::kSent || found.state == CallState::kQueued;
    // A queued call may be answered when it waits to be sent a second time.
    return waits && found.first_sent_ns != 0 && this->xid(slot) == xid ? slot : kNoSlot;
  }

  [[nodiscard]] std::byte* head(uint32_t slot) { return heads_.get() + slot * stride_ + room_; }
  [[nodiscard]] uint32_t head_max() const { return head_max_; }
  /// All heads, with their room: what RDMA registers.
  [[nodiscard]] Bytes heads() { return {heads_.get(), stride_ * slots_.size()}; }

 private:
  std::vector<CallSlot> slots_;
  std::vector<uint32_t> free_;
  uint32_t bits_;
  uint32_t base_;
  uint32_t head_max_;
  uint32_t room_;
  size_t stride_;
  std::unique_ptr<std::byte[]> heads_;
};

/// A first-in first-out queue of slots, as large as the table, so that it is never full.
class SlotQueue {
 public:
  explicit SlotQueue(uint32_t slots);

  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] uint32_t size() const { return tail_ - head_; }
  [[nodiscard]] uint32_t at(uint32_t i) const { return ring_[(head_ + i) & mask_]; }
  void push(uint32_t slot) { ring_[tail_++ & mask_] = slot; }
  void push_front(uint32_t slot) { ring_[--head_ & mask_] = slot; }
  uint32_t pop() { return ring_[head_++ & mask_]; }
  void clear() { head_ = tail_ = 0; }
  void remove(uint32_t slot);

 private:
  std::vector<uint32_t> ring_;
  uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
};

}  // namespace nfsrdma
