// SPDX-License-Identifier: GPL-2.0-or-later
#include "target.h"

#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "interface_address.h"
#include "open_transport.h"
#include "tcp_transport.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kTenthMs = 100;

Result<uint32_t> id_of(const char* option, const char* text) {
  uint32_t id = 0;
  const char* end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, id);
  if (error != std::errc() || at != end)
    return fail(EINVAL, std::string(option) + "=" + text + " is no id: write a number from 0 to " +
                            std::to_string(UINT32_MAX));
  return id;
}

ReservedPort reserved_port(unsigned value) {
  switch (value) {
    case NFSRDMA_PORT_YES:
      return ReservedPort::kYes;
    case NFSRDMA_PORT_NO:
      return ReservedPort::kNo;
    default:
      return ReservedPort::kAuto;
  }
}

FabricKind fabric_kind(unsigned value) {
  switch (value) {
    case NFSRDMA_FABRIC_VERBS:
      return FabricKind::kVerbs;
    case NFSRDMA_FABRIC_IWARP:
      return FabricKind::kIwarp;
    default:
      return FabricKind::kAuto;
  }
}

bool set(const char* text) {
  return text != nullptr && *text != '\0';
}

}  // namespace

std::string Target::path_of(const std::string& name) const {
  return directory.empty() ? name : directory + "/" + name;
}

Result<Target> target_of(const nfsrdma_options& options, StopFlag stop) {
  if (!set(options.nfs_url))
    return fail(EINVAL, "nfs_url= is missing: write nfs_url=nfs://HOST/EXPORT");
  auto url = parse_nfs_url(options.nfs_url);
  if (!url) return tl::unexpected(url.error());

  Target target;
  target.url = std::move(*url);
  if (set(options.nfs_dir)) target.directory = options.nfs_dir;

  Credential credential = credential_of(target.url, Credential::of_process());
  if (set(options.auth_uid)) {
    auto uid = id_of("auth_uid", options.auth_uid);
    if (!uid) return tl::unexpected(uid.error());
    credential.uid = *uid;
    credential.gids.clear();  // those of this process are another user's
  }
  if (set(options.auth_gid)) {
    auto gid = id_of("auth_gid", options.auth_gid);
    if (!gid) return tl::unexpected(gid.error());
    credential.gid = *gid;
  }
  target.mounting.credential = std::move(credential);
  target.mounting.stop = stop;

  TransportConfig& transport = target.transport;
  transport.stop = stop;
  transport.reserved_port = reserved_port(options.reserved_port);
  if (set(options.local_address)) {
    transport.local_address = options.local_address;
  } else if (!target.url.interface.empty()) {
    auto address = interface_address(target.url.interface, AF_UNSPEC);
    if (!address) return tl::unexpected(address.error());
    transport.local_address = *address;
  }
  transport.timeo_ms = target.url.timeo_ms.value_or(options.timeo * kTenthMs);
  transport.retrans = target.url.retrans.value_or(options.retrans);
  transport.soft = options.soft != 0;
  transport.split_marker = options.send_marker == NFSRDMA_MARKER_SPLIT;
  return target;
}

ConnectTcp tcp_connector(const Target& target) {
  TransportConfig config = target.transport;
  config.slots = 1;
  config.head_max = 4096;
  config.bulk_max = 0;
  config.soft = true;
  return [config](const std::string& host, uint16_t port,
                  StopFlag stop) mutable -> Result<std::unique_ptr<Transport>> {
    config.host = host;
    config.port = port;
    config.stop = stop;
    auto transport = TcpTransport::open(config);
    if (!transport) return tl::unexpected(transport.error());
    return std::unique_ptr<Transport>(std::move(*transport));
  };
}

Result<std::unique_ptr<Transport>> connect_data(const nfsrdma_options& options,
                                                const TransportConfig& config, const NfsUrl& url) {
  RdmaOptions rdma;
  rdma.transport = options.transport == NFSRDMA_RDMA ? TransportKind::kRdma : TransportKind::kTcp;
  rdma.fabric = fabric_kind(options.fabric);
  rdma.rdma_port = url.rdma_port != 0 ? url.rdma_port : static_cast<uint16_t>(options.rdma_port);
  rdma.inline_size = options.inline_size;
  rdma.credits = options.credits;
  rdma.iwarp_crc = options.iwarp_crc != 0;
  rdma.key_per_call = options.key_per_call != 0;
  return open_transport(config, rdma);
}

}  // namespace nfsrdma
