// SPDX-License-Identifier: GPL-2.0-or-later
// Registered memory through which data pass between the peers and the store: sinks of RDMA Reads,
// sources of RDMA Writes. Two sizes of buffer, taken and given back without allocation.
//
// Threads: one, its worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "fabric.h"
#include "service.h"

namespace nfsrdma::memd {

struct Staging {
  std::byte* at = nullptr;
  uint32_t size = 0;
  RegionId region = kNoRegion;
};

class StagingPool {
 public:
  static constexpr uint32_t kSmall = 64 * 1024;
  /// The largest call or reply: data, head, pad.
  static constexpr uint32_t kLarge = kTransferMax + 2 * kReplyHeadMax;

  Result<void> make(Fabric& fabric, uint32_t small, uint32_t large) {
    const size_t bytes = size_t{small} * kSmall + size_t{large} * kLarge;
    // Not initialised: pages that nobody needs are never touched.
    memory_.reset(static_cast<std::byte*>(operator new[](bytes, std::align_val_t{4096})));
    auto region = fabric.register_memory({memory_.get(), bytes}, Access::kLocalWrite);
    if (!region) return tl::unexpected(region.error());
    std::byte* at = memory_.get();
    for (uint32_t i = 0; i < large; ++i, at += kLarge) large_.push_back({at, kLarge, *region});
    for (uint32_t i = 0; i < small; ++i, at += kSmall) small_.push_back({at, kSmall, *region});
    return {};
  }

  /// False: none is free now. `bytes` is at most kLarge.
  bool take(size_t bytes, Staging& taken) {
    std::vector<Staging>& from = bytes <= kSmall && !small_.empty() ? small_ : large_;
    if (from.empty()) return false;
    taken = from.back();
    from.pop_back();
    return true;
  }
  void give_back(Staging& staging) {
    if (staging.at == nullptr) return;
    (staging.size == kSmall ? small_ : large_).push_back(staging);
    staging = Staging();
  }

 private:
  struct Delete {
    void operator()(std::byte* memory) const { operator delete[](memory, std::align_val_t{4096}); }
  };
  std::unique_ptr<std::byte[], Delete> memory_;
  std::vector<Staging> small_;
  std::vector<Staging> large_;
};

}  // namespace nfsrdma::memd
