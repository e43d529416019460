// SPDX-License-Identifier: GPL-2.0-or-later
// The file system in memory: everything NFSv3 can do to it, without a word of XDR.
//
// Threads: every method may be called from any thread. The locks:
//  - an inode's own lock guards its attributes and contents. READ, GETATTR, LOOKUP, READDIR take
//    it shared, WRITE, COMMIT, SETATTR exclusive. Calls on different files share no lock.
//  - the tree lock serialises what changes names (CREATE ... RENAME). It is taken before any
//    inode's lock.
//  - at most one inode's lock is held by a thread at any time, so their order is no matter.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "inode.h"

namespace nfsrdma::memd {

struct StoreOptions {
  uint64_t capacity = uint64_t{1} << 30;  ///< bytes of file data, in whole blocks
  uint32_t files_max = 1u << 20;          ///< inodes, directories included
  uint32_t handle_length = 32;            ///< 8 to 64
  bool read_only = false;
  bool check_access = false;  ///< mode bits count; else everyone may do everything
  bool lossy = false;
  bool synthetic = false;
  std::vector<std::string> exports = {"/export"};
};

/// What CREATE, MKDIR, SYMLINK or MKNOD is to make.
struct CreateRequest {
  FileType type = FileType::kReg;
  CreateMode mode = CreateMode::kGuarded;
  uint64_t verifier = 0;  ///< kExclusive
  Sattr attributes;
  std::string_view symlink;
  uint32_t rdev_major = 0;
  uint32_t rdev_minor = 0;
};

struct Found {
  Ref ref;
  Fattr attributes;
};

struct ReadResult {
  uint32_t count = 0;
  bool eof = false;
  uint32_t span_count = 0;
  PostOp attributes;
};

struct WriteResult {
  uint32_t count = 0;
  uint64_t verifier = 0;
  Wcc wcc;
};

struct DirectoryEntry {
  uint64_t cookie = 0;
  uint64_t fileid = 0;
  Ref child;
  std::string name;
};

struct Usage {
  uint64_t total_bytes, free_bytes, total_files, free_files;
};

class Store {
 public:
  explicit Store(const StoreOptions& options);
  ~Store();

  // Handles.
  [[nodiscard]] uint32_t handle_length() const { return options_.handle_length; }
  /// Writes handle_length() bytes.
  void make_handle(const Ref& ref, std::byte* to) const;
  /// BADHANDLE: not of our making; STALE: no such inode now. The generation is compared by the
  /// methods below.
  Stat resolve(ConstBytes handle, Ref& ref) const;

  [[nodiscard]] const std::vector<std::string>& exports() const { return options_.exports; }
  [[nodiscard]] Ref root(size_t export_index) const { return roots_[export_index]; }

  // RFC 1813 section 3.3, in its order. PostOp and Wcc are filled on errors too, where possible.
  Stat getattr(const Ref& ref, Fattr& attributes);
  Stat setattr(const Credentials& who, const Ref& ref, const Sattr& changes,
               const NfsTime* guard_ctime, Wcc& wcc);
  Stat lookup(const Credentials& who, const Ref& dir, std::string_view name, Found& found,
              PostOp& dir_after);
  Stat access(const Credentials& who, const Ref& ref, uint32_t wanted, uint32_t& granted,
              PostOp& after);
  Stat readlink(const Ref& ref, std::string& target, PostOp& after);
  Stat read(const Credentials& who, const Ref& ref, uint64_t offset, uint32_t count,
            std::span<BulkSpan, kBulkSpansMax> spans, ReadResult& result);
  Stat write(const Credentials& who, const Ref& ref, uint64_t offset,
             std::span<const ConstBytes> data, StableHow stable, WriteResult& result);
  Stat create(const Credentials& who, const Ref& dir, std::string_view name,
              const CreateRequest& request, Found& created, Wcc& dir_wcc);
  Stat remove(const Credentials& who, const Ref& dir, std::string_view name, bool rmdir,
              Wcc& dir_wcc);
  Stat rename(const Credentials& who, const Ref& from_dir, std::string_view from_name,
              const Ref& to_dir, std::string_view to_name, Wcc& from_wcc, Wcc& to_wcc);
  Stat link(const Credentials& who, const Ref& file, const Ref& dir, std::string_view name,
            PostOp& file_after, Wcc& dir_wcc);
  /// Up to `entries_max` entries behind `cookie`; `eof`: none follow them.
  Stat readdir(const Credentials& who, const Ref& dir, uint64_t cookie, uint32_t entries_max,
               std::vector<DirectoryEntry>& entries, bool& eof, PostOp& dir_after);
  [[nodiscard]] Usage usage() const;
  Stat commit(const Credentials& who, const Ref& ref, uint64_t offset, uint32_t count,
              WriteResult& result);

  /// As a restart of a server does: the write verifier changes, and with `lossy` the data of
  /// UNSTABLE writes not committed since are gone. Each file notices at its next call, under its
  /// lock: a WRITE or COMMIT answers with the old verifier exactly if it came before the loss.
  /// Only an atomic is touched here, so a signal handler may call it.
  void simulate_restart() { restarts_.fetch_add(1); }

  /// Gives back the pins of a READ.
  void release(std::span<const BulkSpan> spans) {
    for (const BulkSpan& span : spans) {
      if (span.pin != nullptr) space_.pool.release(span.pin);
    }
  }

  [[nodiscard]] bool read_only() const { return options_.read_only; }

 private:
  static constexpr uint32_t kChunkInodes = 1024;
  static constexpr uint32_t kChunksMax = 1u << 14;
  struct Chunk {
    std::array<Inode, kChunkInodes> inodes;
  };

  [[nodiscard]] uint64_t verifier_of(uint64_t restarts) const;
  void catch_up(Inode& inode, uint64_t restarts);
  bool may(const Credentials& who, const Inode& inode, uint32_t mode_bits) const;
  Stat check_setattr(const Credentials& who, const Inode& inode, const Sattr& changes) const;
  Stat apply(Inode& inode, const Sattr& changes);
  Stat check_directory(const Credentials& who, const Ref& dir, std::string_view name, Wcc& wcc);
  Inode* new_inode(FileType type, uint32_t export_index);
  void free_inode(Inode& inode);
  Stat make(const Credentials& who, const Ref& dir, const CreateRequest& request, Ref& made);
  Stat existing(const CreateRequest& request, const Ref& child, Found& created);
  void drop_link(const Ref& child);
  void add_entry(const Ref& dir, std::string_view name, const Ref& child, bool subdirectory,
                 Wcc& wcc);
  void remove_entry(const Ref& dir, std::string_view name, bool subdirectory, Wcc& wcc);
  Stat check_target(const Ref& from, const Ref& target);
  bool is_below(const Ref& dir, const Ref& ancestor);

  const StoreOptions options_;
  DataSpace space_;
  std::byte handle_fill_[kHandleMax] = {};  ///< what a handle says behind index and generation
  uint64_t boot_verifier_ = 0;
  std::atomic<uint64_t> restarts_{0};

  std::mutex tree_lock_;
  uint64_t next_fileid_ = 1;
  uint32_t inodes_made_ = 0;
  std::vector<uint32_t> free_indices_;
  std::atomic<uint32_t> inodes_in_use_{0};
  std::unique_ptr<std::atomic<Chunk*>[]> chunks_;
  std::vector<Ref> roots_;
};

}  // namespace nfsrdma::memd
