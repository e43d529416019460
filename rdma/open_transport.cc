// SPDX-License-Identifier: GPL-2.0-or-later
#include "open_transport.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "iwarp_fabric.h"
#include "rpcrdma_transport.h"
#include "tcp_socket.h"
#include "tcp_transport.h"
#include "verbs_fabric.h"

namespace nfsrdma {
namespace {

// How long fabric=auto waits for verbs before it takes iwarp.
constexpr uint32_t kVerbsTryMs = 2'000;
constexpr uint64_t kNsPerMs = 1'000'000;

Result<std::unique_ptr<Transport>> over(std::unique_ptr<Fabric> fabric,
                                        const TransportConfig& config, const RdmaOptions& options) {
  const RpcRdmaOptions rpc{.inline_size = options.inline_size,
                           .credits = options.credits,
                           .key_per_call = options.key_per_call};
  auto opened = RpcRdmaTransport::open(config, rpc, std::move(fabric));
  if (!opened) return tl::unexpected(opened.error());
  return std::unique_ptr<Transport>(std::move(*opened));
}

// The first address of the server whose route has an RDMA device.
Result<std::unique_ptr<Fabric>> verbs_fabric(const TransportConfig& config, bool key_per_call,
                                             uint64_t deadline_ns) {
  if (!verbs_device_present()) return fail(ENODEV, "this machine has no RDMA device");
  VerbsOptions verbs;
  verbs.key_per_call = key_per_call;
  if (!config.local_address.empty()) {
    auto local = resolve(config.local_address, 0);
    if (!local) return tl::unexpected(local.error());
    verbs.local = local->front().storage;
  }
  auto addresses = resolve(config.host, config.port);
  if (!addresses) return tl::unexpected(addresses.error());
  Error error{EADDRNOTAVAIL, "no address of " + config.host};
  for (const SocketAddress& address : *addresses) {
    const uint64_t now = now_ns();
    if (now >= deadline_ns) break;
    verbs.peer = address.storage;
    verbs.timeout_ms = static_cast<uint32_t>((deadline_ns - now) / kNsPerMs) + 1;
    auto made = make_verbs_fabric(verbs);
    if (made) return made;
    error = made.error();
  }
  return tl::unexpected(error);
}

Result<std::unique_ptr<Transport>> over_verbs(const TransportConfig& config,
                                              const RdmaOptions& options) {
  const uint64_t deadline_ns = now_ns() + config.connect_timeout_ms * kNsPerMs;
  auto fabric = verbs_fabric(config, options.key_per_call, deadline_ns);
  if (!fabric) return tl::unexpected(fabric.error());
  TransportConfig rest = config;
  const uint64_t now = now_ns();
  rest.connect_timeout_ms =
      now < deadline_ns ? static_cast<uint32_t>((deadline_ns - now) / kNsPerMs) + 1 : 1;
  return over(std::move(*fabric), rest, options);
}

Result<std::unique_ptr<Transport>> over_iwarp(const TransportConfig& config,
                                              const RdmaOptions& options) {
  return over(make_iwarp_fabric({.crc = options.iwarp_crc, .segment_max = 0}), config, options);
}

// What a failed iwarp connect tells about the server: iWARP servers listen on TCP.
std::string seems_to_be(const Error& iwarp, const TransportConfig& config) {
  const std::string port = "TCP port " + std::to_string(config.port) + " of " + config.host;
  if (iwarp.code == ECONNREFUSED)
    return "nothing listens on " + port +
           ", so the server seems to be no iWARP server: InfiniBand and RoCE servers need "
           "fabric=verbs and an RDMA device in this machine";
  if (iwarp.code == ETIMEDOUT || iwarp.code == EHOSTUNREACH || iwarp.code == ENETUNREACH)
    return port + " did not answer, so nothing can be told of the server";
  return port + " took the connection, so the server seems to be an iWARP server";
}

bool is_usage(const Error& error) {
  return error.code == EINVAL;
}

}  // namespace

Result<TransportKind> parse_transport(std::string_view text) {
  if (text == "tcp") return TransportKind::kTcp;
  if (text == "rdma") return TransportKind::kRdma;
  return fail(EINVAL, "transport is tcp or rdma, not '" + std::string(text) + "'");
}

Result<FabricKind> parse_fabric(std::string_view text) {
  if (text == "auto") return FabricKind::kAuto;
  if (text == "verbs") return FabricKind::kVerbs;
  if (text == "iwarp") return FabricKind::kIwarp;
  return fail(EINVAL, "fabric is auto, verbs or iwarp, not '" + std::string(text) + "'");
}

Result<std::unique_ptr<Transport>> open_transport(const TransportConfig& config,
                                                  const RdmaOptions& options) {
  if (options.transport == TransportKind::kTcp) {
    auto opened = TcpTransport::open(config);
    if (!opened) return tl::unexpected(opened.error());
    return std::unique_ptr<Transport>(std::move(*opened));
  }
  TransportConfig there = config;
  there.port = options.rdma_port;
  std::string verbs_text;
  if (options.fabric != FabricKind::kIwarp) {
    TransportConfig first = there;
    if (options.fabric == FabricKind::kAuto)
      first.connect_timeout_ms = std::min(config.connect_timeout_ms, kVerbsTryMs);
    auto opened = over_verbs(first, options);
    if (opened || options.fabric == FabricKind::kVerbs || is_usage(opened.error())) return opened;
    verbs_text = "; verbs: " + opened.error().text;
  }
  auto opened = over_iwarp(there, options);
  if (opened || is_usage(opened.error())) return opened;
  const Error& error = opened.error();
  return fail(error.code, "no RDMA connection to " + config.host + ": " +
                              seems_to_be(error, there) + " (iwarp: " + error.text + verbs_text +
                              ")");
}

}  // namespace nfsrdma
