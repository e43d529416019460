// SPDX-License-Identifier: GPL-2.0-or-later
// Inodes, directories and the attributes that NFSv3 shows of them.
//
// Lifetime: inodes live in a table and are never given back to the allocator while the store
// lives; a slot that is used again gets another generation. So a Ref can be followed at any time:
// take the inode's lock, then compare generations (`alive`); a difference is NFS3ERR_STALE.
#pragma once

#include <ctime>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "file_data.h"
#include "nfs3_proto.h"

namespace nfsrdma::memd {

struct NfsTime {
  uint32_t seconds = 0;
  uint32_t nseconds = 0;

  bool operator==(const NfsTime&) const = default;
  auto operator<=>(const NfsTime&) const = default;
};

inline NfsTime nfs_now() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return {static_cast<uint32_t>(now.tv_sec), static_cast<uint32_t>(now.tv_nsec)};
}

/// fattr3 (RFC 1813 section 2.6).
struct Fattr {
  FileType type = FileType::kReg;
  uint32_t mode = 0;
  uint32_t nlink = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;
  uint64_t used = 0;
  uint32_t rdev_major = 0;
  uint32_t rdev_minor = 0;
  uint64_t fsid = 0;
  uint64_t fileid = 0;
  NfsTime atime;
  NfsTime mtime;
  NfsTime ctime;
};

struct PostOp {
  bool follows = false;
  Fattr attributes;
};

/// wcc_data: what the client needs to tell its own change from another's.
struct Wcc {
  bool before_follows = false;
  uint64_t before_size = 0;
  NfsTime before_mtime;
  NfsTime before_ctime;
  PostOp after;
};

/// sattr3.
struct Sattr {
  bool set_mode = false, set_uid = false, set_gid = false, set_size = false;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;
  TimeHow atime_how = TimeHow::kDontChange;
  TimeHow mtime_how = TimeHow::kDontChange;
  NfsTime atime;
  NfsTime mtime;
};

/// Who calls, from AUTH_SYS; AUTH_NONE calls as nobody.
struct Credentials {
  uint32_t uid = 65534;
  uint32_t gid = 65534;
  uint32_t groups[kAuthSysGroupsMax] = {};
  uint32_t group_count = 0;
};

struct Inode;

/// What a file handle says: an inode, if its generation still holds.
struct Ref {
  Inode* inode = nullptr;
  uint32_t generation = 0;
};

/// Entries by cookie. Cookies only grow, so a READDIR goes on at the right place whatever was
/// removed or added between its calls.
class Directory {
 public:
  struct Entry {
    std::string name;
    Ref child;
    uint64_t fileid = 0;
  };

  static constexpr uint64_t kCookieDot = 1;
  static constexpr uint64_t kCookieDotdot = 2;

  [[nodiscard]] const Entry* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &by_cookie_.find(found->second)->second;
  }
  void add(std::string_view name, Ref child, uint64_t fileid) {
    const uint64_t cookie = next_cookie_++;
    const auto at =
        by_cookie_.emplace_hint(by_cookie_.end(), cookie, Entry{std::string(name), child, fileid});
    by_name_.emplace(at->second.name, cookie);
  }
  void remove(std::string_view name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return;
    const uint64_t cookie = found->second;
    by_name_.erase(found);
    by_cookie_.erase(cookie);
  }
  [[nodiscard]] const std::map<uint64_t, Entry>& entries() const { return by_cookie_; }
  [[nodiscard]] bool empty() const { return by_cookie_.empty(); }

  Ref parent;  ///< of a root: itself
  uint64_t parent_fileid = 0;

 private:
  uint64_t next_cookie_ = kCookieDotdot + 1;
  std::map<uint64_t, Entry> by_cookie_;
  std::unordered_map<std::string_view, uint64_t> by_name_;  ///< keys point into by_cookie_
};

struct Inode {
  std::shared_mutex lock;  ///< guards everything below but `index`
  uint32_t index = 0;      ///< place in the table; never changes
  uint32_t generation = 0;
  bool in_use = false;
  bool was_exclusive = false;  ///< made by an EXCLUSIVE CREATE, `create_verifier` says by which
  uint32_t export_index = 0;
  uint64_t restarts_seen = 0;  ///< see Store::simulate_restart()
  uint64_t create_verifier = 0;
  Fattr attributes;  ///< size and used of regular files stand in `data`
  FileData data;
  std::unique_ptr<Directory> directory;
  std::string symlink;

  [[nodiscard]] bool alive(const Ref& ref) const { return in_use && generation == ref.generation; }
  [[nodiscard]] Fattr snapshot() const {
    Fattr now = attributes;
    if (now.type == FileType::kReg) {
      now.size = data.size();
      now.used = data.used();
    }
    return now;
  }
  /// A ctime never stands still or goes back, so that guards and wcc data tell two changes apart.
  void touch(bool modified) {
    NfsTime now = nfs_now();
    if (now <= attributes.ctime) {
      now = attributes.ctime;
      if (++now.nseconds == 1'000'000'000u) now = {now.seconds + 1, 0};
    }
    attributes.ctime = now;
    if (modified) attributes.mtime = now;
  }
};

/// wcc_attr: taken in the same critical section as the change itself.
inline void fill_before(Wcc& wcc, const Inode& inode) {
  const bool file = inode.attributes.type == FileType::kReg;
  wcc.before_follows = true;
  wcc.before_size = file ? inode.data.size() : inode.attributes.size;
  wcc.before_mtime = inode.attributes.mtime;
  wcc.before_ctime = inode.attributes.ctime;
}

inline void fill_after(Wcc& wcc, const Inode& inode) {
  wcc.after = {true, inode.snapshot()};
}

}  // namespace nfsrdma::memd
