// SPDX-License-Identifier: GPL-2.0-or-later
// The numbers of ONC RPC (RFC 5531), NFSv3 and MOUNT v3 (RFC 1813) and portmap (RFC 1833) that a
// server needs. Enumerators keep the RFC's words.
#pragma once

#include <cstdint>

namespace nfsrdma::memd {

// RFC 5531 section 9.
constexpr uint32_t kRpcVersion = 2;
enum : uint32_t { kMsgCall = 0, kMsgReply = 1 };
enum : uint32_t { kMsgAccepted = 0, kMsgDenied = 1 };
enum class AcceptStat : uint32_t {
  kSuccess = 0,
  kProgUnavail = 1,
  kProgMismatch = 2,
  kProcUnavail = 3,
  kGarbageArgs = 4,
  kSystemErr = 5,
};
enum : uint32_t { kRejectRpcMismatch = 0, kRejectAuthError = 1 };
enum class AuthStat : uint32_t { kBadCred = 1, kRejectedCred = 2, kTooWeak = 5 };
enum : uint32_t { kAuthNone = 0, kAuthSys = 1 };
constexpr uint32_t kAuthBodyMax = 400;
constexpr uint32_t kMachineNameMax = 255;
constexpr uint32_t kAuthSysGroupsMax = 16;
/// xid, REPLY, MSG_ACCEPTED, verifier (flavour, length), accept_stat.
constexpr uint32_t kAcceptedHeaderLength = 24;

constexpr uint32_t kNfsProgram = 100003;
constexpr uint32_t kMountProgram = 100005;
constexpr uint32_t kPortmapProgram = 100000;
constexpr uint32_t kNfsVersion = 3;
constexpr uint32_t kMountVersion = 3;
constexpr uint32_t kPortmapVersion = 2;

// RFC 1813 section 3.3.
enum class Proc : uint32_t {
  kNull = 0,
  kGetattr = 1,
  kSetattr = 2,
  kLookup = 3,
  kAccess = 4,
  kReadlink = 5,
  kRead = 6,
  kWrite = 7,
  kCreate = 8,
  kMkdir = 9,
  kSymlink = 10,
  kMknod = 11,
  kRemove = 12,
  kRmdir = 13,
  kRename = 14,
  kLink = 15,
  kReaddir = 16,
  kReaddirplus = 17,
  kFsstat = 18,
  kFsinfo = 19,
  kPathconf = 20,
  kCommit = 21,
};
constexpr uint32_t kNfsProcs = 22;

enum class MountProc : uint32_t {
  kNull = 0,
  kMnt = 1,
  kDump = 2,
  kUmnt = 3,
  kUmntall = 4,
  kExport = 5,
};
constexpr uint32_t kMountProcs = 6;

/// nfsstat3, RFC 1813 section 2.6; mountstat3 has the same numbers where it has a code at all.
enum class Stat : uint32_t {
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
  kBadhandle = 10001,
  kNotSync = 10002,
  kBadCookie = 10003,
  kNotsupp = 10004,
  kToosmall = 10005,
  kServerfault = 10006,
  kBadtype = 10007,
  kJukebox = 10008,
};

enum class FileType : uint32_t {
  kReg = 1,
  kDir = 2,
  kBlk = 3,
  kChr = 4,
  kLnk = 5,
  kSock = 6,
  kFifo = 7,
};

enum class StableHow : uint32_t { kUnstable = 0, kDataSync = 1, kFileSync = 2 };
enum class CreateMode : uint32_t { kUnchecked = 0, kGuarded = 1, kExclusive = 2 };
enum class TimeHow : uint32_t { kDontChange = 0, kServerTime = 1, kClientTime = 2 };

enum : uint32_t {
  kAccessRead = 0x01,
  kAccessLookup = 0x02,
  kAccessModify = 0x04,
  kAccessExtend = 0x08,
  kAccessDelete = 0x10,
  kAccessExecute = 0x20,
};

constexpr uint32_t kHandleMin = 8;
constexpr uint32_t kHandleMax = 64;
constexpr uint32_t kNameMax = 255;
constexpr uint32_t kPathMax = 1024;
constexpr uint32_t kLinkMax = 65000;
constexpr uint32_t kVerifierLength = 8;
constexpr uint64_t kFileSizeMax = INT64_MAX;

/// Hard upper bound of rtmax and wtmax.
constexpr uint32_t kTransferMax = 1u << 20;
/// Largest READDIR or READDIRPLUS result; no other reply without bulk data comes near.
constexpr uint32_t kDirReplyMax = 1u << 16;
/// Room that a transport must offer for the head of any reply.
constexpr uint32_t kReplyHeadMax = kDirReplyMax + 1024;
/// Room needed by the head of a reply to READ, WRITE, COMMIT, GETATTR, LOOKUP, ACCESS.
constexpr uint32_t kReplyHeadSmall = 512;

}  // namespace nfsrdma::memd
