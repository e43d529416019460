// SPDX-License-Identifier: GPL-2.0-or-later
#include "nfs3_status.h"

#include <gtest/gtest.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

#include <cerrno>
#include <utility>

namespace nfsrdma {
namespace {

// From RFC 1813 section 2.6, by libnfs's constants: number, errno, name.
#define STATUS(word, code) \
  { NFS3ERR_##word, code, "NFS3ERR_" #word }
struct Expected {
  uint32_t status;
  int code;
  std::string_view name;
};
constexpr Expected kExpected[] = {
    STATUS(PERM, EPERM),
    STATUS(NOENT, ENOENT),
    STATUS(IO, EIO),
    STATUS(NXIO, ENXIO),
    STATUS(ACCES, EACCES),
    STATUS(EXIST, EEXIST),
    STATUS(XDEV, EXDEV),
    STATUS(NODEV, ENODEV),
    STATUS(NOTDIR, ENOTDIR),
    STATUS(ISDIR, EISDIR),
    STATUS(INVAL, EINVAL),
    STATUS(FBIG, EFBIG),
    STATUS(NOSPC, ENOSPC),
    STATUS(ROFS, EROFS),
    STATUS(MLINK, EMLINK),
    STATUS(NAMETOOLONG, ENAMETOOLONG),
    STATUS(NOTEMPTY, ENOTEMPTY),
    STATUS(DQUOT, EDQUOT),
    STATUS(STALE, ESTALE),
    STATUS(REMOTE, EREMOTE),
    STATUS(BADHANDLE, EBADF),
    STATUS(NOT_SYNC, ESTALE),
    STATUS(BAD_COOKIE, EBADF),
    STATUS(NOTSUPP, EOPNOTSUPP),
    STATUS(TOOSMALL, EINVAL),
    STATUS(SERVERFAULT, EREMOTEIO),
    STATUS(BADTYPE, EOPNOTSUPP),
    STATUS(JUKEBOX, EAGAIN),
};
#undef STATUS

TEST(Nfs3Status, EveryCode) {
  for (const Expected& expected : kExpected) {
    EXPECT_EQ(nfs3_errno(expected.status), expected.code) << expected.name;
    EXPECT_EQ(nfs3_name(expected.status), expected.name);
    const std::string words = nfs3_words(expected.status);
    EXPECT_TRUE(words.starts_with(std::string(expected.name) + " (")) << words;
    EXPECT_TRUE(words.ends_with(")")) << words;
    EXPECT_GT(words.size(), expected.name.size() + 8);
  }
  EXPECT_EQ(nfs3_errno(0), 0);
  EXPECT_EQ(nfs3_words(30), "NFS3ERR_ROFS (the export is read-only)");
}

TEST(Nfs3Status, UnknownCodesAreProtocolErrors) {
  uint32_t known = 1;  // NFS3_OK
  for (uint32_t status = 0; status < 20000; status++) {
    if (nfs3_name(status).empty()) {
      EXPECT_EQ(nfs3_errno(status), EPROTO);
    } else if (status != 0) {
      known++;
    }
  }
  EXPECT_EQ(known, std::size(kExpected) + 1);
  EXPECT_EQ(nfs3_words(0xffffffff), "status 4294967295 (unknown to NFSv3)");
}

TEST(Nfs3Status, MountCodes) {
  constexpr std::pair<uint32_t, int> kMount[] = {
      {MNT3_OK, 0},
      {MNT3ERR_PERM, EPERM},
      {MNT3ERR_NOENT, ENOENT},
      {MNT3ERR_IO, EIO},
      {MNT3ERR_ACCES, EACCES},
      {MNT3ERR_NOTDIR, ENOTDIR},
      {MNT3ERR_INVAL, EINVAL},
      {MNT3ERR_NAMETOOLONG, ENAMETOOLONG},
      {MNT3ERR_NOTSUPP, EOPNOTSUPP},
      {MNT3ERR_SERVERFAULT, EREMOTEIO},
  };
  for (const auto& [status, code] : kMount) {
    EXPECT_EQ(mount3_errno(status), code);
    EXPECT_FALSE(mount3_name(status).empty());
  }
  EXPECT_EQ(mount3_errno(28), EPROTO);
  EXPECT_EQ(mount3_words(13), "MNT3ERR_ACCES (this client may not mount it)");
  EXPECT_EQ(mount3_words(28), "status 28 (unknown to MOUNT v3)");
}

}  // namespace
}  // namespace nfsrdma
