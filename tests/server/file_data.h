// SPDX-License-Identifier: GPL-2.0-or-later
// The bytes of one sparse file: a tree of 512-way nodes over blocks of 64 KiB that grows in height
// with the offset (one level to 32 MiB, two to 16 GiB, six for all of 2^63).
//
// With `lossy`, a block touched by an UNSTABLE WRITE keeps its last stable content beside the
// current one until a COMMIT covers it; revert() puts the stable content and size back, as a
// server does that restarts with a write-back cache. Without `lossy` nothing of that costs
// anything.
//
// Threads: none of its own; the inode's lock guards it (shared for read(), exclusive for the rest).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "block_pool.h"
#include "xdr.h"

namespace nfsrdma::memd {

/// Where and how file data are kept; one for a whole store.
struct DataSpace {
  BlockPool pool;
  Quota quota;
  bool lossy = false;      ///< UNSTABLE data are lost by revert() unless committed
  bool synthetic = false;  ///< sizes only: READ returns a fixed pattern, WRITE drops the data

  explicit DataSpace(uint64_t capacity) : quota(capacity) {}
};

/// Part of the data of a READ's reply; valid until the pin is released.
struct BulkSpan {
  const std::byte* data = nullptr;
  uint32_t length = 0;
  Block* pin = nullptr;  ///< nullptr: memory that lives for ever
};

/// Most spans of a transfer of kTransferMax bytes at an odd offset.
constexpr uint32_t kBulkSpansMax = (1u << 20) / kBlockSize + 1;

class FileData {
 public:
  FileData() = default;
  ~FileData();
  FileData(const FileData&) = delete;
  FileData& operator=(const FileData&) = delete;

  [[nodiscard]] uint64_t size() const { return size_; }
  /// Bytes of blocks held (fattr3.used).
  [[nodiscard]] uint64_t used() const { return used_; }

  /// Pins and lists the data from `offset`; the range must lie within the size and be at most
  /// 1 MiB long. Returns the number of spans.
  uint32_t read(const DataSpace& space, uint64_t offset, uint32_t count,
                std::span<BulkSpan, kBulkSpansMax> spans) const;

  /// Stores `data` one after another from `offset`. Returns the bytes stored: fewer than given
  /// when the quota or the machine's memory ends.
  uint32_t write(DataSpace& space, uint64_t offset, std::span<const ConstBytes> data,
                 bool unstable);

  /// Sets the size; data beyond it are gone, new bytes are zero. Stable at once. False: synthetic
  /// and the quota does not cover it.
  bool resize(DataSpace& space, uint64_t size);

  /// Makes uncommitted data of the range stable; `count` 0 means to the end (RFC 1813 COMMIT).
  void commit(DataSpace& space, uint64_t offset, uint32_t count);

  /// Drops uncommitted data. True: something was lost.
  bool revert(DataSpace& space);

  /// Frees everything; must be called before destruction.
  void clear(DataSpace& space);

 private:
  struct Node;
  struct Shadow {
    std::map<uint64_t, Block*> stable;  ///< by block number; nullptr: a hole
    uint64_t size = 0;
  };

  Block* find(uint64_t number) const;
  Block** slot(uint64_t number);
  Block* writable_block(DataSpace& space, uint64_t number, bool whole, bool unstable);
  bool write_piece(DataSpace& space, uint64_t offset, ConstBytes piece, bool unstable);
  bool charge_size(DataSpace& space, uint64_t size);
  void zero_tail(uint64_t size);
  bool prune(DataSpace& space, Node* node, uint32_t level, uint64_t base, uint64_t first);
  void drop_blocks(DataSpace& space, uint64_t first);

  Node* root_ = nullptr;
  uint32_t height_ = 0;  ///< levels of nodes
  uint64_t size_ = 0;
  uint64_t used_ = 0;
  std::unique_ptr<Shadow> shadow_;
};

}  // namespace nfsrdma::memd
