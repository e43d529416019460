// SPDX-License-Identifier: GPL-2.0-or-later
#include "mount_client.h"

#include <nfsc/libnfs-raw-mount.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "nfs3_status.h"
#include "reply_shape.h"
#include "rpc_message.h"
#include "zdr_codec.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kMntReplyMax = 1024;
constexpr uint32_t kExportReplyMax = 60'000;

/// AUTH_SYS is among the flavours, or the server lists none, as old ones do.
bool takes_auth_sys(std::span<const int> flavors) {
  return flavors.empty() ||
         std::ranges::find(flavors, static_cast<int>(AuthFlavor::kSys)) != flavors.end();
}

std::string names_of(std::span<const int> flavors) {
  std::string names;
  for (const int flavor : flavors) {
    if (!names.empty()) names += ", ";
    names += auth_flavor_name(static_cast<uint32_t>(flavor));
  }
  return names;
}

}  // namespace

Result<ConstBytes> MountClient::call(MountProcedure procedure, ConstBytes arguments,
                                     uint32_t reply_max) {
  return caller_.call(kMountProgram, kMountVersion, static_cast<uint32_t>(procedure), arguments,
                      reply_max);
}

Result<ConstBytes> MountClient::call_with_path(MountProcedure procedure, const std::string& path) {
  if (path.size() > kMountPathMax) {
    return fail(ENAMETOOLONG, "MOUNT of " + server_ + ": a path of " + std::to_string(path.size()) +
                                  " bytes; at most " + std::to_string(kMountPathMax) +
                                  " are allowed");
  }
  // libnfs takes a plain char*, and only reads it.
  auto* directory = const_cast<char*>(path.c_str());  // NOLINT
  ZdrArguments arguments;
  return call(procedure, arguments.encode(zdr_dirpath, directory), kMntReplyMax);
}

Result<FileHandle> MountClient::mnt(const std::string& path) {
  const std::string asked = "MOUNT MNT of \"" + path + "\" on " + server_ + ": ";
  auto reply = call_with_path(MountProcedure::kMnt, path);
  if (!reply) return tl::unexpected(reply.error());
  XdrReader reader(*reply);
  const uint32_t status = reader.u32();
  if (!reader.ok()) return fail(EPROTO, asked + "the reply is cut short");
  if (status != 0) return fail(mount3_errno(status), asked + mount3_words(status));
  if (!has_shape(*reply, "4FI")) return fail(EPROTO, asked + "the reply is garbled");
  const ZdrResults<mountres3> results(*reply, zdr_mountres3);
  if (!results.ok()) return fail(EPROTO, asked + "the reply is garbled");
  const mountres3_ok& mounted = results.value().mountres3_u.mountinfo;
  const std::span<const int> flavors(mounted.auth_flavors.auth_flavors_val,
                                     mounted.auth_flavors.auth_flavors_len);
  if (!takes_auth_sys(flavors)) {
    return fail(EPROTONOSUPPORT,
                asked + "the server wants sec=" + names_of(flavors) +
                    " and not AUTH_SYS, which is all that is spoken here: export it with "
                    "sec=sys");
  }
  auto handle = FileHandle::from(
      std::as_bytes(std::span(mounted.fhandle.fhandle3_val, mounted.fhandle.fhandle3_len)));
  if (!handle) return fail(EPROTO, asked + "the file handle is too long");
  return *handle;
}

Result<void> MountClient::umnt(const std::string& path) {
  auto reply = call_with_path(MountProcedure::kUmnt, path);
  if (!reply) return tl::unexpected(reply.error());
  return {};
}

Result<std::vector<Export>> MountClient::exports() {
  auto reply = call(MountProcedure::kExport, {}, kExportReplyMax);
  if (!reply) return tl::unexpected(reply.error());
  const std::string asked = "MOUNT EXPORT of " + server_ + ": ";
  if (!has_shape(*reply, "{s{s}}")) {
    return fail(EPROTO, asked + "the reply is garbled, or lists more than " +
                            std::to_string(kListMax) + " exports and clients");
  }
  const ZdrResults<::exports> results(*reply, zdr_exports);
  if (!results.ok()) return fail(EPROTO, asked + "the reply is garbled");
  std::vector<Export> list;
  for (const exportnode* at = results.value(); at != nullptr;) {
    const exportnode node = zdr_load(at);
    Export& exported = list.emplace_back();
    exported.path = node.ex_dir;
    for (const groupnode* group_at = node.ex_groups; group_at != nullptr;) {
      const groupnode group = zdr_load(group_at);
      exported.groups.emplace_back(group.gr_name);
      group_at = group.gr_next;
    }
    at = node.ex_next;
  }
  return list;
}

}  // namespace nfsrdma
