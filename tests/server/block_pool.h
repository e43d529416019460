// SPDX-License-Identifier: GPL-2.0-or-later
// Memory for file data: blocks of 64 KiB with a reference count, cut from large mappings.
//
// A block in a file has one reference of that file. A READ pins the blocks of its reply with one
// more each, so their memory stays valid until the transport has sent it, though the file is
// truncated or removed meanwhile. Bytes are changed in place: a WRITE that runs at the same time
// as a READ of the same bytes may be seen in part, as on any server that sends from its page
// cache (the client has not had the READ's reply, so it cannot tell the two orders apart).
//
// Threads: allocate() and release() from any; a mutex is taken only when a block changes hands
// between the pool and a file, never to pin or unpin one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace nfsrdma::memd {

constexpr uint32_t kBlockShift = 16;
constexpr uint32_t kBlockSize = 1u << kBlockShift;

struct Block {
  std::atomic<uint32_t> references{0};
  std::byte* data = nullptr;
  Block* next_free = nullptr;
};

class BlockPool {
 public:
  BlockPool() = default;
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// A block with one reference, or nullptr when the machine gives no more memory. Its bytes are
  /// zero if `zeroed`, else anything.
  Block* allocate(bool zeroed);

  static void pin(Block* block) { block->references.fetch_add(1, std::memory_order_relaxed); }

  /// Gives back one reference; the last one returns the block to the pool.
  void release(Block* block) {
    if (block->references.fetch_sub(1, std::memory_order_acq_rel) == 1) recycle(block);
  }

 private:
  struct Arena {
    void* mapping = nullptr;
    std::byte* begin = nullptr;
    std::unique_ptr<Block[]> blocks;
    uint32_t used = 0;
  };

  void recycle(Block* block);
  bool add_arena();

  std::mutex mutex_;
  std::vector<Arena> arenas_;
  Block* free_ = nullptr;
};

/// Bytes that a store may hold, charged by whole blocks.
class Quota {
 public:
  explicit Quota(uint64_t capacity) : capacity_(capacity) {}

  bool charge(uint64_t bytes) {
    const uint64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (before <= capacity_ && capacity_ - before >= bytes) return true;
    refund(bytes);
    return false;
  }
  void refund(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  [[nodiscard]] uint64_t capacity() const { return capacity_; }
  [[nodiscard]] uint64_t available() const {
    const uint64_t used = used_.load(std::memory_order_relaxed);
    return used < capacity_ ? capacity_ - used : 0;
  }

 private:
  const uint64_t capacity_;
  std::atomic<uint64_t> used_{0};
};

/// A block of zeros, for holes. Never written, never freed.
const std::byte* zero_block();

}  // namespace nfsrdma::memd
