// SPDX-License-Identifier: GPL-2.0-or-later
// Handles, attributes and inode life; store_data.cc and store_names.cc have the rest.
#include "store.h"

#include <sys/random.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace nfsrdma::memd {

namespace {

uint64_t random_word() {
  uint64_t word = 0;
  if (getrandom(&word, sizeof word, 0) != sizeof word) {
    const NfsTime now = nfs_now();
    word = (uint64_t{now.seconds} << 32) ^ (now.nseconds * uint64_t{0x9e3779b97f4a7c15});
  }
  return word;
}

}  // namespace

Store::Store(const StoreOptions& options)
    : options_(options),
      space_(options.capacity),
      boot_verifier_(random_word()),
      chunks_(new std::atomic<Chunk*>[kChunksMax]()) {
  space_.lossy = options.lossy;
  space_.synthetic = options.synthetic;
  for (std::byte& fill : handle_fill_) fill = static_cast<std::byte>(random_word());
  for (uint32_t i = 0; i < options_.exports.size(); ++i) {
    Inode* root = new_inode(FileType::kDir, i);
    assert(root != nullptr);
    root->attributes.mode = 0777;
    root->attributes.nlink = 2;
    const Ref ref{root, root->generation};
    root->directory->parent = ref;
    root->directory->parent_fileid = root->attributes.fileid;
    roots_.push_back(ref);
  }
}

Store::~Store() {
  for (uint32_t i = 0; i < kChunksMax; ++i) {
    Chunk* chunk = chunks_[i].load();
    if (chunk == nullptr) continue;
    for (Inode& inode : chunk->inodes) inode.data.clear(space_);
    delete chunk;
  }
}

void Store::make_handle(const Ref& ref, std::byte* to) const {
  store_be32(to, ref.inode->index);
  store_be32(to + 4, ref.generation);
  std::memcpy(to + 8, handle_fill_, options_.handle_length - 8);
}

Stat Store::resolve(ConstBytes handle, Ref& ref) const {
  if (handle.size() != options_.handle_length) return Stat::kBadhandle;
  const uint32_t index = load_be32(handle.data());
  ref.generation = load_be32(handle.data() + 4);
  ref.inode = nullptr;
  if (index / kChunkInodes >= kChunksMax) return Stat::kBadhandle;
  // The fill is random per start: a handle of an earlier start is stale, not malformed.
  if (std::memcmp(handle.data() + 8, handle_fill_, handle.size() - 8) != 0) return Stat::kStale;
  Chunk* chunk = chunks_[index / kChunkInodes].load(std::memory_order_acquire);
  if (chunk == nullptr) return Stat::kStale;
  ref.inode = &chunk->inodes[index % kChunkInodes];
  return Stat::kOk;
}

uint64_t Store::verifier_of(uint64_t restarts) const {
  return boot_verifier_ ^ (restarts * uint64_t{0x9e3779b97f4a7c15});
}

/// Brings a file up to date with the restarts since its last call. Its lock is held exclusive.
void Store::catch_up(Inode& inode, uint64_t restarts) {
  if (inode.restarts_seen >= restarts) return;
  inode.restarts_seen = restarts;
  if (inode.data.revert(space_)) inode.touch(true);
}

/// `mode_bits`: 4 read, 2 write, 1 execute or search.
bool Store::may(const Credentials& who, const Inode& inode, uint32_t mode_bits) const {
  if (!options_.check_access || who.uid == 0) return true;
  const Fattr& attributes = inode.attributes;
  if (who.uid == attributes.uid) return ((attributes.mode >> 6) & mode_bits) == mode_bits;
  const uint32_t* end = who.groups + who.group_count;
  const bool in_group =
      who.gid == attributes.gid || std::find(who.groups, end, attributes.gid) != end;
  return ((attributes.mode >> (in_group ? 3 : 0)) & mode_bits) == mode_bits;
}

/// The tree lock is held (or the store is not shared yet). nullptr: no inode left.
Inode* Store::new_inode(FileType type, uint32_t export_index) {
  if (inodes_in_use_.load() >= options_.files_max) return nullptr;
  uint32_t index;
  if (!free_indices_.empty()) {
    index = free_indices_.back();
    free_indices_.pop_back();
  } else {
    index = inodes_made_;
    if (index / kChunkInodes >= kChunksMax) return nullptr;
    if (index % kChunkInodes == 0) {
      Chunk* const chunk = new Chunk;
      for (uint32_t i = 0; i < kChunkInodes; ++i) chunk->inodes[i].index = index + i;
      chunks_[index / kChunkInodes].store(chunk, std::memory_order_release);
    }
    ++inodes_made_;
  }
  inodes_in_use_.fetch_add(1);
  Inode& inode = chunks_[index / kChunkInodes].load()->inodes[index % kChunkInodes];
  const std::unique_lock<std::shared_mutex> guard(inode.lock);
  inode.generation =
      inode.generation == 0 ? static_cast<uint32_t>(random_word()) | 1 : inode.generation + 1;
  inode.in_use = true;
  inode.was_exclusive = false;
  inode.export_index = export_index;
  inode.restarts_seen = restarts_.load();
  inode.attributes = Fattr{};
  inode.attributes.type = type;
  inode.attributes.nlink = 1;
  inode.attributes.fsid = export_index + 1;
  inode.attributes.fileid = next_fileid_++;
  inode.touch(true);
  inode.attributes.atime = inode.attributes.mtime;
  if (type == FileType::kDir) {
    inode.directory = std::make_unique<Directory>();
    inode.attributes.size = inode.attributes.used = 4096;
  }
  return &inode;
}

