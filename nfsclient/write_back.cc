// SPDX-License-Identifier: GPL-2.0-or-later
#include "write_back.h"

#include <algorithm>
#include <cstring>

namespace nfsrdma {
namespace {

// An admission may split one old extent in two and adds one of its own.
constexpr uint32_t kNodesPerAdmission = 2;

bool on_its_way(const Extent& extent) {
  return extent.state == ExtentState::kSending || extent.state == ExtentState::kResending;
}

}  // namespace

WriteBack::WriteBack(uint64_t bytes, uint32_t extents_max)
    : capacity_(bytes),
      memory_(bytes == 0 ? nullptr : new std::byte[bytes]),
      nodes_(bytes == 0 ? 0 : extents_max * kNodesPerAdmission),
      entries_(bytes == 0 ? 0 : extents_max) {}

ExtentMap::iterator WriteBack::first_overlap(KeptFile& file, uint64_t start) {
  auto it = file.extents.upper_bound(start);
  if (it != file.extents.begin()) {
    auto before = std::prev(it);
    if (before->second.end > start) return before;
  }
  return it;
}

WriteBack::Admission WriteBack::admit(KeptFile& file, uint64_t offset, uint32_t length) {
  const uint64_t end = offset + length;
  for (auto it = first_overlap(file, offset); it != file.extents.end() && it->first < end; ++it)
    if (on_its_way(it->second))
      return {.refusal = Refusal::kOverlap, .extent = nullptr, .data = {}};

  const auto entries = static_cast<uint32_t>(entries_.size());
  // A range never wraps: what is left at the ring's end is skipped when it is too short.
  const uint64_t tail = capacity_ - write_at_;
  const uint64_t skipped = tail < length ? tail : 0;
  if (next_ - oldest_ == entries || capacity_ - used_ < skipped + length ||
      nodes_.available() < kNodesPerAdmission)
    return {.refusal = Refusal::kFull, .extent = nullptr, .data = {}};

  replace(file, offset, end);
  if (skipped != 0) write_at_ = 0;
  const uint32_t entry = next_++ % entries;
  entries_[entry] = {.at = write_at_, .length = skipped + length, .start = offset, .extents = 1};
  const Bytes data(memory_.get() + write_at_, length);
  write_at_ = (write_at_ + length) % capacity_;
  used_ += skipped + length;

  Extent& extent = file.extents[offset];
  extent = {.start = offset, .end = end, .entry = entry};
  return {.refusal = Refusal::kNone, .extent = &extent, .data = data};
}

// Takes [start, end) away from all extents, none of which is on its way.
void WriteBack::replace(KeptFile& file, uint64_t start, uint64_t end) {
  auto it = first_overlap(file, start);
  while (it != file.extents.end() && it->first < end) {
    Extent& old = it->second;
    const ExtentState state = old.state;
    set_state(file, old, ExtentState::kSending);  // out of the counts while its size changes
    if (old.end > end) {
      Extent& right = file.extents[end];
      right = old;
      right.start = end;
      ++entries_[right.entry].extents;
      set_state(file, right, state);
    }
    if (old.start < start) {
      old.end = start;
      set_state(file, old, state);
      ++it;
    } else {
      release(old.entry);
      it = file.extents.erase(it);
    }
  }
}

void WriteBack::set_state(KeptFile& file, Extent& extent, ExtentState state) {
  const auto lost = [](ExtentState s) {
    return s == ExtentState::kLost || s == ExtentState::kResending;
  };
  if (extent.state == ExtentState::kKept) file.kept_bytes -= extent.end - extent.start;
  if (lost(extent.state)) --file.lost;
  if (extent.state == ExtentState::kResending) --file.resending;
  extent.state = state;
  if (state == ExtentState::kKept) file.kept_bytes += extent.end - extent.start;
  if (lost(state)) ++file.lost;
  if (state == ExtentState::kResending) ++file.resending;
}

void WriteBack::release(uint32_t entry) {
  --entries_[entry].extents;
  const auto entries = static_cast<uint32_t>(entries_.size());
  while (oldest_ != next_ && entries_[oldest_ % entries].extents == 0) {
    used_ -= entries_[oldest_ % entries].length;
    ++oldest_;
  }
  if (oldest_ == next_) write_at_ = 0;
}

Bytes WriteBack::data(const Extent& extent) {
  const Entry& entry = entries_[extent.entry];
  return {memory_.get() + entry.at + (extent.start - entry.start), extent.end - extent.start};
}

void WriteBack::written(KeptFile& file, Extent* extent, WriteVerifier verifier) {
  extent->verifier = verifier;
  extent->stamp = ++stamp_;
  set_state(file, *extent, ExtentState::kKept);
}

void WriteBack::forget(KeptFile& file, Extent* extent) {
  set_state(file, *extent, ExtentState::kSending);
  release(extent->entry);
  file.extents.erase(extent->start);
}

uint32_t WriteBack::committed(KeptFile& file, uint64_t stamp, WriteVerifier verifier) {
  uint32_t lost = 0;
  for (auto it = file.extents.begin(); it != file.extents.end();) {
    Extent& extent = it->second;
    if (extent.state != ExtentState::kKept) {
      ++it;
    } else if (extent.verifier != verifier) {
      set_state(file, extent, ExtentState::kLost);
      ++lost;
      ++it;
    } else if (extent.stamp <= stamp) {
      set_state(file, extent, ExtentState::kSending);
      release(extent.entry);
      it = file.extents.erase(it);
    } else {
      ++it;
    }
  }
  return lost;
}

uint32_t WriteBack::drop(KeptFile& file) {
  uint32_t dropped = 0;
  for (auto it = file.extents.begin(); it != file.extents.end();) {
    Extent& extent = it->second;
    if (on_its_way(extent)) {
      ++it;
      continue;
    }
    set_state(file, extent, ExtentState::kSending);
    release(extent.entry);
    it = file.extents.erase(it);
    ++dropped;
  }
  return dropped;
}

Extent* WriteBack::next_lost(KeptFile& file) {
  if (file.lost == file.resending) return nullptr;
  for (int pass = 0; pass < 2; ++pass) {
    for (auto it = file.extents.lower_bound(file.lost_cursor); it != file.extents.end(); ++it) {
      if (it->second.state != ExtentState::kLost) continue;
      set_state(file, it->second, ExtentState::kResending);
      file.lost_cursor = it->second.end;
      return &it->second;
    }
    file.lost_cursor = 0;
  }
  return nullptr;
}

void WriteBack::lose(KeptFile& file, Extent* extent) {
  set_state(file, *extent, ExtentState::kLost);
}

void WriteBack::overlay(const KeptFile& file, uint64_t offset, Bytes to) {
  const uint64_t end = offset + to.size();
  auto it = file.extents.upper_bound(offset);
  if (it != file.extents.begin() && std::prev(it)->second.end > offset) --it;
  for (; it != file.extents.end() && it->first < end; ++it) {
    const Extent& extent = it->second;
    const uint64_t from = std::max(extent.start, offset);
    const uint64_t until = std::min(extent.end, end);
    std::memcpy(to.data() + (from - offset), data(extent).data() + (from - extent.start),
                until - from);
  }
}

uint64_t WriteBack::end_within(const KeptFile& file, uint64_t start, uint64_t end) {
  if (file.extents.empty()) return start;
  return std::clamp(file.extents.rbegin()->second.end, start, end);
}

}  // namespace nfsrdma
