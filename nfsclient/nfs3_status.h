// SPDX-License-Identifier: GPL-2.0-or-later
// nfsstat3 (RFC 1813 section 2.6) and mountstat3 (appendix I) to errno and to words.
//
// Statuses are passed as the word on the wire, so that codes no RFC knows can be named too. Errno
// functions neither allocate nor lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nfsrdma {

enum class Nfs3Status : uint32_t {
  kOk = 0,
  kPerm = 1,
  kNoent = 2,
  kIo = 5,
  kNxio = 6,
  kAcces = 13,
  kExist = 17,
  kXdev = 18,
  kNodev = 19,
  kNotdir = 20,
  kIsdir = 21,
  kInval = 22,
  kFbig = 27,
  kNospc = 28,
  kRofs = 30,
  kMlink = 31,
  kNametoolong = 63,
  kNotempty = 66,
  kDquot = 69,
  kStale = 70,
  kRemote = 71,
  kBadhandle = 10001,
  kNotSync = 10002,
  kBadCookie = 10003,
  kNotsupp = 10004,
  kToosmall = 10005,
  kServerfault = 10006,
  kBadtype = 10007,
  kJukebox = 10008,
};

/// 0 for NFS3_OK; EPROTO for a code that RFC 1813 does not know.
int nfs3_errno(uint32_t status);
/// "NFS3ERR_ROFS"; empty for an unknown code.
std::string_view nfs3_name(uint32_t status);
/// "NFS3ERR_ROFS (the export is read-only)"; "status 4711 (unknown to NFSv3)".
std::string nfs3_words(uint32_t status);
/// What the user can change, to be put behind nfs3_words(): "; make room on the server, ...", or
/// empty. `uid` and `gid` are those of the call.
std::string nfs3_hint(uint32_t status, uint32_t uid, uint32_t gid);

/// The same for mountstat3.
int mount3_errno(uint32_t status);
std::string_view mount3_name(uint32_t status);
std::string mount3_words(uint32_t status);

}  // namespace nfsrdma
