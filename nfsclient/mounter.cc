// SPDX-License-Identifier: GPL-2.0-or-later
#include "mounter.h"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "mount_client.h"
#include "portmap.h"

namespace nfsrdma {
namespace {

constexpr uint16_t kNfsPort = 2049;
constexpr uint32_t kNfsVersion4 = 4;
constexpr size_t kExportsShown = 12;
constexpr size_t kHostErrorsShown = 4;

std::string joined(const std::vector<std::string>& items, size_t shown_max) {
  std::string text;
  for (size_t i = 0; i < items.size() && i < shown_max; i++) {
    if (i > 0) text += ", ";
    text += items[i];
  }
  if (items.size() > shown_max) {
    text += " and " + std::to_string(items.size() - shown_max) + " more";
  }
  return text;
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// `path` lies below `above`, by whole components.
bool is_below(std::string_view path, std::string_view above) {
  if (above == "/") return path.size() > 1 && path.starts_with('/');
  return path.size() > above.size() && path.starts_with(above) && path[above.size()] == '/';
}

std::vector<std::string> components_of(std::string_view path) {
  std::vector<std::string> components;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (slash != 0) components.emplace_back(path.substr(0, slash));
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return components;
}

/// A refusal after which an export above the path is looked for.
bool try_above(int code) {
  return code == ENOENT || code == ENOTDIR || code == EACCES;
}

/// False when the error comes from the network, or from what is no MOUNT service.
bool is_answer(int code) {
  constexpr int kNoAnswer[] = {ETIMEDOUT,    EPROTO,       EOPNOTSUPP,  ECONNREFUSED, ECONNRESET,
                               ECONNABORTED, EHOSTUNREACH, ENETUNREACH, EPIPE,        ENOTCONN};
  return std::ranges::find(kNoAnswer, code) == std::end(kNoAnswer);
}

std::string secure_hint() {
  return "; if the server asks for a source port below 1024 (exports(5): secure, the default; "
         "ganesha: PrivilegedPort), run as root or after setcap cap_net_bind_service=+ep on fio "
         "with reserved_port=yes, or export with insecure";
}

/// Mounts on one of the URL's hosts.
class Mounter {
 public:
  Mounter(const NfsUrl& url, std::string host, const ConnectTcp& connect,
          const NamespaceConfig& config)
      : url_(url), host_(std::move(host)), connect_(connect), config_(config) {}

  Result<Mounted> run() {
    auto mounted = mount();
    if (mounted) return mounted;
    return tl::unexpected(explain(mounted.error()));
  }

  /// The MOUNT service has replied: other addresses of the server would say the same.
  [[nodiscard]] bool answered() const { return answered_; }

 private:
  Result<Mounted> mount() {
    if (auto found = find_ports(); !found) return tl::unexpected(found.error());
    auto mount_caller = open(mount_port_);
    if (!mount_caller) {
      return tl::unexpected(unreachable(mount_caller.error(), "MOUNT", "mountport="));
    }
    MountClient client(**mount_caller, host_and_port(host_, mount_port_));
    auto handle = client.mnt(url_.path);
    answered_ = handle || is_answer(handle.error().code);
    if (handle) return finish(url_.path, *handle);
    if (!try_above(handle.error().code)) return tl::unexpected(handle.error());
    return mount_above(client, handle.error());
  }

  Result<std::unique_ptr<SyncCaller>> open(uint16_t port) {
    auto transport = connect_(host_, port, config_.stop);
    if (!transport) return tl::unexpected(transport.error());
    SyncCallerConfig config;
    config.server = host_and_port(host_, port);
    config.credential = config_.credential;
    config.call_timeout_ms = config_.call_timeout_ms;
    config.stop = config_.stop;
    return std::make_unique<SyncCaller>(std::move(*transport), std::move(config));
  }

  [[nodiscard]] Error unreachable(const Error& error, std::string_view service,
                                  std::string_view argument) const {
    if (error.code == EINTR) return error;
    std::string text = "the ";
    text.append(service).append(" service of ").append(host_).append(": ").append(error.text);
    text.append("; is the server running, and is the port right (").append(argument);
    return {error.code, text.append(" in the URL)?")};
  }

  Result<void> find_ports() {
    nfs_port_ = url_.nfs_port;
    mount_port_ = url_.mount_port;
    if (nfs_port_ != 0 && mount_port_ != 0) return {};
    auto portmap = open(kPortmapPort);
    if (!portmap) {
      // A host that cannot be reached at all needs another host, not other ports.
      const bool no_host = portmap.error().code == EHOSTUNREACH;
      return tl::unexpected(no_host ? portmap.error() : portmap_error(host_, portmap.error()));
    }
    if (nfs_port_ == 0) {
      if (auto found = find_nfs_port(**portmap); !found) return found;
    }
    return mount_port_ == 0 ? find_mount_port(**portmap) : Result<void>{};
  }

  Result<void> find_nfs_port(RpcCaller& portmap) {
    auto port = portmap_getport(portmap, host_, kNfsProgram, kNfsVersion);
    if (!port) return tl::unexpected(port.error());
    nfs_port_ = *port;
    if (nfs_port_ != 0) return {};
    auto version4 = portmap_getport(portmap, host_, kNfsProgram, kNfsVersion4);
    if (version4 && *version4 != 0) {
      return fail(EPROTONOSUPPORT, "rpcbind of " + host_ +
                                       " registers NFS version 4 and no version 3: only NFSv3 is "
                                       "spoken here, switch it on at the server");
    }
    return fail(EOPNOTSUPP, "rpcbind of " + host_ +
                                " registers no NFS server: start it, or give the ports in the "
                                "URL, as in ?nfsport=2049&mountport=20048");
  }

  Result<void> find_mount_port(RpcCaller& portmap) {
    auto port = portmap_getport(portmap, host_, kMountProgram, kMountVersion);
    if (!port) return tl::unexpected(port.error());
    mount_port_ = *port;
    if (mount_port_ != 0) return {};
    return fail(EOPNOTSUPP, "rpcbind of " + host_ +
                                " registers no MOUNT version 3 over TCP (a server of NFS version "
                                "4 only has none): start mountd, or give mountport= in the URL");
  }

  /// The whole path was refused: mounts the longest export above it, and looks up the rest.
  Result<Mounted> mount_above(MountClient& client, const Error& refused) {
    auto exports = client.exports();
    if (!exports) {
      return fail(refused.code,
                  refused.text + "; the list of exports cannot be had: " + exports.error().text);
    }
    std::vector<std::string> above;
    for (const Export& exported : *exports) {
      const std::string path = without_slash(exported.path);
      if (path == url_.path) return tl::unexpected(refused_export(exported, refused));
      if (is_below(url_.path, path)) above.push_back(path);
    }
    std::ranges::sort(above, [](const auto& a, const auto& b) { return a.size() > b.size(); });
    above.erase(std::unique(above.begin(), above.end()), above.end());
    for (const std::string& path : above) {
      if (auto handle = client.mnt(path)) return finish(path, *handle);
    }
    return fail(refused.code, refused.text + "; " + what_is_exported(*exports));
  }

  [[nodiscard]] std::string what_is_exported(const std::vector<Export>& exports) const {
    if (exports.empty()) return host_ + " says that it exports nothing to this client";
    std::vector<std::string> paths;
    for (const Export& exported : exports) paths.push_back(exported.path);
    return host_ + " exports: " + joined(paths, kExportsShown) + secure_hint();
  }

  static Error refused_export(const Export& exported, const Error& refused) {
    if (refused.code != EACCES) return refused;
    const std::string to =
        exported.groups.empty() ? "everybody" : joined(exported.groups, kExportsShown);
    return {refused.code, refused.text + "; it is exported to " + to + secure_hint()};
  }

  Result<Mounted> finish(const std::string& exported, const FileHandle& handle) {
    Mounted mounted;
    mounted.host = host_;
    mounted.nfs_port = nfs_port_;
    mounted.mount_port = mount_port_;
    mounted.exported = exported;
    mounted.control.server = host_and_port(host_, nfs_port_);
    mounted.control.uid = config_.credential.uid;
    mounted.control.gid = config_.credential.gid;
    mounted.control.jukebox_tries = config_.jukebox_tries;
    mounted.control.jukebox_first_ms = config_.jukebox_first_ms;
    auto caller = open(nfs_port_);
    if (!caller) return tl::unexpected(unreachable(caller.error(), "NFS", "nfsport="));
    mounted.caller = std::move(*caller);
    Nfs3Control nfs(*mounted.caller, mounted.control);
    const std::string rest = exported == "/" ? url_.path : url_.path.substr(exported.size());
    auto root = walk(nfs, handle, components_of(rest));
    if (!root) return tl::unexpected(root.error());
    mounted.root = *root;
    auto attributes = nfs.getattr(mounted.root, url_.path);
    if (!attributes) return tl::unexpected(attributes.error());
    mounted.attributes = *attributes;
    if (attributes->type != FileType::kDirectory) {
      return fail(ENOTDIR, "nfs_url: " + url_.path + " of " + host_ +
                               " is not a directory: end the URL at its directory and write "
                               "filename= for the file");
    }
    auto limits = nfs.fsinfo(mounted.root, url_.path);
    if (!limits) return tl::unexpected(limits.error());
    mounted.limits = *limits;
    return mounted;
  }

  Result<FileHandle> walk(Nfs3Control& nfs, FileHandle handle,
                          const std::vector<std::string>& components) {
    for (const std::string& name : components) {
      auto node = nfs.lookup(handle, name);
      if (!node) {
        Error error = node.error();
        error.text += ", on the way to " + url_.path;
        if (error.code == ENOENT) error.text += ": make it on the server, or use nfs_dir=";
        return tl::unexpected(std::move(error));
      }
      handle = node->handle;
    }
    return handle;
  }

  /// A server that is there but has no MOUNT service, no rpcbind or no NFSv3: its NFS port tells
  /// which. Not asked when the host did not answer at all, to fail in time.
  Error explain(Error error) {
    const bool alive = error.code == ECONNREFUSED || error.code == EOPNOTSUPP;
    if (answered_ || !alive) return error;
    const uint16_t port = nfs_port_ != 0 ? nfs_port_ : kNfsPort;
    auto caller = open(port);
    if (!caller) return error;
    Nfs3ControlConfig control;
    control.server = host_and_port(host_, port);
    Nfs3Control nfs(**caller, control);
    auto null = nfs.null();
    if (null) {
      error.text += "; NFSv3 does answer at " + control.server;
    } else if (null.error().code == EOPNOTSUPP) {
      error.code = EPROTONOSUPPORT;
      error.text = host_ + " serves no NFS version 3: " + null.error().text +
                   ": only NFSv3 is spoken here, switch it on at the server (" + error.text + ")";
    } else if (null.error().code == EPROTO) {
      error.text += "; " + null.error().text;
    }
    return error;
  }

  const NfsUrl& url_;
  std::string host_;
  const ConnectTcp& connect_;
  const NamespaceConfig& config_;
  uint16_t nfs_port_ = 0;
  uint16_t mount_port_ = 0;
  bool answered_ = false;
};

}  // namespace

Credential credential_of(const NfsUrl& url, Credential base) {
  if (url.uid && *url.uid != base.uid) base.gids.clear();
  base.uid = url.uid.value_or(base.uid);
  base.gid = url.gid.value_or(base.gid);
  return base;
}

Result<Mounted> mount_url(const NfsUrl& url, const ConnectTcp& connect,
                          const NamespaceConfig& config) {
  std::vector<Error> errors;
  for (const std::string& host : url.hosts) {
    Mounter mounter(url, host, connect, config);
    auto mounted = mounter.run();
    if (mounted || mounter.answered()) return mounted;
    errors.push_back(mounted.error());
  }
  if (errors.empty()) return fail(EINVAL, "nfs_url names no host: write nfs://host/path");
  if (errors.size() == 1) return tl::unexpected(errors.front());
  std::string text =
      "none of the " + std::to_string(errors.size()) + " hosts of nfs_url can be mounted: ";
  for (size_t i = 0; i < errors.size() && i < kHostErrorsShown; i++) {
    if (i > 0) text += "; ";
    text += errors[i].text;
  }
  return fail(errors.front().code, std::move(text));
}

}  // namespace nfsrdma
