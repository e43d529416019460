// SPDX-License-Identifier: GPL-2.0-or-later
// Files and directories below a mounted URL, by path. A path is relative to the URL's path:
// "dir/file"; "" and "." are the root; ".." is refused. Symbolic links are not followed.
//
// One thread. Every call waits for the server, within the caller's deadline.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "mounter.h"
#include "nfs3_control.h"

namespace nfsrdma {

constexpr uint32_t kTreeDepthMax = 64;
constexpr uint64_t kTreeEntriesMax = 1'000'000;

/// An object with its attributes.
struct Found {
  FileHandle handle;
  Attributes attributes;
};

class NamespaceClient {
 public:
  /// Mounts; see mount_url().
  static Result<std::unique_ptr<NamespaceClient>> mount(const NfsUrl& url, ConnectTcp connect,
                                                        const NamespaceConfig& config);

  NamespaceClient(Mounted mounted, ConnectTcp connect, NamespaceConfig config);
  NamespaceClient(const NamespaceClient&) = delete;
  NamespaceClient& operator=(const NamespaceClient&) = delete;

  [[nodiscard]] const FileHandle& root() const { return mounted_.root; }
  [[nodiscard]] const FsInfo& limits() const { return mounted_.limits; }
  [[nodiscard]] const Mounted& mounted() const { return mounted_; }
  [[nodiscard]] Nfs3Control& nfs() { return *nfs_; }

  /// From here on NFS calls go through `caller`, which must live longer; the connection that
  /// mounting used is closed.
  void call_through(RpcCaller& caller);

  /// ENOENT when it does not exist; ELOOP for a symbolic link.
  Result<Found> resolve(const std::string& path);
  /// Makes what is missing of the directory `path`, with mode 0755.
  Result<Found> make_directories(const std::string& path);
  /// A regular file. EISDIR for a directory, ENOENT when it does not exist.
  Result<Found> open_file(const std::string& path);
  /// The same, created with `mode` if it does not exist. Its directory must.
  Result<Found> create_file(const std::string& path, uint32_t mode = 0644);
  Result<void> remove_file(const std::string& path);
  /// Removes a directory and all below it; refuses the root. Symbolic links are removed, not
  /// followed. Returns the number of entries removed. E2BIG beyond kTreeDepthMax levels or
  /// kTreeEntriesMax entries: some are removed then.
  Result<uint64_t> remove_tree(const std::string& path);

  /// MOUNT's UMNT: tidies the server's list of clients. It is advisory, so errors are dropped.
  void unmount();

 private:
  struct Parent {
    FileHandle directory;
    std::string name;
  };

  Result<Parent> parent_of(const std::string& path);
  Result<Found> child(const FileHandle& directory, const std::string& name,
                      const std::string& path);
  Result<Found> with_attributes(const Node& node, const std::string& path);
  Result<void> remove_contents(const FileHandle& directory, const std::string& path, uint32_t depth,
                               uint64_t& removed);
  Result<void> remove_entry(const FileHandle& directory, const DirEntry& entry,
                            const std::string& path, uint32_t depth, uint64_t& removed);

  Mounted mounted_;
  ConnectTcp connect_;
  NamespaceConfig config_;
  std::optional<Nfs3Control> nfs_;
};

}  // namespace nfsrdma
