// SPDX-License-Identifier: GPL-2.0-or-later
// Between libnfs's NFSv3 structures and our own. Only the control plane includes this.
#pragma once

#include <nfsc/libnfs-raw-nfs.h>

#include <cstring>
#include <optional>
#include <span>

#include "nfs3_control.h"
#include "nfs3_types.h"

namespace nfsrdma {

/// libnfs's handle borrows the bytes of ours; its encoders only read them.
inline nfs_fh3 to_zdr(const FileHandle& handle) {
  nfs_fh3 borrowed{};
  borrowed.data.data_len = handle.length;
  borrowed.data.data_val =
      const_cast<char*>(reinterpret_cast<const char*>(handle.bytes.data()));  // NOLINT
  return borrowed;
}

inline diropargs3 to_zdr(const FileHandle& directory, const std::string& name) {
  return {to_zdr(directory), const_cast<char*>(name.c_str())};  // NOLINT
}

inline sattr3 to_zdr(const SetAttributes& attributes) {
  sattr3 set{};
  if (attributes.mode) {
    set.mode.set_it = 1;
    set.mode.set_mode3_u.mode = *attributes.mode;
  }
  if (attributes.size) {
    set.size.set_it = 1;
    set.size.set_size3_u.size = *attributes.size;
  }
  set.atime.set_it = DONT_CHANGE;
  set.mtime.set_it = DONT_CHANGE;
  if (attributes.mtime_of_server) {
    set.mtime.set_it = SET_TO_SERVER_TIME;
  } else if (attributes.mtime) {
    set.mtime.set_it = SET_TO_CLIENT_TIME;
    set.mtime.set_mtime_u.mtime = {attributes.mtime->seconds, attributes.mtime->nanoseconds};
  }
  return set;
}

inline Time from_zdr(const nfstime3& time) {
  return {time.seconds, time.nseconds};
}

inline Attributes from_zdr(const fattr3& from) {
  Attributes to;
  to.type = static_cast<FileType>(from.type);
  to.mode = from.mode;
  to.nlink = from.nlink;
  to.uid = from.uid;
  to.gid = from.gid;
  to.size = from.size;
  to.used = from.used;
  to.rdev_major = from.rdev.specdata1;
  to.rdev_minor = from.rdev.specdata2;
  to.fsid = from.fsid;
  to.fileid = from.fileid;
  to.atime = from_zdr(from.atime);
  to.mtime = from_zdr(from.mtime);
  to.ctime = from_zdr(from.ctime);
  return to;
}

inline std::optional<Attributes> from_zdr(const post_op_attr& from) {
  if (from.attributes_follow == 0) return std::nullopt;
  return from_zdr(from.post_op_attr_u.attributes);
}

inline std::optional<FileHandle> from_zdr(const nfs_fh3& from) {
  return FileHandle::from(std::as_bytes(std::span(from.data.data_val, from.data.data_len)));
}

inline std::optional<FileHandle> from_zdr(const post_op_fh3& from) {
  if (from.handle_follows == 0) return std::nullopt;
  return from_zdr(from.post_op_fh3_u.handle);
}

}  // namespace nfsrdma
