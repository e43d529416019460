// SPDX-License-Identifier: GPL-2.0-or-later
#include "verbs_keys.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace nfsrdma::verbs {
namespace {

// The low byte of a key is the consumer's, and changes with each binding.
constexpr uint32_t kConsumerBits = 8;

}  // namespace

Result<void> WindowPool::open(ibv_pd* pd, uint32_t count) {
  windows_.reserve(count);
  free_.reserve(count);
  by_index_.reserve(count);
  for (uint32_t slot = 0; slot < count; ++slot) {
    ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    if (mw == nullptr) {
      const int code = errno;
      close();
      return fail(code, "the RDMA device gave " + std::to_string(slot) + " of " +
                            std::to_string(count) + " memory windows: " + strerror(code));
    }
    windows_.push_back({mw, mw->rkey, false});
    by_index_.push_back({mw->rkey >> kConsumerBits, slot});
    free_.push_back(slot);
  }
  std::sort(by_index_.begin(), by_index_.end(),
            [](const Named& a, const Named& b) { return a.index < b.index; });
  return {};
}

void WindowPool::close() {
  for (const Window& window : windows_) ibv_dealloc_mw(window.mw);
  windows_.clear();
  free_.clear();
  by_index_.clear();
}

uint32_t WindowPool::take() {
  if (free_.empty()) return kNoKeySlot;
  const uint32_t slot = free_.back();
  free_.pop_back();
  windows_[slot].taken = true;
  return slot;
}

void WindowPool::give_back(uint32_t slot) {
  if (!windows_[slot].taken) return;
  windows_[slot].taken = false;
  free_.push_back(slot);
}

uint32_t WindowPool::next_key(uint32_t slot) {
  windows_[slot].key = ibv_inc_rkey(windows_[slot].mw->rkey);
  return windows_[slot].key;
}

uint32_t WindowPool::find(uint32_t rkey) const {
  const auto at =
      std::lower_bound(by_index_.begin(), by_index_.end(), rkey >> kConsumerBits,
                       [](const Named& named, uint32_t index) { return named.index < index; });
  if (at == by_index_.end()) return kNoKeySlot;
  const Window& window = windows_[at->slot];
  return window.taken && window.key == rkey ? at->slot : kNoKeySlot;
}

void RegistrationPool::open(uint32_t count) {
  count_ = count;
  bound_.reserve(count);
}

void RegistrationPool::close() {
  for (ibv_mr* mr : bound_) ibv_dereg_mr(mr);
  bound_.clear();
}

bool RegistrationPool::remove(uint32_t rkey) {
  const auto at = std::find_if(bound_.begin(), bound_.end(),
                               [rkey](const ibv_mr* mr) { return mr->rkey == rkey; });
  if (at == bound_.end()) return false;
  ibv_dereg_mr(*at);
  *at = bound_.back();
  bound_.pop_back();
  return true;
}

}  // namespace nfsrdma::verbs
