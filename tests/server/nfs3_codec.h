// SPDX-License-Identifier: GPL-2.0-or-later
// XDR of the structures that NFSv3 procedures share (RFC 1813 sections 2.5 and 2.6).
#pragma once

#include "inode.h"
#include "nfs3_proto.h"
#include "xdr.h"

namespace nfsrdma::memd {

constexpr uint32_t kFattrLength = 84;

inline void put_stat(XdrWriter& out, Stat stat) {
  out.u32(static_cast<uint32_t>(stat));
}

inline void put_time(XdrWriter& out, const NfsTime& time) {
  out.u32(time.seconds);
  out.u32(time.nseconds);
}

inline void put_fattr(XdrWriter& out, const Fattr& attributes) {
  out.u32(static_cast<uint32_t>(attributes.type));
  out.u32(attributes.mode);
  out.u32(attributes.nlink);
  out.u32(attributes.uid);
  out.u32(attributes.gid);
  out.u64(attributes.size);
  out.u64(attributes.used);
  out.u32(attributes.rdev_major);
  out.u32(attributes.rdev_minor);
  out.u64(attributes.fsid);
  out.u64(attributes.fileid);
  put_time(out, attributes.atime);
  put_time(out, attributes.mtime);
  put_time(out, attributes.ctime);
}

inline void put_post_op(XdrWriter& out, const PostOp& attributes) {
  out.boolean(attributes.follows);
  if (attributes.follows) put_fattr(out, attributes.attributes);
}

inline void put_wcc(XdrWriter& out, const Wcc& wcc) {
  out.boolean(wcc.before_follows);
  if (wcc.before_follows) {
    out.u64(wcc.before_size);
    put_time(out, wcc.before_mtime);
    put_time(out, wcc.before_ctime);
  }
  put_post_op(out, wcc.after);
}

inline NfsTime get_time(XdrReader& in) {
  NfsTime time;
  time.seconds = in.u32();
  time.nseconds = in.u32();
  return time;
}

inline TimeHow get_set_time(XdrReader& in, NfsTime& time, bool& valid) {
  const uint32_t how = in.u32();
  if (how > static_cast<uint32_t>(TimeHow::kClientTime)) valid = false;
  if (how == static_cast<uint32_t>(TimeHow::kClientTime)) time = get_time(in);
  return static_cast<TimeHow>(how);
}

/// False: not a sattr3.
inline bool get_sattr(XdrReader& in, Sattr& sattr) {
  bool valid = true;
  if ((sattr.set_mode = in.boolean())) sattr.mode = in.u32();
  if ((sattr.set_uid = in.boolean())) sattr.uid = in.u32();
  if ((sattr.set_gid = in.boolean())) sattr.gid = in.u32();
  if ((sattr.set_size = in.boolean())) sattr.size = in.u64();
  sattr.atime_how = get_set_time(in, sattr.atime, valid);
  sattr.mtime_how = get_set_time(in, sattr.mtime, valid);
  return valid && in.ok();
}

}  // namespace nfsrdma::memd
