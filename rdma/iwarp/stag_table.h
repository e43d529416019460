// SPDX-License-Identifier: GPL-2.0-or-later
// STags (RFC 5041 section 3.2, RFC 5040 section 5): the only way from a peer's number to memory of
// ours. An STag is a class, a generation and an index; a slot that is used again gets another
// generation, so a late or forged STag finds nothing. Tagged offsets count from the start of the
// memory: the peer learns no address.
//
// One thread. Nothing is allocated after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric.h"

namespace nfsrdma::iwarp {

/// The top two bits; 0 is never given, so STag 0 is never valid.
enum class StagClass : uint32_t { kRegion = 1, kBound = 2, kReadSink = 3 };

constexpr uint32_t kStagIndexBits = 16;
constexpr uint32_t kStagGenerationBits = 14;
constexpr StagClass stag_class(uint32_t stag) {
  return static_cast<StagClass>(stag >> 30);
}
constexpr uint32_t stag_index(uint32_t stag) {
  return stag & ((1u << kStagIndexBits) - 1);
}
constexpr uint32_t make_stag(StagClass of, uint32_t generation, uint32_t index) {
  return static_cast<uint32_t>(of) << 30 |
         (generation & ((1u << kStagGenerationBits) - 1)) << kStagIndexBits | index;
}

/// Why a peer's access is refused.
enum class StagFault : uint8_t { kNone, kInvalid, kBounds, kAccess, kWrap };

class StagTable {
 public:
  /// `capacity` at most 65,536 entries.
  StagTable(StagClass of, uint32_t capacity);

  /// The STag, or 0 when the table is full.
  uint32_t insert(Bytes memory, Access access);
  /// False: no such STag.
  bool erase(uint32_t stag);
  void erase_all();

  bool valid(uint32_t stag) const {
    const uint32_t index = stag_index(stag);
    return index < entries_.size() && stag != 0 && entries_[index].stag == stag;
  }

  /// Checks an access of `length` bytes at `offset` and says where that is.
  StagFault resolve(uint32_t stag, uint64_t offset, uint64_t length, Access wanted,
                    std::byte*& at) const {
    if (!valid(stag)) return StagFault::kInvalid;
    const Entry& entry = entries_[stag_index(stag)];
    if (offset + length < offset) return StagFault::kWrap;
    if (offset + length > entry.memory.size()) return StagFault::kBounds;
    if (!has(entry.access, wanted)) return StagFault::kAccess;
    at = entry.memory.data() + offset;
    return StagFault::kNone;
  }

  /// Memory and rights of the entry with this index; empty when free.
  Bytes memory(uint32_t index) const {
    return index < entries_.size() && entries_[index].stag != 0 ? entries_[index].memory : Bytes{};
  }
  Access access(uint32_t index) const { return entries_[index].access; }
  uint32_t stag_of(uint32_t index) const {
    return index < entries_.size() ? entries_[index].stag : 0;
  }

 private:
  struct Entry {
    Bytes memory;
    Access access = Access::kNone;
    uint32_t stag = 0;  // 0: free
    uint32_t generation = 0;
  };

  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;  // a ring: the slot that has been free longest is used first
  uint32_t free_head_ = 0;
  uint32_t free_count_ = 0;
  StagClass class_;
};

}  // namespace nfsrdma::iwarp
