// SPDX-License-Identifier: GPL-2.0-or-later
#include "block_pool.h"

#include <sys/mman.h>

#include <cstring>

namespace nfsrdma::memd {

namespace {
constexpr size_t kHugePage = size_t{2} << 20;
constexpr uint32_t kArenaBlocks = 1024;
constexpr size_t kArenaBytes = size_t{kArenaBlocks} * kBlockSize;
}  // namespace

BlockPool::~BlockPool() {
  for (const Arena& arena : arenas_) munmap(arena.mapping, kArenaBytes + kHugePage);
}

bool BlockPool::add_arena() {
  void* mapping = mmap(nullptr, kArenaBytes + kHugePage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return false;
  Arena arena;
  arena.mapping = mapping;
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  arena.begin = static_cast<std::byte*>(mapping) + (kHugePage - address % kHugePage) % kHugePage;
  madvise(arena.begin, kArenaBytes, MADV_HUGEPAGE);  // only a hint: works without, too
  arena.blocks = std::make_unique<Block[]>(kArenaBlocks);
  arenas_.push_back(std::move(arena));
  return true;
}

Block* BlockPool::allocate(bool zeroed) {
  Block* block = nullptr;
  bool fresh = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (free_ != nullptr) {
      block = free_;
      free_ = block->next_free;
    } else {
      if (arenas_.empty() || arenas_.back().used == kArenaBlocks) {
        if (!add_arena()) return nullptr;
      }
      Arena& arena = arenas_.back();
      block = &arena.blocks[arena.used];
      block->data = arena.begin + size_t{arena.used} * kBlockSize;
      ++arena.used;
      fresh = true;
    }
  }
  if (zeroed && !fresh) std::memset(block->data, 0, kBlockSize);
  block->references.store(1, std::memory_order_relaxed);
  return block;
}

void BlockPool::recycle(Block* block) {
  const std::lock_guard<std::mutex> guard(mutex_);
  block->next_free = free_;
  free_ = block;
}

const std::byte* zero_block() {
  alignas(4096) static const std::byte zeros[kBlockSize] = {};
  return zeros;
}

}  // namespace nfsrdma::memd
