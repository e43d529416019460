// SPDX-License-Identifier: GPL-2.0-or-later
#include "portmap.h"

#include <netinet/in.h>
#include <nfsc/libnfs-raw-portmap.h>

#include <cerrno>

#include "zdr_codec.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kGetport = 3;
constexpr uint32_t kReplyMax = 64;

}  // namespace

Error portmap_error(const std::string& host, const Error& error) {
  return {error.code, error.text + "; rpcbind of " + host + " (port " +
                          std::to_string(kPortmapPort) +
                          ") would name the ports: give them in the URL instead, as in "
                          "?nfsport=2049&mountport=20048"};
}

Result<uint16_t> portmap_getport(RpcCaller& caller, const std::string& host, uint32_t program,
                                 uint32_t version) {
  pmap2_mapping mapping{};
  mapping.prog = program;
  mapping.vers = version;
  mapping.prot = IPPROTO_TCP;
  ZdrArguments arguments;
  auto results = caller.call(kPortmapProgram, kPortmapVersion, kGetport,
                             arguments.encode(zdr_pmap2_mapping, mapping), kReplyMax);
  if (!results) return tl::unexpected(portmap_error(host, results.error()));
  XdrReader reader(*results);
  const uint32_t port = reader.u32();
  if (!reader.ok() || port > 65535) {
    return tl::unexpected(
        portmap_error(host, {EPROTO, "portmap GETPORT of " + host + ": the reply names no port"}));
  }
  return static_cast<uint16_t>(port);
}

}  // namespace nfsrdma
