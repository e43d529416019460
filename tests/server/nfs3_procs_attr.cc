// SPDX-License-Identifier: GPL-2.0-or-later
// NULL, GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF (RFC 1813 section 3.3).
#include "service.h"

namespace nfsrdma::memd {

bool NfsService::nfs_null(Op& op) {
  log(op, 0, 0, 0, {});
  return true;
}

bool NfsService::nfs_getattr(Op& op) {
  Ref ref;
  Stat stat = get_ref(op, ref);
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, {});
  if (stat == Stat::kOk && jukebox(op, ref, 0)) return true;
  Fattr attributes;
  if (stat == Stat::kOk) stat = store_.getattr(ref, attributes);
  reply_stat(op, stat);
  if (stat == Stat::kOk) put_fattr(op.out, attributes);
  return true;
}

bool NfsService::nfs_setattr(Op& op) {
  Ref ref;
  Stat stat = get_ref(op, ref);
  Sattr changes;
  if (!get_sattr(op.in, changes)) return false;
  const bool guarded = op.in.boolean();
  const NfsTime guard = guarded ? get_time(op.in) : NfsTime{};
  if (!op.in.ok()) return false;
  log(op, changes.size, 0, 0, {});
  if (stat == Stat::kOk && jukebox(op, ref, 0)) return true;
  Wcc wcc;
  if (stat == Stat::kOk) {
    stat = store_.setattr(op.who, ref, changes, guarded ? &guard : nullptr, wcc);
  }
  reply_stat(op, stat);
  put_wcc(op.out, wcc);
  return true;
}

bool NfsService::nfs_access(Op& op) {
  Ref ref;
  Stat stat = get_ref(op, ref);
  const uint32_t wanted = op.in.u32();
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, {});
  if (stat == Stat::kOk && jukebox(op, ref, 0)) return true;
  uint32_t granted = 0;
  PostOp after;
  if (stat == Stat::kOk) stat = store_.access(op.who, ref, wanted, granted, after);
  reply_stat(op, stat);
  put_post_op(op.out, after);
  if (stat == Stat::kOk) op.out.u32(granted);
  return true;
}

namespace {

/// The attributes of the handle that FSSTAT, FSINFO and PATHCONF are asked of.
Stat attributes_of(Store& store, Stat stat, const Ref& ref, PostOp& after) {
  if (stat == Stat::kOk) stat = store.getattr(ref, after.attributes);
  after.follows = stat == Stat::kOk;
  return stat;
}

}  // namespace

bool NfsService::nfs_fsstat(Op& op) {
  Ref ref;
  Stat stat = get_ref(op, ref);
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, {});
  if (stat == Stat::kOk && jukebox(op, ref, 0)) return true;
  PostOp after;
  stat = attributes_of(store_, stat, ref, after);
  reply_stat(op, stat);
  put_post_op(op.out, after);
  if (stat != Stat::kOk) return true;
  const Usage usage = store_.usage();
  op.out.u64(usage.total_bytes);
  op.out.u64(usage.free_bytes);
  op.out.u64(usage.free_bytes);
  op.out.u64(usage.total_files);
  op.out.u64(usage.free_files);
  op.out.u64(usage.free_files);
  op.out.u32(0);  // invarsec: may change at any time
  return true;
}

bool NfsService::nfs_fsinfo(Op& op) {
  Ref ref;
  Stat stat = get_ref(op, ref);
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, {});
  if (stat == Stat::kOk && jukebox(op, ref, 0)) return true;
  PostOp after;
  stat = attributes_of(store_, stat, ref, after);
  reply_stat(op, stat);
  put_post_op(op.out, after);
  if (stat != Stat::kOk) return true;
  constexpr uint32_t kMultiple = 512;
  constexpr uint32_t kDirPreferred = 32768;
  constexpr uint32_t kLink = 0x1, kSymlink = 0x2, kHomogeneous = 0x8, kCanSetTime = 0x10;
  op.out.u32(options_.rtmax);
  op.out.u32(options_.rtmax);
  op.out.u32(kMultiple);
  op.out.u32(options_.wtmax);
  op.out.u32(options_.wtmax);
  op.out.u32(kMultiple);
  op.out.u32(kDirPreferred);
  op.out.u64(kFileSizeMax);
  op.out.u32(0);  // time_delta: 1 ns
  op.out.u32(1);
  op.out.u32(kLink | kSymlink | kHomogeneous | kCanSetTime);
  return true;
}

bool NfsService::nfs_pathconf(Op& op) {
  Ref ref;
  Stat stat = get_ref(op, ref);
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, {});
  if (stat == Stat::kOk && jukebox(op, ref, 0)) return true;
  PostOp after;
  stat = attributes_of(store_, stat, ref, after);
  reply_stat(op, stat);
  put_post_op(op.out, after);
  if (stat != Stat::kOk) return true;
  op.out.u32(kLinkMax);
  op.out.u32(kNameMax);
  op.out.boolean(true);   // no_trunc: longer names are refused
  op.out.boolean(true);   // chown_restricted
  op.out.boolean(false);  // case_insensitive
  op.out.boolean(true);   // case_preserving
  return true;
}

}  // namespace nfsrdma::memd
