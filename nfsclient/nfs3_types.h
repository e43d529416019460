// SPDX-License-Identifier: GPL-2.0-or-later
// Constants and plain types of NFSv3 and MOUNT v3 (RFC 1813). Sizes in bytes. Values only: nothing
// here allocates, and any thread may use it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "xdr.h"

namespace nfsrdma {

constexpr uint32_t kNfsProgram = 100003;
constexpr uint32_t kNfsVersion = 3;
constexpr uint32_t kMountProgram = 100005;
constexpr uint32_t kMountVersion = 3;

/// RFC 1813 section 2.4.
constexpr uint32_t kFileHandleMax = 64;      // NFS3_FHSIZE
constexpr uint32_t kWriteVerifierSize = 8;   // NFS3_WRITEVERFSIZE
constexpr uint32_t kCreateVerifierSize = 8;  // NFS3_CREATEVERFSIZE
constexpr uint32_t kCookieVerifierSize = 8;  // NFS3_COOKIEVERFSIZE
constexpr uint32_t kMountPathMax = 1024;     // MNTPATHLEN, appendix I
constexpr uint32_t kMountNameMax = 255;      // MNTNAMLEN, appendix I
/// RFC 1813 leaves names unbounded; servers' file systems stop here.
constexpr uint32_t kNameMax = 255;

/// Encoded sizes of structures of fixed length.
constexpr uint32_t kFattr3Size = 84;
constexpr uint32_t kWccAttrSize = 24;
static_assert(kFattr3Size == 5 * 4 + 2 * 8 + 2 * 4 + 2 * 8 + 3 * 8);

enum class NfsProcedure : uint32_t {
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

enum class MountProcedure : uint32_t {
  kNull = 0,
  kMnt = 1,
  kDump = 2,
  kUmnt = 3,
  kUmntall = 4,
  kExport = 5,
};

enum class StableHow : uint32_t { kUnstable = 0, kDataSync = 1, kFileSync = 2 };

enum class FileType : uint32_t {  // ftype3
  kRegular = 1,
  kDirectory = 2,
  kBlock = 3,
  kCharacter = 4,
  kLink = 5,
  kSocket = 6,
  kFifo = 7,
};

enum class CreateMode : uint32_t { kUnchecked = 0, kGuarded = 1, kExclusive = 2 };

/// Bits of ACCESS (RFC 1813 section 3.3.4).
constexpr uint32_t kAccessRead = 0x01;
constexpr uint32_t kAccessLookup = 0x02;
constexpr uint32_t kAccessModify = 0x04;
constexpr uint32_t kAccessExtend = 0x08;
constexpr uint32_t kAccessDelete = 0x10;
constexpr uint32_t kAccessExecute = 0x20;

/// Bits of FSINFO's properties (RFC 1813 section 3.3.19).
constexpr uint32_t kFsinfoCanSetTime = 0x10;

/// A file handle: 0 to 64 opaque bytes.
struct FileHandle {
  uint32_t length = 0;
  std::array<std::byte, kFileHandleMax> bytes{};

  /// `from` longer than kFileHandleMax gives nothing.
  static std::optional<FileHandle> from(ConstBytes from) {
    if (from.size() > kFileHandleMax) return std::nullopt;
    FileHandle handle;
    handle.length = static_cast<uint32_t>(from.size());
    std::copy(from.begin(), from.end(), handle.bytes.begin());
    return handle;
  }

  [[nodiscard]] ConstBytes span() const { return {bytes.data(), length}; }
  friend bool operator==(const FileHandle& one, const FileHandle& other) {
    return std::ranges::equal(one.span(), other.span());
  }
};

struct Time {  // nfstime3
  uint32_t seconds = 0;
  uint32_t nanoseconds = 0;
  friend bool operator==(const Time&, const Time&) = default;
};

struct Attributes {  // fattr3
  FileType type = FileType::kRegular;
  uint32_t mode = 0;
  uint32_t nlink = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;
  uint64_t used = 0;
  uint32_t rdev_major = 0;
  uint32_t rdev_minor = 0;
  uint64_t fsid = 0;
  uint64_t fileid = 0;
  Time atime;
  Time mtime;
  Time ctime;
};

}  // namespace nfsrdma
