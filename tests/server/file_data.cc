// SPDX-License-Identifier: GPL-2.0-or-later
#include "file_data.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace nfsrdma::memd {

namespace {

constexpr uint32_t kFanoutShift = 9;
constexpr uint32_t kFanout = 1u << kFanoutShift;
constexpr uint32_t kHeightMax = 6;
static_assert(kBlockShift + kHeightMax * kFanoutShift >= 63, "every offset must be reachable");

constexpr uint64_t blocks_below(uint64_t size) {
  return (size + kBlockSize - 1) >> kBlockShift;
}

constexpr uint64_t span_of(uint32_t height) {
  return height == 0 ? 0 : uint64_t{1} << (height * kFanoutShift);
}

/// What --synthetic reads as: the same 64 KiB for every block, not constant, so that a shifted
/// byte shows.
const std::byte* pattern_block() {
  struct Pattern {
    alignas(4096) std::byte bytes[kBlockSize];
    Pattern() {
      for (uint32_t i = 0; i < kBlockSize; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
    }
  };
  static const Pattern pattern;
  return pattern.bytes;
}

}  // namespace

/// Children are Nodes above the lowest level and Blocks on it.
struct FileData::Node {
  void* child[kFanout] = {};
};

FileData::~FileData() {
  assert(root_ == nullptr && "clear() was not called");
}

Block* FileData::find(uint64_t number) const {
  if (number >= span_of(height_)) return nullptr;
  const Node* node = root_;
  for (uint32_t level = height_ - 1; level > 0; --level) {
    node =
        static_cast<const Node*>(node->child[(number >> (level * kFanoutShift)) & (kFanout - 1)]);
    if (node == nullptr) return nullptr;
  }
  return static_cast<Block*>(node->child[number & (kFanout - 1)]);
}

/// Where the block of that number hangs, its nodes made; nullptr: no memory.
Block** FileData::slot(uint64_t number) {
  while (number >= span_of(height_)) {
    assert(height_ < kHeightMax);
    Node* top = new (std::nothrow) Node;
    if (top == nullptr) return nullptr;
    top->child[0] = root_;
    root_ = top;
    ++height_;
  }
  Node* node = root_;
  for (uint32_t level = height_ - 1; level > 0; --level) {
    void*& child = node->child[(number >> (level * kFanoutShift)) & (kFanout - 1)];
    if (child == nullptr) child = new (std::nothrow) Node;
    if (child == nullptr) return nullptr;
    node = static_cast<Node*>(child);
  }
  return reinterpret_cast<Block**>(&node->child[number & (kFanout - 1)]);
}

uint32_t FileData::read(const DataSpace& space, uint64_t offset, uint32_t count,
                        std::span<BulkSpan, kBulkSpansMax> spans) const {
  uint32_t used = 0;
  while (count > 0) {
    assert(used < kBulkSpansMax);
    const auto within = space.synthetic ? 0 : static_cast<uint32_t>(offset & (kBlockSize - 1));
    const uint32_t length = std::min(count, kBlockSize - within);
    BulkSpan& span = spans[used++];
    span.length = length;
    span.pin = nullptr;
    if (space.synthetic) {
      // Always from the start, so that small READs stay in the cache: the client is what is
      // measured.
      span.data = pattern_block();
    } else if (Block* block = find(offset >> kBlockShift); block != nullptr) {
      BlockPool::pin(block);
      span.pin = block;
      span.data = block->data + within;
    } else {
      span.data = zero_block();
    }
    offset += length;
    count -= length;
  }
  return used;
}

/// The block to write into: made if it was a hole, copied first if its stable content must be
/// kept. nullptr: no room.
Block* FileData::writable_block(DataSpace& space, uint64_t number, bool whole, bool unstable) {
  Block** place = slot(number);
  if (place == nullptr) return nullptr;
  const bool keep = space.lossy && unstable &&
                    (!shadow_ || shadow_->stable.find(number) == shadow_->stable.end());
  Block* const old = *place;
  if (old != nullptr && !keep) return old;

  if (old == nullptr && !space.quota.charge(kBlockSize)) return nullptr;
  Block* const fresh = space.pool.allocate(old == nullptr && !whole);
  if (fresh == nullptr) {
    if (old == nullptr) space.quota.refund(kBlockSize);
    return nullptr;
  }
  if (old == nullptr) {
    used_ += kBlockSize;
  } else if (!whole) {
    std::memcpy(fresh->data, old->data, kBlockSize);
  }
  if (keep) {
    if (!shadow_) {
      shadow_ = std::make_unique<Shadow>();
      shadow_->size = size_;
    }
    shadow_->stable.emplace(number, old);
  }
  *place = fresh;
  return fresh;
}

/// Stores bytes that lie within one block.
bool FileData::write_piece(DataSpace& space, uint64_t offset, ConstBytes piece, bool unstable) {
  const uint64_t number = offset >> kBlockShift;
  const auto within = static_cast<uint32_t>(offset & (kBlockSize - 1));
  Block* const block = writable_block(space, number, piece.size() == kBlockSize, unstable);
  if (block == nullptr) return false;
  std::memcpy(block->data + within, piece.data(), piece.size());
  if (!shadow_ || unstable) return true;
  // A stable WRITE into a block with uncommitted bytes around it: stable in both contents.
  const auto kept = shadow_->stable.find(number);
  if (kept == shadow_->stable.end()) return true;
  if (kept->second == nullptr) kept->second = space.pool.allocate(true);
  if (kept->second == nullptr) return false;
  std::memcpy(kept->second->data + within, piece.data(), piece.size());
  return true;
}

uint32_t FileData::write(DataSpace& space, uint64_t offset, std::span<const ConstBytes> data,
                         bool unstable) {
  uint32_t stored = 0;
  const uint64_t size_before = size_;
  bool room = true;
  for (ConstBytes rest : data) {
    if (space.synthetic) {
      room = charge_size(space, std::max(size_, offset + stored + rest.size()));
      if (room) stored += static_cast<uint32_t>(rest.size());
    }
    while (room && !space.synthetic && !rest.empty()) {
      const uint64_t at = offset + stored;
      const size_t length = std::min(rest.size(), size_t{kBlockSize} - (at & (kBlockSize - 1)));
      room = write_piece(space, at, rest.first(length), unstable);
      if (room) stored += static_cast<uint32_t>(length);
      rest = rest.subspan(length);
    }
    if (!room) break;
  }
  if (stored > 0) size_ = std::max(size_, offset + stored);
  if (shadow_ && !unstable && stored > 0) shadow_->size = std::max(shadow_->size, offset + stored);
  assert(size_ >= size_before);
  return stored;
}

/// Synthetic files hold no blocks: their size is what is charged.
bool FileData::charge_size(DataSpace& space, uint64_t size) {
  const uint64_t wanted = blocks_below(size) << kBlockShift;
  if (wanted > used_ && !space.quota.charge(wanted - used_)) return false;
  if (wanted < used_) space.quota.refund(used_ - wanted);
  used_ = wanted;
  return true;
}

void FileData::zero_tail(uint64_t size) {
  const auto within = static_cast<uint32_t>(size & (kBlockSize - 1));
  if (within == 0) return;
  if (Block* block = find(size >> kBlockShift); block != nullptr) {
    std::memset(block->data + within, 0, kBlockSize - within);
  }
  if (!shadow_) return;
  const auto kept = shadow_->stable.find(size >> kBlockShift);
  if (kept != shadow_->stable.end() && kept->second != nullptr) {
    std::memset(kept->second->data + within, 0, kBlockSize - within);
  }
}

/// Frees blocks from number `first` on below `node`. True: nothing is left of it.
bool FileData::prune(DataSpace& space, Node* node, uint32_t level, uint64_t base, uint64_t first) {
  const uint32_t shift = level * kFanoutShift;
  bool empty = true;
  for (uint32_t i = 0; i < kFanout; ++i) {
    void*& child = node->child[i];
    if (child == nullptr) continue;
    const uint64_t begin = base + (uint64_t{i} << shift);
    const uint64_t end = begin + (uint64_t{1} << shift);
    if (end <= first) {
      empty = false;
    } else if (level == 0) {
      space.pool.release(static_cast<Block*>(child));
      space.quota.refund(kBlockSize);
      used_ -= kBlockSize;
      child = nullptr;
    } else if (prune(space, static_cast<Node*>(child), level - 1, begin, first)) {
      child = nullptr;
    } else {
      empty = false;
    }
  }
  if (empty) delete node;
  return empty;
}

void FileData::drop_blocks(DataSpace& space, uint64_t first) {
  if (root_ != nullptr && prune(space, root_, height_ - 1, 0, first)) {
    root_ = nullptr;
    height_ = 0;
  }
  if (!shadow_) return;
  const auto begin = shadow_->stable.lower_bound(first);
  for (auto kept = begin; kept != shadow_->stable.end(); ++kept) {
    if (kept->second != nullptr) space.pool.release(kept->second);
  }
  shadow_->stable.erase(begin, shadow_->stable.end());
}

bool FileData::resize(DataSpace& space, uint64_t size) {
  if (space.synthetic && !charge_size(space, size)) return false;
  if (size < size_ && !space.synthetic) {
    drop_blocks(space, blocks_below(size));
    zero_tail(size);
  }
  size_ = size;
  if (shadow_) shadow_->size = size;
  return true;
}

void FileData::commit(DataSpace& space, uint64_t offset, uint32_t count) {
  if (!shadow_) return;
  const uint64_t end = count == 0 ? size_ : std::min(size_, offset + count);
  for (auto kept = shadow_->stable.lower_bound(offset >> kBlockShift);
       kept != shadow_->stable.end() && (kept->first << kBlockShift) < end;) {
    const uint64_t block_begin = kept->first << kBlockShift;
    const uint64_t from = std::max(offset, block_begin);
    const uint64_t to = std::min(end, block_begin + kBlockSize);
    if (from == block_begin && to == std::min(size_, block_begin + kBlockSize)) {
      if (kept->second != nullptr) space.pool.release(kept->second);
      kept = shadow_->stable.erase(kept);
      continue;
    }
    if (kept->second == nullptr) kept->second = space.pool.allocate(true);
    if (kept->second != nullptr && from < to) {
      std::memcpy(kept->second->data + (from - block_begin),
                  find(kept->first)->data + (from - block_begin), to - from);
    }
    ++kept;
  }
  shadow_->size = std::max(shadow_->size, end);
  if (shadow_->stable.empty() && shadow_->size == size_) shadow_.reset();
}

bool FileData::revert(DataSpace& space) {
  if (!shadow_) return false;
  const std::unique_ptr<Shadow> shadow = std::move(shadow_);
  for (const auto& [number, stable] : shadow->stable) {
    Block** place = slot(number);
    assert(place != nullptr && *place != nullptr);
    space.pool.release(*place);
    *place = stable;
    if (stable == nullptr) {
      space.quota.refund(kBlockSize);
      used_ -= kBlockSize;
    }
  }
  return resize(space, shadow->size);
}

void FileData::clear(DataSpace& space) {
  if (space.synthetic) {
    charge_size(space, 0);
  } else {
    drop_blocks(space, 0);
  }
  shadow_.reset();
  size_ = 0;
}

}  // namespace nfsrdma::memd
