// SPDX-License-Identifier: GPL-2.0-or-later
// Names: LOOKUP, READDIR, and what changes directories.
//
// Whoever holds the tree lock may read any directory's entries without that directory's own lock,
// since entries change only under both; attributes need the inode's lock always.
#include <algorithm>
#include <cassert>

#include "store.h"

namespace nfsrdma::memd {

namespace {

using Exclusive = std::unique_lock<std::shared_mutex>;
using Shared = std::shared_lock<std::shared_mutex>;

bool is_dot(std::string_view name) {
  return name == ".";
}
bool is_dotdot(std::string_view name) {
  return name == "..";
}

Stat check_name(std::string_view name) {
  if (name.size() > kNameMax) return Stat::kNametoolong;
  if (name.empty() || name.find('/') != name.npos || name.find('\0') != name.npos) {
    return Stat::kInval;
  }
  return Stat::kOk;
}

}  // namespace

Stat Store::lookup(const Credentials& who, const Ref& dir, std::string_view name, Found& found,
                   PostOp& dir_after) {
  {
    const Shared guard(dir.inode->lock);
    const Inode& inode = *dir.inode;
    if (!inode.alive(dir)) return Stat::kStale;
    dir_after = {true, inode.snapshot()};
    if (inode.attributes.type != FileType::kDir) return Stat::kNotdir;
    if (!may(who, inode, 1)) return Stat::kAcces;
    if (const Stat stat = check_name(name); stat != Stat::kOk) return stat;
    if (is_dot(name)) {
      found = {dir, dir_after.attributes};
      return Stat::kOk;
    }
    if (is_dotdot(name)) {
      found.ref = inode.directory->parent;
    } else {
      const Directory::Entry* entry = inode.directory->find(name);
      if (entry == nullptr) return Stat::kNoent;
      found.ref = entry->child;
    }
  }
  // Removed in between: the name is gone.
  return getattr(found.ref, found.attributes) == Stat::kOk ? Stat::kOk : Stat::kNoent;
}

Stat Store::readdir(const Credentials& who, const Ref& dir, uint64_t cookie, uint32_t entries_max,
                    std::vector<DirectoryEntry>& entries, bool& eof, PostOp& dir_after) {
  const Shared guard(dir.inode->lock);
  const Inode& inode = *dir.inode;
  if (!inode.alive(dir)) return Stat::kStale;
  dir_after = {true, inode.snapshot()};
  if (inode.attributes.type != FileType::kDir) return Stat::kNotdir;
  if (!may(who, inode, 4)) return Stat::kAcces;
  const Directory& directory = *inode.directory;
  entries.clear();
  if (cookie < Directory::kCookieDot) {
    entries.push_back({Directory::kCookieDot, inode.attributes.fileid, dir, "."});
  }
  if (cookie < Directory::kCookieDotdot) {
    entries.push_back({Directory::kCookieDotdot, directory.parent_fileid, directory.parent, ".."});
  }
  auto next = directory.entries().upper_bound(cookie);
  for (; next != directory.entries().end() && entries.size() < entries_max; ++next) {
    const Directory::Entry& entry = next->second;
    entries.push_back({next->first, entry.fileid, entry.child, entry.name});
  }
  eof = next == directory.entries().end();
  return Stat::kOk;
}

/// May `who` change `dir` by that name? Fills both sides of `wcc`, alike: nothing has changed yet.
Stat Store::check_directory(const Credentials& who, const Ref& dir, std::string_view name,
                            Wcc& wcc) {
  const Shared guard(dir.inode->lock);
  const Inode& inode = *dir.inode;
  if (!inode.alive(dir)) return Stat::kStale;
  fill_before(wcc, inode);
  fill_after(wcc, inode);
  if (inode.attributes.type != FileType::kDir) return Stat::kNotdir;
  if (options_.read_only) return Stat::kRofs;
  if (const Stat stat = check_name(name); stat != Stat::kOk) return stat;
  return may(who, inode, 3) ? Stat::kOk : Stat::kAcces;
}

void Store::add_entry(const Ref& dir, std::string_view name, const Ref& child, bool subdirectory,
                      Wcc& wcc) {
  const Exclusive guard(dir.inode->lock);
  Inode& inode = *dir.inode;
  fill_before(wcc, inode);
  // The child's fileid changes only under the tree lock, which is held.
  inode.directory->add(name, child, child.inode->attributes.fileid);
  if (subdirectory) ++inode.attributes.nlink;
  inode.touch(true);
  fill_after(wcc, inode);
}

void Store::remove_entry(const Ref& dir, std::string_view name, bool subdirectory, Wcc& wcc) {
  const Exclusive guard(dir.inode->lock);
  Inode& inode = *dir.inode;
  fill_before(wcc, inode);
  inode.directory->remove(name);
  if (subdirectory) --inode.attributes.nlink;
  inode.touch(true);
  fill_after(wcc, inode);
}

void Store::drop_link(const Ref& child) {
  const Exclusive guard(child.inode->lock);
  Inode& inode = *child.inode;
  if (inode.attributes.type == FileType::kDir) {
    free_inode(inode);
    return;
  }
  --inode.attributes.nlink;
  inode.touch(false);
  if (inode.attributes.nlink == 0) free_inode(inode);
}

/// CREATE found the name in use.
Stat Store::existing(const CreateRequest& request, const Ref& child, Found& created) {
  const Exclusive guard(child.inode->lock);
  Inode& inode = *child.inode;
  const bool file = request.type == FileType::kReg && inode.attributes.type == FileType::kReg;
  if (!file || request.mode == CreateMode::kGuarded) return Stat::kExist;
  if (request.mode == CreateMode::kExclusive) {
    // The same verifier: the client sends a CREATE again whose reply it has not seen.
    if (!inode.was_exclusive || inode.create_verifier != request.verifier) return Stat::kExist;
  } else if (request.attributes.set_size) {
    Sattr size_only;
    size_only.set_size = true;
    size_only.size = request.attributes.size;
    if (size_only.size > kFileSizeMax) return Stat::kFbig;
    catch_up(inode, restarts_.load());
    if (const Stat stat = apply(inode, size_only); stat != Stat::kOk) return stat;
  }
  created = {child, inode.snapshot()};
  return Stat::kOk;
}

/// Makes an inode without a name. The tree lock is held.
Stat Store::make(const Credentials& who, const Ref& dir, const CreateRequest& request, Ref& made) {
  Inode* const inode = new_inode(request.type, dir.inode->export_index);
  if (inode == nullptr) return Stat::kNospc;
  const Exclusive guard(inode->lock);
  made = {inode, inode->generation};
  Fattr& attributes = inode->attributes;
  attributes.uid = who.uid;
  attributes.gid = who.gid;
  attributes.mode = request.type == FileType::kDir ? 0755 : 0644;
  attributes.rdev_major = request.rdev_major;
  attributes.rdev_minor = request.rdev_minor;
  if (request.type == FileType::kDir) {
    attributes.nlink = 2;
    inode->directory->parent = dir;
    inode->directory->parent_fileid = dir.inode->attributes.fileid;
  } else if (request.type == FileType::kLnk) {
    inode->symlink = request.symlink;
    attributes.size = request.symlink.size();
    attributes.mode = 0777;
  }
  Stat stat = Stat::kOk;
  if (request.mode == CreateMode::kExclusive && request.type == FileType::kReg) {
    inode->was_exclusive = true;
    inode->create_verifier = request.verifier;
    attributes.mode = 0600;
  } else if (request.attributes.set_size && request.attributes.size > kFileSizeMax) {
    stat = Stat::kFbig;
  } else {
    stat = apply(*inode, request.attributes);
  }
  if (stat != Stat::kOk) free_inode(*inode);
  return stat;
}

Stat Store::create(const Credentials& who, const Ref& dir, std::string_view name,
                   const CreateRequest& request, Found& created, Wcc& dir_wcc) {
  const std::lock_guard<std::mutex> tree(tree_lock_);
  if (const Stat stat = check_directory(who, dir, name, dir_wcc); stat != Stat::kOk) return stat;
  if (is_dot(name) || is_dotdot(name)) return Stat::kExist;
  if (const Directory::Entry* entry = dir.inode->directory->find(name); entry != nullptr) {
    return existing(request, entry->child, created);
  }
  const bool subdirectory = request.type == FileType::kDir;
  if (subdirectory && dir_wcc.after.attributes.nlink >= kLinkMax) return Stat::kMlink;
  if (const Stat stat = make(who, dir, request, created.ref); stat != Stat::kOk) return stat;
  add_entry(dir, name, created.ref, subdirectory, dir_wcc);
  return getattr(created.ref, created.attributes);
}

Stat Store::remove(const Credentials& who, const Ref& dir, std::string_view name, bool rmdir,
                   Wcc& dir_wcc) {
  const std::lock_guard<std::mutex> tree(tree_lock_);
  if (const Stat stat = check_directory(who, dir, name, dir_wcc); stat != Stat::kOk) return stat;
  // RFC 1813 section 3.3.13.
  if (is_dot(name)) return Stat::kInval;
  if (is_dotdot(name)) return rmdir ? Stat::kExist : Stat::kInval;
  const Directory::Entry* entry = dir.inode->directory->find(name);
  if (entry == nullptr) return Stat::kNoent;
  const Ref child = entry->child;
  const bool directory = child.inode->directory != nullptr;
  if (rmdir && !directory) return Stat::kNotdir;
  if (!rmdir && directory) return Stat::kIsdir;
  if (rmdir && !child.inode->directory->empty()) return Stat::kNotempty;
  remove_entry(dir, name, rmdir, dir_wcc);
  drop_link(child);
  return Stat::kOk;
}

bool Store::is_below(const Ref& dir, const Ref& ancestor) {
  for (const Inode* at = dir.inode;; at = at->directory->parent.inode) {
    if (at == ancestor.inode) return true;
    if (at->directory->parent.inode == at) return false;
  }
}

/// RFC 1813 section 3.3.14: a target must be of the source's kind, and empty; else EXIST.
Stat Store::check_target(const Ref& from, const Ref& target) {
  const bool from_directory = from.inode->directory != nullptr;
  const bool target_directory = target.inode->directory != nullptr;
  if (from_directory != target_directory) return Stat::kExist;
  if (target_directory && !target.inode->directory->empty()) return Stat::kExist;
  return Stat::kOk;
}

Stat Store::rename(const Credentials& who, const Ref& from_dir, std::string_view from_name,
                   const Ref& to_dir, std::string_view to_name, Wcc& from_wcc, Wcc& to_wcc) {
  const std::lock_guard<std::mutex> tree(tree_lock_);
  Stat stat = check_directory(who, from_dir, from_name, from_wcc);
  const Stat to_stat = check_directory(who, to_dir, to_name, to_wcc);
  if (stat == Stat::kOk) stat = to_stat;
  if (stat != Stat::kOk) return stat;
  if (from_dir.inode->export_index != to_dir.inode->export_index) return Stat::kXdev;
  if (is_dot(from_name) || is_dotdot(from_name) || is_dot(to_name) || is_dotdot(to_name)) {
    return Stat::kInval;
  }
  const Directory::Entry* from_entry = from_dir.inode->directory->find(from_name);
  if (from_entry == nullptr) return Stat::kNoent;
  const Ref moved = from_entry->child;
  const bool directory = moved.inode->directory != nullptr;
  Ref target;
  if (const auto* entry = to_dir.inode->directory->find(to_name); entry != nullptr) {
    target = entry->child;
    if (target.inode == moved.inode) return Stat::kOk;  // two names of one file: nothing to do
    stat = check_target(moved, target);
    if (stat != Stat::kOk) return stat;
  }
  if (directory && is_below(to_dir, moved)) return Stat::kInval;

  // The new name first, so that nobody finds the file under neither.
  Wcc step;
  if (target.inode != nullptr) {
    remove_entry(to_dir, to_name, directory, to_wcc);
    drop_link(target);
  }
  add_entry(to_dir, to_name, moved, directory, step);
  if (target.inode == nullptr) to_wcc = step;
  to_wcc.after = step.after;
  remove_entry(from_dir, from_name, directory, from_wcc);
  if (from_dir.inode == to_dir.inode) {
    to_wcc.after = from_wcc.after;
    from_wcc = to_wcc;
  }
  const Exclusive guard(moved.inode->lock);
  if (directory) {
    moved.inode->directory->parent = to_dir;
    moved.inode->directory->parent_fileid = to_dir.inode->attributes.fileid;
  }
  moved.inode->touch(false);
  return Stat::kOk;
}

Stat Store::link(const Credentials& who, const Ref& file, const Ref& dir, std::string_view name,
                 PostOp& file_after, Wcc& dir_wcc) {
  const std::lock_guard<std::mutex> tree(tree_lock_);
  {
    const Shared guard(file.inode->lock);
    if (!file.inode->alive(file)) return Stat::kStale;
    file_after = {true, file.inode->snapshot()};
  }
  if (const Stat stat = check_directory(who, dir, name, dir_wcc); stat != Stat::kOk) return stat;
  if (file_after.attributes.type == FileType::kDir) return Stat::kInval;
  if (file.inode->export_index != dir.inode->export_index) return Stat::kXdev;
  if (is_dot(name) || is_dotdot(name) || dir.inode->directory->find(name) != nullptr) {
    return Stat::kExist;
  }
  if (file_after.attributes.nlink >= kLinkMax) return Stat::kMlink;
  {
    const Exclusive guard(file.inode->lock);
    ++file.inode->attributes.nlink;
    file.inode->touch(false);
    file_after = {true, file.inode->snapshot()};
  }
  add_entry(dir, name, file, false, dir_wcc);
  return Stat::kOk;
}

}  // namespace nfsrdma::memd
