// SPDX-License-Identifier: GPL-2.0-or-later
// The procedures that take names (RFC 1813 section 3.3). A name is decoded up to the size of the
// call, so that one of 256 bytes gets NFS3ERR_NAMETOOLONG and not GARBAGE_ARGS.
#include "service.h"

namespace nfsrdma::memd {

namespace {

constexpr uint32_t kNameDecodeMax = NfsService::kCallHeadMax;

}  // namespace

void NfsService::put_handle(Op& op, const Ref& ref) const {
  std::byte handle[kHandleMax];
  store_.make_handle(ref, handle);
  op.out.opaque({handle, store_.handle_length()});
}

bool NfsService::nfs_lookup(Op& op) {
  Ref dir;
  Stat stat = get_ref(op, dir);
  const std::string_view name = op.in.string(kNameDecodeMax);
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, name);
  if (stat == Stat::kOk && jukebox(op, dir, 0)) return true;
  Found found;
  PostOp dir_after;
  if (stat == Stat::kOk) stat = store_.lookup(op.who, dir, name, found, dir_after);
  reply_stat(op, stat);
  if (stat == Stat::kOk) {
    put_handle(op, found.ref);
    put_post_op(op.out, {true, found.attributes});
  }
  put_post_op(op.out, dir_after);
  return true;
}

bool NfsService::nfs_readlink(Op& op) {
  Ref ref;
  Stat stat = get_ref(op, ref);
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, {});
  if (stat == Stat::kOk && jukebox(op, ref, 0)) return true;
  std::string target;
  PostOp after;
  if (stat == Stat::kOk) stat = store_.readlink(ref, target, after);
  reply_stat(op, stat);
  put_post_op(op.out, after);
  if (stat == Stat::kOk) op.out.string(target);
  return true;
}

/// The common end of CREATE, MKDIR, SYMLINK and MKNOD.
bool NfsService::make(Op& op, const Ref& dir, Stat stat, std::string_view name,
                      const CreateRequest& request) {
  log(op, 0, 0, 0, name);
  if (stat == Stat::kOk && jukebox(op, dir, 0)) return true;
  Found created;
  Wcc wcc;
  if (stat == Stat::kOk) stat = store_.create(op.who, dir, name, request, created, wcc);
  reply_stat(op, stat);
  if (stat == Stat::kOk) {
    op.out.boolean(true);
    put_handle(op, created.ref);
    put_post_op(op.out, {true, created.attributes});
  }
  put_wcc(op.out, wcc);
  return true;
}

bool NfsService::nfs_create(Op& op) {
  Ref dir;
  const Stat stat = get_ref(op, dir);
  const std::string_view name = op.in.string(kNameDecodeMax);
  CreateRequest request;
  const uint32_t mode = op.in.u32();
  if (mode > static_cast<uint32_t>(CreateMode::kExclusive)) return false;
  request.mode = static_cast<CreateMode>(mode);
  if (request.mode == CreateMode::kExclusive) {
    request.verifier = op.in.u64();
  } else if (!get_sattr(op.in, request.attributes)) {
    return false;
  }
  return op.in.ok() && make(op, dir, stat, name, request);
}

bool NfsService::nfs_mkdir(Op& op) {
  Ref dir;
  const Stat stat = get_ref(op, dir);
  const std::string_view name = op.in.string(kNameDecodeMax);
  CreateRequest request;
  request.type = FileType::kDir;
  if (!get_sattr(op.in, request.attributes)) return false;
  request.attributes.set_size = false;
  return make(op, dir, stat, name, request);
}

bool NfsService::nfs_symlink(Op& op) {
  Ref dir;
  Stat stat = get_ref(op, dir);
  const std::string_view name = op.in.string(kNameDecodeMax);
  CreateRequest request;
  request.type = FileType::kLnk;
  if (!get_sattr(op.in, request.attributes)) return false;
  request.attributes.set_size = false;
  request.symlink = op.in.string(kNameDecodeMax);
  if (!op.in.ok()) return false;
  if (stat == Stat::kOk && request.symlink.size() > kPathMax) stat = Stat::kNametoolong;
  return make(op, dir, stat, name, request);
}

bool NfsService::nfs_mknod(Op& op) {
  Ref dir;
  Stat stat = get_ref(op, dir);
  const std::string_view name = op.in.string(kNameDecodeMax);
  CreateRequest request;
  request.type = static_cast<FileType>(op.in.u32());
  switch (request.type) {
    case FileType::kChr:
    case FileType::kBlk:
      if (!get_sattr(op.in, request.attributes)) return false;
      request.rdev_major = op.in.u32();
      request.rdev_minor = op.in.u32();
      break;
    case FileType::kSock:
    case FileType::kFifo:
      if (!get_sattr(op.in, request.attributes)) return false;
      break;
    default:
      if (stat == Stat::kOk) stat = Stat::kBadtype;
  }
  request.attributes.set_size = false;
  return op.in.ok() && make(op, dir, stat, name, request);
}

bool NfsService::unlink(Op& op, bool rmdir) {
  Ref dir;
  Stat stat = get_ref(op, dir);
  const std::string_view name = op.in.string(kNameDecodeMax);
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, name);
  if (stat == Stat::kOk && jukebox(op, dir, 0)) return true;
  Wcc wcc;
  if (stat == Stat::kOk) stat = store_.remove(op.who, dir, name, rmdir, wcc);
  reply_stat(op, stat);
  put_wcc(op.out, wcc);
  return true;
}

bool NfsService::nfs_remove(Op& op) {
  return unlink(op, false);
}

bool NfsService::nfs_rmdir(Op& op) {
  return unlink(op, true);
}

bool NfsService::nfs_rename(Op& op) {
  Ref from_dir;
  Ref to_dir;
  Stat stat = get_ref(op, from_dir);
  const std::string_view from_name = op.in.string(kNameDecodeMax);
  const Stat to_stat = get_ref(op, to_dir);
  const std::string_view to_name = op.in.string(kNameDecodeMax);
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, from_name);
  if (stat == Stat::kOk) stat = to_stat;
  if (stat == Stat::kOk && jukebox(op, from_dir, 0)) return true;
  Wcc from_wcc;
  Wcc to_wcc;
  if (stat == Stat::kOk) {
    stat = store_.rename(op.who, from_dir, from_name, to_dir, to_name, from_wcc, to_wcc);
  }
  reply_stat(op, stat);
  put_wcc(op.out, from_wcc);
  put_wcc(op.out, to_wcc);
  return true;
}

bool NfsService::nfs_link(Op& op) {
  Ref file;
  Ref dir;
  Stat stat = get_ref(op, file);
  const Stat dir_stat = get_ref(op, dir);
  const std::string_view name = op.in.string(kNameDecodeMax);
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, name);
  if (stat == Stat::kOk) stat = dir_stat;
  if (stat == Stat::kOk && jukebox(op, file, 0)) return true;
  PostOp file_after;
  Wcc wcc;
  if (stat == Stat::kOk) stat = store_.link(op.who, file, dir, name, file_after, wcc);
  reply_stat(op, stat);
  put_post_op(op.out, file_after);
  put_wcc(op.out, wcc);
  return true;
}

}  // namespace nfsrdma::memd
