// SPDX-License-Identifier: GPL-2.0-or-later
// A fixed number of equal pieces of memory, so that a std::map does not allocate in the data path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace nfsrdma {

/// One thread. The user bounds the number of nodes in use; running out is a fault of the program
/// and throws std::bad_alloc.
class NodePool {
 public:
  static constexpr size_t kNodeBytes = 128;

  explicit NodePool(uint32_t nodes) : memory_(new Node[nodes]), nodes_(nodes) {
    for (uint32_t i = 0; i < nodes; ++i)
      memory_[i].next = i + 1 < nodes ? &memory_[i + 1] : nullptr;
    free_ = nodes == 0 ? nullptr : &memory_[0];
  }

  void* take() {
    if (free_ == nullptr) throw std::bad_alloc();
    Node* node = free_;
    free_ = node->next;
    ++used_;
    return node;
  }

  void give(void* memory) {
    Node* node = static_cast<Node*>(memory);
    node->next = free_;
    free_ = node;
    --used_;
  }

  [[nodiscard]] uint32_t available() const { return nodes_ - used_; }

 private:
  union Node {
    Node* next;
    alignas(std::max_align_t) std::byte bytes[kNodeBytes];
  };
  std::unique_ptr<Node[]> memory_;
  uint32_t nodes_;
  uint32_t used_ = 0;
  Node* free_ = nullptr;
};

/// Allocator for node containers over a NodePool, which must outlive them.
template <typename T>
class PoolAllocator {
 public:
  using value_type = T;
  explicit PoolAllocator(NodePool* pool) : pool_(pool) {}
  template <typename U>
  PoolAllocator(const PoolAllocator<U>& other) : pool_(other.pool()) {}  // NOLINT: rebinding

  T* allocate(size_t count) {
    static_assert(sizeof(T) <= NodePool::kNodeBytes);
    if (count != 1) throw std::bad_alloc();
    return static_cast<T*>(pool_->take());
  }
  void deallocate(T* memory, size_t) { pool_->give(memory); }

  [[nodiscard]] NodePool* pool() const { return pool_; }
  friend bool operator==(const PoolAllocator& a, const PoolAllocator& b) {
    return a.pool_ == b.pool_;
  }

 private:
  NodePool* pool_;
};

}  // namespace nfsrdma
