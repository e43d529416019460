// SPDX-License-Identifier: GPL-2.0-or-later
#include "call_table.h"

#include <sys/random.h>

#include <bit>

namespace nfsrdma {
namespace {

constexpr size_t kCacheLine = 64;

uint32_t random_word() {
  uint32_t word = 0;
  // Before the pool is ready getrandom() may be interrupted; the clock is then random enough for
  // an xid, which is no secret.
  if (getrandom(&word, sizeof word, 0) != sizeof word) word = static_cast<uint32_t>(now_ns());
  return word;
}

// An odd number of cache lines apart, so that the heads do not all fall into one cache set.
size_t head_stride(uint32_t bytes) {
  size_t lines = (bytes + kCacheLine - 1) / kCacheLine;
  return (lines | 1) * kCacheLine;
}

}  // namespace

CallTable::CallTable(uint32_t slots, uint32_t head_max, uint32_t head_room)
    : slots_(slots),
      bits_(static_cast<uint32_t>(std::bit_width(std::bit_ceil(slots)) - 1)),
      base_(random_word()),
      head_max_(head_max),
      room_(head_room),
      stride_(head_stride(head_max + head_room)),
      heads_(new std::byte[stride_ * slots]()) {
  free_.reserve(slots);
  for (uint32_t slot = slots; slot-- > 0;) free_.push_back(slot);
}

uint32_t CallTable::acquire() {
  if (free_.empty()) return kNoSlot;
  const uint32_t slot = free_.back();
  free_.pop_back();
  CallSlot& taken = slots_[slot];
  ++taken.generation;
  taken.state = CallState::kAcquired;
  taken.first_sent_ns = 0;
  taken.retransmissions = 0;
  return slot;
}

void CallTable::release(uint32_t slot) {
  slots_[slot].state = CallState::kFree;
  free_.push_back(slot);
}

SlotQueue::SlotQueue(uint32_t slots)
    : ring_(std::bit_ceil(slots)), mask_(std::bit_ceil(slots) - 1) {}

void SlotQueue::remove(uint32_t slot) {
  const uint32_t count = size();
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t here = at(i);
    if (here == slot) continue;
    ring_[(head_ + kept++) & mask_] = here;
  }
  tail_ = head_ + kept;
}

}  // namespace nfsrdma
