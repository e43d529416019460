// SPDX-License-Identifier: GPL-2.0-or-later
#include "namespace_client.h"

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "mount_client.h"

namespace nfsrdma {
namespace {

Result<std::vector<std::string>> split(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      return fail(EINVAL, "'..' in a path on the server is refused: write the path without it");
    }
    if (auto checked = check_name(name); !checked) return tl::unexpected(checked.error());
    names.emplace_back(name);
  }
  if (names.size() > kTreeDepthMax) {
    return fail(ENAMETOOLONG, "a path of " + std::to_string(names.size()) +
                                  " directories; at most " + std::to_string(kTreeDepthMax) +
                                  " are allowed");
  }
  return names;
}

/// The control procedures name an object within its directory; here its whole path is known.
tl::unexpected<Error> at_path(Error error, const std::string& name, const std::string& path) {
  if (path != name) error.text.insert(0, path + ": ");
  return tl::unexpected(std::move(error));
}

Result<void> want_directory(const Found& found, const std::string& path) {
  if (found.attributes.type == FileType::kDirectory) return {};
  return fail(ENOTDIR, path + " on the server is not a directory: choose another path");
}

Result<Found> want_file(Found found, const std::string& path) {
  if (found.attributes.type == FileType::kRegular) return found;
  if (found.attributes.type == FileType::kDirectory) {
    return fail(EISDIR, path + " on the server is a directory: name a file with filename=");
  }
  return fail(EINVAL, path + " on the server is not a regular file: name one with filename=");
}

}  // namespace

Result<std::unique_ptr<NamespaceClient>> NamespaceClient::mount(const NfsUrl& url,
                                                                ConnectTcp connect,
                                                                const NamespaceConfig& config) {
  auto mounted = mount_url(url, connect, config);
  if (!mounted) return tl::unexpected(mounted.error());
  return std::make_unique<NamespaceClient>(std::move(*mounted), std::move(connect), config);
}

NamespaceClient::NamespaceClient(Mounted mounted, ConnectTcp connect, NamespaceConfig config)
    : mounted_(std::move(mounted)),
      connect_(std::move(connect)),
      config_(std::move(config)),
      nfs_(std::in_place, *mounted_.caller, mounted_.control) {}

void NamespaceClient::call_through(RpcCaller& caller) {
  nfs_.emplace(caller, mounted_.control);
  mounted_.caller.reset();
}

Result<Found> NamespaceClient::with_attributes(const Node& node, const std::string& path) {
  if (node.attributes) return Found{node.handle, *node.attributes};
  auto attributes = nfs_->getattr(node.handle, path);
  if (!attributes) return tl::unexpected(attributes.error());
  return Found{node.handle, *attributes};
}

Result<Found> NamespaceClient::child(const FileHandle& directory, const std::string& name,
                                     const std::string& path) {
  auto node = nfs_->lookup(directory, name);
  if (!node) return at_path(node.error(), name, path);
  auto found = with_attributes(*node, path);
  if (found && found->attributes.type == FileType::kLink) {
    return fail(ELOOP, path +
                           " on the server is a symbolic link: these are not followed, name "
                           "what it points to");
  }
  return found;
}

Result<Found> NamespaceClient::resolve(const std::string& path) {
  auto names = split(path);
  if (!names) return tl::unexpected(names.error());
  Found at{mounted_.root, mounted_.attributes};
  for (const std::string& name : *names) {
    if (auto checked = want_directory(at, path); !checked) return tl::unexpected(checked.error());
    auto next = child(at.handle, name, path);
    if (!next) return next;
    at = *next;
  }
  return at;
}

Result<Found> NamespaceClient::make_directories(const std::string& path) {
  auto names = split(path);
  if (!names) return tl::unexpected(names.error());
  Found at{mounted_.root, mounted_.attributes};
  for (const std::string& name : *names) {
    auto next = child(at.handle, name, path);
    if (!next && next.error().code == ENOENT) {
      auto made = nfs_->mkdir(at.handle, name, 0755);
      // Another job may have made it meanwhile.
      next = !made && made.error().code == EEXIST ? child(at.handle, name, path)
             : made                               ? with_attributes(*made, path)
                                                  : at_path(made.error(), name, path);
    }
    if (!next) return next;
    at = *next;
    if (auto checked = want_directory(at, path); !checked) return tl::unexpected(checked.error());
  }
  return at;
}

Result<NamespaceClient::Parent> NamespaceClient::parent_of(const std::string& path) {
  auto names = split(path);
  if (!names) return tl::unexpected(names.error());
  if (names->empty()) {
    return fail(EINVAL, "\"" + path + "\" names no file below the URL's path");
  }
  std::string directory;
  for (size_t i = 0; i + 1 < names->size(); i++) directory += (*names)[i] + "/";
  auto found = resolve(directory);
  if (!found) return tl::unexpected(found.error());
  if (auto checked = want_directory(*found, directory); !checked) {
    return tl::unexpected(checked.error());
  }
  return Parent{found->handle, names->back()};
}

