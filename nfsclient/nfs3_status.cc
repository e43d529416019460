// SPDX-License-Identifier: GPL-2.0-or-later
#include "nfs3_status.h"

#include <cerrno>
#include <span>

namespace nfsrdma {
namespace {

struct Entry {
  uint32_t status;
  int code;
  std::string_view name;
  std::string_view sentence;
};

constexpr Entry kNfsEntries[] = {
    {0, 0, "NFS3_OK", "success"},
    {1, EPERM, "NFS3ERR_PERM", "only the owner or a privileged user may do this"},
    {2, ENOENT, "NFS3ERR_NOENT", "no such file or directory"},
    {5, EIO, "NFS3ERR_IO", "the server had a hard I/O error"},
    {6, ENXIO, "NFS3ERR_NXIO", "no such device"},
    {13, EACCES, "NFS3ERR_ACCES", "this user has no permission"},
    {17, EEXIST, "NFS3ERR_EXIST", "it exists already"},
    {18, EXDEV, "NFS3ERR_XDEV", "the two names are on different file systems"},
    {19, ENODEV, "NFS3ERR_NODEV", "no such device"},
    {20, ENOTDIR, "NFS3ERR_NOTDIR", "not a directory"},
    {21, EISDIR, "NFS3ERR_ISDIR", "it is a directory"},
    {22, EINVAL, "NFS3ERR_INVAL", "the server finds an argument invalid"},
    {27, EFBIG, "NFS3ERR_FBIG", "larger than the server's limit for a file"},
    {28, ENOSPC, "NFS3ERR_NOSPC", "no space left on the server"},
    {30, EROFS, "NFS3ERR_ROFS", "the export is read-only"},
    {31, EMLINK, "NFS3ERR_MLINK", "too many hard links"},
    {63, ENAMETOOLONG, "NFS3ERR_NAMETOOLONG", "the name is too long for the server"},
    {66, ENOTEMPTY, "NFS3ERR_NOTEMPTY", "the directory is not empty"},
    {69, EDQUOT, "NFS3ERR_DQUOT", "the user's quota is used up"},
    {70, ESTALE, "NFS3ERR_STALE", "the file behind the handle is gone"},
    {71, EREMOTE, "NFS3ERR_REMOTE", "too many levels of remote in the path"},
    {10001, EBADF, "NFS3ERR_BADHANDLE", "the server finds the file handle illegal"},
    {10002, ESTALE, "NFS3ERR_NOT_SYNC", "the attributes changed meanwhile"},
    {10003, EBADF, "NFS3ERR_BAD_COOKIE", "the server no longer knows the directory cookie"},
    {10004, EOPNOTSUPP, "NFS3ERR_NOTSUPP", "the server does not support the operation"},
    {10005, EINVAL, "NFS3ERR_TOOSMALL", "the requested reply is too small for the server"},
    {10006, EREMOTEIO, "NFS3ERR_SERVERFAULT", "the server had an error that NFS has no word for"},
    {10007, EOPNOTSUPP, "NFS3ERR_BADTYPE", "the server does not support this type of object"},
    {10008, EAGAIN, "NFS3ERR_JUKEBOX", "the server asks to try again later"},
};

constexpr Entry kMountEntries[] = {
    {0, 0, "MNT3_OK", "success"},
    {1, EPERM, "MNT3ERR_PERM", "not the owner"},
    {2, ENOENT, "MNT3ERR_NOENT", "no such export"},
    {5, EIO, "MNT3ERR_IO", "the server had an I/O error"},
    {13, EACCES, "MNT3ERR_ACCES", "this client may not mount it"},
    {20, ENOTDIR, "MNT3ERR_NOTDIR", "not a directory"},
    {22, EINVAL, "MNT3ERR_INVAL", "the server finds the path invalid"},
    {63, ENAMETOOLONG, "MNT3ERR_NAMETOOLONG", "the path is too long for the server"},
    {10004, EOPNOTSUPP, "MNT3ERR_NOTSUPP", "the server does not support the operation"},
    {10006, EREMOTEIO, "MNT3ERR_SERVERFAULT", "the server had an error that MOUNT has no word for"},
};

const Entry* find(std::span<const Entry> entries, uint32_t status) {
  for (const Entry& entry : entries) {
    if (entry.status == status) return &entry;
  }
  return nullptr;
}

int code_of(std::span<const Entry> entries, uint32_t status) {
  const Entry* entry = find(entries, status);
  return entry == nullptr ? EPROTO : entry->code;
}

std::string words_of(std::span<const Entry> entries, uint32_t status, std::string_view protocol) {
  const Entry* entry = find(entries, status);
  if (entry == nullptr) {
    return "status " + std::to_string(status) + " (unknown to " + std::string(protocol) + ")";
  }
  return std::string(entry->name) + " (" + std::string(entry->sentence) + ")";
}

bool about_rights(uint32_t status) {
  return status == static_cast<uint32_t>(Nfs3Status::kPerm) ||
         status == static_cast<uint32_t>(Nfs3Status::kAcces);
}

std::string rights_hint(uint32_t uid, uint32_t gid) {
  std::string hint =
      "; called as uid " + std::to_string(uid) + " gid " + std::to_string(gid) + ": ";
  hint += uid == 0 ? "an export squashes root unless it says no_root_squash; "
                   : "this user must own it or have the mode's permission; ";
  return hint +
         "auth_uid= and auth_gid= (uid= and gid= in the URL) choose another user; a server that "
         "asks for a source port below 1024 wants reserved_port=yes, or the export option "
         "insecure (ganesha: PrivilegedPort = false)";
}

}  // namespace

int nfs3_errno(uint32_t status) {
  return code_of(kNfsEntries, status);
}

std::string_view nfs3_name(uint32_t status) {
  const Entry* entry = find(kNfsEntries, status);
  return entry == nullptr ? std::string_view() : entry->name;
}

std::string nfs3_words(uint32_t status) {
  return words_of(kNfsEntries, status, "NFSv3");
}

std::string nfs3_hint(uint32_t status, uint32_t uid, uint32_t gid) {
  if (about_rights(status)) return rights_hint(uid, gid);
  switch (static_cast<Nfs3Status>(status)) {
    case Nfs3Status::kRofs:
      return "; export it read-write (rw), or run a job that only reads files that exist";
    case Nfs3Status::kNospc:
    case Nfs3Status::kDquot:
      return "; make room on the server, or lower size= or nrfiles=";
    case Nfs3Status::kStale:
    case Nfs3Status::kBadhandle:
      return "; it was removed or its export has changed: run again";
    default:
      return {};
  }
}

int mount3_errno(uint32_t status) {
  return code_of(kMountEntries, status);
}

std::string_view mount3_name(uint32_t status) {
  const Entry* entry = find(kMountEntries, status);
  return entry == nullptr ? std::string_view() : entry->name;
}

std::string mount3_words(uint32_t status) {
  return words_of(kMountEntries, status, "MOUNT v3");
}

}  // namespace nfsrdma
