// SPDX-License-Identifier: GPL-2.0-or-later
// NFSv3's control procedures (RFC 1813 section 3.3), one call at a time. READ, WRITE and COMMIT
// belong to the data path.
//
// Errors carry the errno of the server's nfsstat3 and a text that names procedure, object, server,
// answer, and where rights are concerned the uid and what to change. NFS3ERR_JUKEBOX is waited for
// and asked again a bounded number of times. A call that took effect although its repetition said
// EXIST or NOENT is a success. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nfs3_types.h"
#include "result.h"
#include "rpc_caller.h"

namespace nfsrdma {

struct Nfs3ControlConfig {
  std::string server;  ///< "host:port", for messages
  uint32_t uid = 0;    ///< of the calls' credential, for messages
  uint32_t gid = 0;
  uint32_t jukebox_tries = 8;       ///< calls at most, while the server answers JUKEBOX
  uint32_t jukebox_first_ms = 100;  ///< first wait; doubles to jukebox_longest_ms
  uint32_t jukebox_longest_ms = 5'000;
};

/// An object by its handle; attributes if the server sent them along.
struct Node {
  FileHandle handle;
  std::optional<Attributes> attributes;
};

struct SetAttributes {  // sattr3, as far as it is wanted here
  std::optional<uint32_t> mode;
  std::optional<uint64_t> size;
  std::optional<Time> mtime;
  bool mtime_of_server = false;  ///< the server's clock; goes before `mtime`
};

struct DirEntry {
  std::string name;
  uint64_t fileid = 0;
  uint64_t cookie = 0;
  std::optional<Attributes> attributes;
  std::optional<FileHandle> handle;
};

struct DirPosition {
  uint64_t cookie = 0;
  std::array<char, kCookieVerifierSize> verifier{};
};

struct DirPage {
  std::vector<DirEntry> entries;  ///< without "." and ".."
  DirPosition next;               ///< where the next page begins
  bool eof = false;
};

struct FsInfo {
  uint32_t rtmax = 0, rtpref = 0, rtmult = 0;
  uint32_t wtmax = 0, wtpref = 0, wtmult = 0;
  uint32_t dtpref = 0;
  uint64_t maxfilesize = 0;
  Time time_delta;
  uint32_t properties = 0;
};

struct FsStat {  ///< bytes and files: total, free, available to this user
  uint64_t tbytes = 0, fbytes = 0, abytes = 0;
  uint64_t tfiles = 0, ffiles = 0, afiles = 0;
  uint32_t invarsec = 0;
};

struct PathConf {
  uint32_t linkmax = 0;
  uint32_t name_max = 0;
  bool no_trunc = false;
  bool chown_restricted = false;
  bool case_insensitive = false;
  bool case_preserving = false;
};

/// A name within a directory: ENAMETOOLONG beyond kNameMax bytes, EINVAL when it is empty, "." or
/// "..", or contains a slash or NUL.
Result<void> check_name(std::string_view name);

/// `what` of each call is the object's path or name, for messages.
class Nfs3Control {
 public:
  /// The caller must live longer.
  Nfs3Control(RpcCaller& caller, Nfs3ControlConfig config)
      : caller_(caller), config_(std::move(config)) {}

  Result<void> null();
  Result<Attributes> getattr(const FileHandle& object, const std::string& what);
  Result<void> setattr(const FileHandle& object, const SetAttributes& attributes,
                       const std::string& what);
  Result<Node> lookup(const FileHandle& directory, const std::string& name);
  /// The bits of `wanted` (kAccessRead, ...) that the server grants.
  Result<uint32_t> access(const FileHandle& object, uint32_t wanted, const std::string& what);

  /// One READDIRPLUS. A changed verifier is NFS3ERR_BAD_COOKIE: EBADF.
  Result<DirPage> readdirplus_page(const FileHandle& directory, const DirPosition& from,
                                   const std::string& what);
  /// The whole directory, from its begin again when the verifier changes; E2BIG when it has more
  /// than `entries_max`.
  Result<std::vector<DirEntry>> readdirplus(const FileHandle& directory, size_t entries_max,
                                            const std::string& what);

  /// EXCLUSIVE sets `attributes` by a SETATTR of its own, as RFC 1813 section 3.3.8 wants it.
  Result<Node> create(const FileHandle& directory, const std::string& name, CreateMode mode,
                      const SetAttributes& attributes);
  Result<Node> mkdir(const FileHandle& directory, const std::string& name, uint32_t mode);
  Result<void> remove(const FileHandle& directory, const std::string& name);
  Result<void> rmdir(const FileHandle& directory, const std::string& name);
  Result<void> rename(const FileHandle& from_directory, const std::string& from_name,
                      const FileHandle& to_directory, const std::string& to_name);

  Result<FsInfo> fsinfo(const FileHandle& object, const std::string& what);
  Result<FsStat> fsstat(const FileHandle& object, const std::string& what);
  Result<PathConf> pathconf(const FileHandle& object, const std::string& what);

  [[nodiscard]] const Nfs3ControlConfig& config() const { return config_; }

 private:
  struct Answer {
    uint32_t status = 0;
    ConstBytes reply;  ///< from the status on
    uint32_t retransmissions = 0;
  };

  Result<Answer> ask(NfsProcedure procedure, ConstBytes arguments, const std::string& what,
                     uint32_t reply_max);
  Result<ConstBytes> ask_ok(NfsProcedure procedure, ConstBytes arguments, const std::string& what,
                            std::string_view shape);
  Result<void> remove_entry(NfsProcedure procedure, const FileHandle& directory,
                            const std::string& name);
  Result<Node> made_node(NfsProcedure procedure, ConstBytes reply, const FileHandle& directory,
                         const std::string& name);
  Result<Node> after_repeated_create(const FileHandle& directory, const std::string& name,
                                     FileType type, const Error& refused);
  [[nodiscard]] std::string asked(NfsProcedure procedure, const std::string& what) const;
  [[nodiscard]] Error refused(NfsProcedure procedure, const std::string& what,
                              uint32_t status) const;
  [[nodiscard]] tl::unexpected<Error> garbled(NfsProcedure procedure,
                                              const std::string& what) const;

  RpcCaller& caller_;
  Nfs3ControlConfig config_;
};

}  // namespace nfsrdma
