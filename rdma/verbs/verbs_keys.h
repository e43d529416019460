// SPDX-License-Identifier: GPL-2.0-or-later
// Keys for one call each: memory windows of type 2, or a registration a key where the device has
// none. Owned by one connection; nothing is allocated after open().
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "result.h"

namespace nfsrdma::verbs {

constexpr uint32_t kNoKeySlot = UINT32_MAX;

class WindowPool {
 public:
  WindowPool() = default;
  WindowPool(const WindowPool&) = delete;
  WindowPool& operator=(const WindowPool&) = delete;
  ~WindowPool() { close(); }

  Result<void> open(ibv_pd* pd, uint32_t count);
  /// Every window dies, bound or not: before the queue pair that they are bound to.
  void close();

  /// A free window, or kNoKeySlot.
  uint32_t take();
  void give_back(uint32_t slot);
  /// The slot of the bound window that has this key, or kNoKeySlot.
  uint32_t find(uint32_t rkey) const;
  ibv_mw* window(uint32_t slot) const { return windows_[slot].mw; }
  /// The key that the window's next binding shall have, found by find() from then on. The window
  /// itself keeps the one before until the binding is posted: the device finds it by that.
  uint32_t next_key(uint32_t slot);
  void posted(uint32_t slot) { windows_[slot].mw->rkey = windows_[slot].key; }

 private:
  struct Window {
    ibv_mw* mw = nullptr;
    uint32_t key = 0;
    bool taken = false;
  };
  struct Named {
    uint32_t index;  // the part of a key that stays when the window is bound anew
    uint32_t slot;
  };

  std::vector<Window> windows_;
  std::vector<uint32_t> free_;
  std::vector<Named> by_index_;  // sorted
};

class RegistrationPool {
 public:
  RegistrationPool() = default;
  RegistrationPool(const RegistrationPool&) = delete;
  RegistrationPool& operator=(const RegistrationPool&) = delete;
  ~RegistrationPool() { close(); }

  void open(uint32_t count);
  void close();
  bool full() const { return bound_.size() == count_; }
  void add(ibv_mr* mr) { bound_.push_back(mr); }
  /// False: no key of ours.
  bool remove(uint32_t rkey);

 private:
  std::vector<ibv_mr*> bound_;
  uint32_t count_ = 0;
};

}  // namespace nfsrdma::verbs
