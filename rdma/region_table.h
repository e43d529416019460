// SPDX-License-Identifier: GPL-2.0-or-later
// Which registered region holds a buffer: a few ranges, sorted, found without a search as long as
// calls stay within one of them. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fabric.h"

namespace nfsrdma {

constexpr size_t kRegionsMax = 4096;

class RegionTable {
 public:
  void add(Bytes memory, RegionId region) {
    const Range range{address(memory.data()), address(memory.data()) + memory.size(), region};
    const auto behind =
        std::upper_bound(ranges_.begin(), ranges_.end(), range,
                         [](const Range& a, const Range& b) { return a.begin < b.begin; });
    ranges_.insert(behind, range);
    last_ = 0;
  }

  /// The region that holds all of `memory`, or kNoRegion.
  [[nodiscard]] RegionId find(ConstBytes memory) {
    const uintptr_t begin = address(memory.data());
    const uintptr_t end = begin + memory.size();
    if (last_ < ranges_.size() && ranges_[last_].holds(begin, end)) return ranges_[last_].region;
    // Regions may overlap, so of those that begin before the buffer any may hold it.
    for (size_t i = ranges_.size(); i-- > 0;) {
      if (!ranges_[i].holds(begin, end)) continue;
      last_ = i;
      return ranges_[i].region;
    }
    return kNoRegion;
  }

  [[nodiscard]] size_t size() const { return ranges_.size(); }

 private:
  struct Range {
    uintptr_t begin;
    uintptr_t end;
    RegionId region;
    [[nodiscard]] bool holds(uintptr_t from, uintptr_t to) const {
      return begin <= from && to <= end;
    }
  };
  static uintptr_t address(const std::byte* at) { return reinterpret_cast<uintptr_t>(at); }

  std::vector<Range> ranges_;
  size_t last_ = 0;
};

}  // namespace nfsrdma
