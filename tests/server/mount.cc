// SPDX-License-Identifier: GPL-2.0-or-later
// MOUNT v3 (RFC 1813 section 5) and as much of portmap v2 (RFC 1833) as a client needs.
#include <algorithm>

#include "service.h"

namespace nfsrdma::memd {

namespace {

constexpr size_t kMountsMax = 1024;
constexpr uint32_t kHostMax = 255;

/// What is left of `path` below `root`; false if it does not lie there.
bool below(std::string_view path, std::string_view root, std::string_view& rest) {
  if (path.substr(0, root.size()) != root) return false;
  rest = path.substr(root.size());
  return rest.empty() || rest.front() == '/' || root.back() == '/';
}

}  // namespace

bool NfsService::mount_null(Op& op) {
  log(op, 0, 0, 0, {});
  return true;
}

/// Finds what a path to be mounted names: the longest export that holds it, then name by name.
Stat NfsService::walk(const Credentials& who, std::string_view path, Ref& ref) {
  std::string_view rest;
  size_t longest = 0;
  for (size_t i = 0; i < store_.exports().size(); ++i) {
    const std::string& root = store_.exports()[i];
    std::string_view below_root;
    if (root.size() > longest && below(path, root, below_root)) {
      longest = root.size();
      rest = below_root;
      ref = store_.root(i);
    }
  }
  if (longest == 0) return Stat::kNoent;
  while (!rest.empty()) {
    if (rest.front() == '/') {
      rest.remove_prefix(1);
      continue;
    }
    if (options_.mount_exports_only) return Stat::kAcces;
    const std::string_view name = rest.substr(0, rest.find('/'));
    rest.remove_prefix(name.size());
    Found found;
    PostOp dir_after;
    const Stat stat = store_.lookup(who, ref, name, found, dir_after);
    if (stat != Stat::kOk) return stat;
    ref = found.ref;
  }
  Fattr attributes;
  const Stat stat = store_.getattr(ref, attributes);
  if (stat != Stat::kOk) return stat;
  return attributes.type == FileType::kDir ? Stat::kOk : Stat::kNotdir;
}

bool NfsService::mount_mnt(Op& op) {
  const std::string_view path = op.in.string(kCallHeadMax);
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, path);
  Ref ref;
  Stat stat = path.size() > kPathMax ? Stat::kNametoolong : walk(op.who, path, ref);
  if (op.call.peer_port >= 1024 && faults_.fires(Fault::kDenyUnreserved, op.reply.proc_index)) {
    stat = Stat::kAcces;
  }
  reply_stat(op, stat);
  if (stat != Stat::kOk) return true;
  put_handle(op, ref);
  op.out.u32(2);
  op.out.u32(kAuthSys);
  op.out.u32(kAuthNone);
  const std::lock_guard<std::mutex> guard(mounts_mutex_);
  if (mounts_.size() == kMountsMax) mounts_.erase(mounts_.begin());
  mounts_.emplace_back(op.call.peer_host.substr(0, kHostMax), path);
  return true;
}

bool NfsService::mount_dump(Op& op) {
  log(op, 0, 0, 0, {});
  const std::lock_guard<std::mutex> guard(mounts_mutex_);
  for (const auto& [host, path] : mounts_) {
    const size_t length = 4 + 4 + host.size() + 3 + 4 + path.size() + 3 + 4;
    if (op.out.size() + length > op.reply.head.size()) break;
    op.out.boolean(true);
    op.out.string(host);
    op.out.string(path);
  }
  op.out.boolean(false);
  return true;
}

bool NfsService::mount_umnt(Op& op) {
  const std::string_view path = op.in.string(kCallHeadMax);
  if (!op.in.ok()) return false;
  log(op, 0, 0, 0, path);
  const std::lock_guard<std::mutex> guard(mounts_mutex_);
  const auto found = std::find_if(mounts_.begin(), mounts_.end(), [&](const auto& mount) {
    return mount.first == op.call.peer_host && mount.second == path;
  });
  if (found != mounts_.end()) mounts_.erase(found);
  return true;
}

bool NfsService::mount_umntall(Op& op) {
  log(op, 0, 0, 0, {});
  const std::lock_guard<std::mutex> guard(mounts_mutex_);
  std::erase_if(mounts_, [&](const auto& mount) { return mount.first == op.call.peer_host; });
  return true;
}

bool NfsService::mount_export(Op& op) {
  log(op, 0, 0, 0, {});
  for (const std::string& path : store_.exports()) {
    if (op.out.size() + path.size() + 32 > op.reply.head.size()) break;
    op.out.boolean(true);
    op.out.string(path);
    op.out.boolean(false);  // no groups: everyone
  }
  op.out.boolean(false);
  return true;
}

bool NfsService::portmap_null(Op&) {
  return true;
}

bool NfsService::portmap_getport(Op& op) {
  constexpr uint32_t kIpprotoTcp = 6;
  const uint32_t program = op.in.u32();
  const uint32_t version = op.in.u32();
  const uint32_t protocol = op.in.u32();
  op.in.u32();
  if (!op.in.ok()) return false;
  const bool served =
      protocol == kIpprotoTcp && ((program == kNfsProgram && version == kNfsVersion) ||
                                  (program == kMountProgram && version == kMountVersion));
  op.out.u32(served ? options_.nfs_port : 0);
  return true;
}

}  // namespace nfsrdma::memd