Result<Found> NamespaceClient::open_file(const std::string& path) {
  auto parent = parent_of(path);
  if (!parent) return tl::unexpected(parent.error());
  auto found = child(parent->directory, parent->name, path);
  if (!found) return found;
  return want_file(*found, path);
}

Result<Found> NamespaceClient::create_file(const std::string& path, uint32_t mode) {
  auto parent = parent_of(path);
  if (!parent) return tl::unexpected(parent.error());
  auto found = child(parent->directory, parent->name, path);
  if (found) return want_file(*found, path);
  if (found.error().code != ENOENT) return found;
  SetAttributes attributes;
  attributes.mode = mode;
  // UNCHECKED: another job that creates the same file meanwhile does no harm.
  auto node = nfs_->create(parent->directory, parent->name, CreateMode::kUnchecked, attributes);
  if (!node) return at_path(node.error(), parent->name, path);
  found = with_attributes(*node, path);
  if (!found) return found;
  return want_file(*found, path);
}

Result<void> NamespaceClient::remove_file(const std::string& path) {
  auto parent = parent_of(path);
  if (!parent) return tl::unexpected(parent.error());
  auto removed = nfs_->remove(parent->directory, parent->name);
  if (!removed) return at_path(removed.error(), parent->name, path);
  return {};
}

Result<void> NamespaceClient::remove_entry(const FileHandle& directory, const DirEntry& entry,
                                           const std::string& path, uint32_t depth,
                                           uint64_t& removed) {
  if (++removed > kTreeEntriesMax) {
    return fail(E2BIG, path + " holds more than " + std::to_string(kTreeEntriesMax) +
                           " entries: remove it on the server");
  }
  Node node;
  if (entry.handle && entry.attributes) {
    node = {*entry.handle, entry.attributes};
  } else {
    auto looked_up = nfs_->lookup(directory, entry.name);
    if (!looked_up) return tl::unexpected(looked_up.error());
    node = *looked_up;
  }
  auto found = with_attributes(node, path);
  if (!found) return tl::unexpected(found.error());
  if (found->attributes.type != FileType::kDirectory) return nfs_->remove(directory, entry.name);
  const std::string below = path + "/" + entry.name;
  if (auto done = remove_contents(found->handle, below, depth + 1, removed); !done) return done;
  return nfs_->rmdir(directory, entry.name);
}

Result<void> NamespaceClient::remove_contents(const FileHandle& directory, const std::string& path,
                                              uint32_t depth, uint64_t& removed) {
  if (depth > kTreeDepthMax) {
    return fail(E2BIG, path + " lies more than " + std::to_string(kTreeDepthMax) +
                           " directories deep: remove it on the server");
  }
  DirPosition position;
  // Each page holds entries, which count against kTreeEntriesMax, or "." and ".." alone.
  for (uint32_t idle_pages = 0; idle_pages < 4;) {
    auto page = nfs_->readdirplus_page(directory, position, path);
    if (!page) return tl::unexpected(page.error());
    size_t gone = 0;
    for (const DirEntry& entry : page->entries) {
      auto done = remove_entry(directory, entry, path, depth, removed);
      // Gone already: somebody else tidies up too.
      if (!done && done.error().code == ENOENT) gone++;
      if (!done && done.error().code != ENOENT) return done;
    }
    if (gone == page->entries.size()) {
      if (page->entries.empty() && page->eof) return {};
      idle_pages++;
      position = page->eof ? DirPosition{} : page->next;
    } else {
      // What was removed may have moved the rest: from the begin again.
      position = {};
    }
  }
  return fail(EPROTO, path + " on the server: READDIRPLUS neither lists entries nor ends");
}

Result<uint64_t> NamespaceClient::remove_tree(const std::string& path) {
  auto parent = parent_of(path);
  if (!parent) return tl::unexpected(parent.error());
  auto found = child(parent->directory, parent->name, path);
  if (!found) return tl::unexpected(found.error());
  if (auto checked = want_directory(*found, path); !checked) {
    return tl::unexpected(checked.error());
  }
  uint64_t removed = 0;
  auto done = remove_contents(found->handle, path, 0, removed);
  if (!done) return tl::unexpected(done.error());
  done = nfs_->rmdir(parent->directory, parent->name);
  if (!done) return tl::unexpected(done.error());
  return removed + 1;
}

void NamespaceClient::unmount() {
  auto transport = connect_(mounted_.host, mounted_.mount_port, nullptr);
  if (!transport) return;
  SyncCallerConfig config;
  config.server = host_and_port(mounted_.host, mounted_.mount_port);
  config.credential = config_.credential;
  config.call_timeout_ms = 2'000;  // Not worth a longer wait.
  SyncCaller caller(std::move(*transport), config);
  MountClient client(caller, config.server);
  (void)client.umnt(mounted_.exported);
}

}  // namespace nfsrdma