/// The tree lock and the inode's are held.
void Store::free_inode(Inode& inode) {
  inode.in_use = false;
  inode.data.clear(space_);
  inode.directory.reset();
  inode.symlink.clear();
  inode.symlink.shrink_to_fit();
  free_indices_.push_back(inode.index);
  inodes_in_use_.fetch_sub(1);
}

Stat Store::getattr(const Ref& ref, Fattr& attributes) {
  const uint64_t restarts = restarts_.load(std::memory_order_relaxed);
  {
    const std::shared_lock<std::shared_mutex> guard(ref.inode->lock);
    if (!ref.inode->alive(ref)) return Stat::kStale;
    if (ref.inode->restarts_seen >= restarts) {
      attributes = ref.inode->snapshot();
      return Stat::kOk;
    }
  }
  const std::unique_lock<std::shared_mutex> guard(ref.inode->lock);
  if (!ref.inode->alive(ref)) return Stat::kStale;
  catch_up(*ref.inode, restarts);
  attributes = ref.inode->snapshot();
  return Stat::kOk;
}

Stat Store::check_setattr(const Credentials& who, const Inode& inode, const Sattr& changes) const {
  if (options_.read_only) return Stat::kRofs;
  if (changes.set_size && inode.attributes.type != FileType::kReg) {
    return inode.attributes.type == FileType::kDir ? Stat::kIsdir : Stat::kInval;
  }
  if (changes.set_size && changes.size > kFileSizeMax) return Stat::kFbig;
  if (!options_.check_access || who.uid == 0) return Stat::kOk;
  const bool owner = who.uid == inode.attributes.uid;
  const bool client_time =
      changes.atime_how == TimeHow::kClientTime || changes.mtime_how == TimeHow::kClientTime;
  if ((changes.set_mode || changes.set_gid || client_time) && !owner) return Stat::kPerm;
  if (changes.set_uid && changes.uid != inode.attributes.uid) return Stat::kPerm;
  if (changes.set_size && !owner && !may(who, inode, 2)) return Stat::kAcces;
  return Stat::kOk;
}

/// Changes the attributes; the inode's lock is held exclusive.
Stat Store::apply(Inode& inode, const Sattr& changes) {
  const bool resized = changes.set_size && inode.attributes.type == FileType::kReg;
  if (resized && !inode.data.resize(space_, changes.size)) return Stat::kNospc;
  if (changes.set_mode) inode.attributes.mode = changes.mode & 07777;
  if (changes.set_uid) inode.attributes.uid = changes.uid;
  if (changes.set_gid) inode.attributes.gid = changes.gid;
  inode.touch(resized);
  const NfsTime now = inode.attributes.ctime;
  if (changes.atime_how != TimeHow::kDontChange) {
    inode.attributes.atime = changes.atime_how == TimeHow::kClientTime ? changes.atime : now;
  }
  if (changes.mtime_how != TimeHow::kDontChange) {
    inode.attributes.mtime = changes.mtime_how == TimeHow::kClientTime ? changes.mtime : now;
  }
  return Stat::kOk;
}

Stat Store::setattr(const Credentials& who, const Ref& ref, const Sattr& changes,
                    const NfsTime* guard_ctime, Wcc& wcc) {
  const uint64_t restarts = restarts_.load(std::memory_order_relaxed);
  const std::unique_lock<std::shared_mutex> guard(ref.inode->lock);
  Inode& inode = *ref.inode;
  if (!inode.alive(ref)) return Stat::kStale;
  catch_up(inode, restarts);
  fill_before(wcc, inode);
  Stat stat = check_setattr(who, inode, changes);
  if (stat == Stat::kOk && guard_ctime != nullptr && *guard_ctime != inode.attributes.ctime) {
    stat = Stat::kNotSync;
  }
  if (stat == Stat::kOk) stat = apply(inode, changes);
  fill_after(wcc, inode);
  return stat;
}

Stat Store::access(const Credentials& who, const Ref& ref, uint32_t wanted, uint32_t& granted,
                   PostOp& after) {
  const std::shared_lock<std::shared_mutex> guard(ref.inode->lock);
  const Inode& inode = *ref.inode;
  if (!inode.alive(ref)) return Stat::kStale;
  after = {true, inode.snapshot()};
  const bool directory = inode.attributes.type == FileType::kDir;
  uint32_t bits = 0;
  if (may(who, inode, 4)) bits |= kAccessRead;
  if (may(who, inode, 2) && !options_.read_only) {
    bits |= kAccessModify | kAccessExtend;
    if (directory) bits |= kAccessDelete;
  }
  if (may(who, inode, 1)) bits |= directory ? uint32_t{kAccessLookup} : uint32_t{kAccessExecute};
  granted = wanted & bits;
  return Stat::kOk;
}

Stat Store::readlink(const Ref& ref, std::string& target, PostOp& after) {
  const std::shared_lock<std::shared_mutex> guard(ref.inode->lock);
  const Inode& inode = *ref.inode;
  if (!inode.alive(ref)) return Stat::kStale;
  after = {true, inode.snapshot()};
  if (inode.attributes.type != FileType::kLnk) return Stat::kInval;
  target = inode.symlink;
  return Stat::kOk;
}

Usage Store::usage() const {
  const uint32_t in_use = inodes_in_use_.load();
  return {space_.quota.capacity(), space_.quota.available(), options_.files_max,
          options_.files_max - std::min(in_use, options_.files_max)};
}

}  // namespace nfsrdma::memd
