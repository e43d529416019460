// SPDX-License-Identifier: GPL-2.0-or-later
// Kept data: the bytes of UNSTABLE writes, held until a COMMIT whose verifier equals each WRITE's
// (RFC 1813 sections 3.3.7, 3.3.21 and 4.8), so that they can be sent again when the server lost
// them.
//
// An interval map for each file says which bytes are the newest: a newer write replaces the older
// one's bytes, so a resend carries current bytes only. No WRITE to a range may be sent while
// another to it is on its way, since the two could arrive in either order. A READ's data are
// laid over with the kept bytes of its range: after a restart the server has older ones.
//
// The bytes lie in one ring of memory made at start. Space comes back in the order in which it
// was taken, which fits COMMITs that cover whole files. One thread; no allocation after start.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "nfs3_data.h"
#include "node_pool.h"
#include "xdr.h"

namespace nfsrdma {

enum class ExtentState : uint8_t {
  kSending,  ///< its first WRITE is on its way
  kKept,     ///< written UNSTABLE
  kLost,     ///< the server has lost it, to be sent again
  kResending
};

struct Extent {
  uint64_t start = 0;  ///< byte offset in the file
  uint64_t end = 0;
  uint32_t entry = 0;  ///< of the ring
  ExtentState state = ExtentState::kSending;
  WriteVerifier verifier = 0;
  uint64_t stamp = 0;  ///< orders WRITE replies and COMMIT calls
};

using ExtentMap =
    std::map<uint64_t, Extent, std::less<>, PoolAllocator<std::pair<const uint64_t, Extent>>>;

/// Kept data of one file. Owned by whoever owns the file, made with WriteBack::new_file().
struct KeptFile {
  explicit KeptFile(NodePool* pool)
      : extents(PoolAllocator<std::pair<const uint64_t, Extent>>(pool)) {}
  ExtentMap extents;
  uint64_t kept_bytes = 0;   ///< of extents in state kKept
  uint32_t lost = 0;         ///< extents in state kLost or kResending
  uint32_t resending = 0;    ///< of these, in state kResending
  uint64_t lost_cursor = 0;  ///< where to look for the next kLost one
};

class WriteBack {
 public:
  /// `bytes`: of kept data at most; `extents_max` bounds their number. 0 bytes: keeps nothing.
  WriteBack(uint64_t bytes, uint32_t extents_max);

  [[nodiscard]] bool enabled() const { return capacity_ != 0; }
  [[nodiscard]] Bytes memory() { return {memory_.get(), capacity_}; }
  [[nodiscard]] KeptFile new_file() { return KeptFile(&nodes_); }

  enum class Refusal : uint8_t { kNone, kOverlap, kFull };
  struct Admission {
    Refusal refusal = Refusal::kNone;
    Extent* extent = nullptr;
    Bytes data;
  };

  /// Takes a range in as kSending, its bytes still to be filled in. Refused while an overlapping
  /// WRITE is on its way, or when there is no room. `length` is at most the ring's half.
  Admission admit(KeptFile& file, uint64_t offset, uint32_t length);

  /// The bytes of an extent.
  [[nodiscard]] Bytes data(const Extent& extent);

  /// The WRITE of `extent` succeeded UNSTABLE: kept from here on.
  void written(KeptFile& file, Extent* extent, WriteVerifier verifier);
  /// The extent is stable, or given up: forgets it.
  void forget(KeptFile& file, Extent* extent);

  /// To be called when a COMMIT is sent: only what was written before is covered by it.
  [[nodiscard]] uint64_t stamp() const { return stamp_; }
  /// A COMMIT sent at `stamp` answered with `verifier`: forgets what is stable, marks what was
  /// lost. Returns the number of extents lost.
  uint32_t committed(KeptFile& file, uint64_t stamp, WriteVerifier verifier);
  /// Gives up all that is kept or lost of a file; returns the number of extents.
  uint32_t drop(KeptFile& file);

  /// A lost extent, now kResending, or nullptr.
  Extent* next_lost(KeptFile& file);
  /// The extent, kept or being resent, has to be sent again.
  void lose(KeptFile& file, Extent* extent);

  /// Lays kept bytes over `to`, which holds the file's bytes from `offset` on.
  void overlay(const KeptFile& file, uint64_t offset, Bytes to);

  /// Up to where in [start, end) the kept bytes make the file reach: a hole before one is part of
  /// the file. `start` when none is kept behind it.
  [[nodiscard]] static uint64_t end_within(const KeptFile& file, uint64_t start, uint64_t end);

  [[nodiscard]] uint64_t used() const { return used_; }

 private:
  struct Entry {
    uint64_t at = 0;      // in memory_
    uint64_t length = 0;  // with what was skipped at the ring's end
    uint64_t start = 0;   // file offset of its first byte
    uint32_t extents = 0;
  };

  void replace(KeptFile& file, uint64_t start, uint64_t end);
  void release(uint32_t entry);
  void set_state(KeptFile& file, Extent& extent, ExtentState state);
  ExtentMap::iterator first_overlap(KeptFile& file, uint64_t start);

  uint64_t capacity_;
  std::unique_ptr<std::byte[]> memory_;
  NodePool nodes_;
  std::vector<Entry> entries_;
  uint32_t oldest_ = 0;  // of entries_, counted without wrap
  uint32_t next_ = 0;
  uint64_t write_at_ = 0;
  uint64_t used_ = 0;
  uint64_t stamp_ = 1;
};

}  // namespace nfsrdma
