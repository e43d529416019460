// SPDX-License-Identifier: GPL-2.0-or-later
#include "ping_run.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cinttypes>
#include <string_view>

#include "mount_client.h"
#include "mounter.h"
#include "nfs3_control.h"
#include "portmap.h"
#include "statistics.h"
#include "sync_caller.h"
#include "url.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kTenthMs = 100;
constexpr uint32_t kHeadMax = 4096;
constexpr int kBarWidth = 50;

// Round trips of one procedure, with counts per power of two for the picture.
struct RoundTrips {
  Histogram histogram;
  std::array<uint64_t, 64> octaves{};

  void add(uint64_t ns) {
    histogram.add(ns);
    ++octaves[static_cast<size_t>(std::bit_width(ns))];
  }
};

TransportConfig transport_config(const PingOptions& options) {
  TransportConfig config;
  config.slots = 8;
  config.head_max = kHeadMax;
  config.bulk_max = 0;
  config.timeo_ms = std::max(options.timeout_ms, kTenthMs);
  config.retrans = 0;
  config.connect_timeout_ms = options.timeout_ms;

  return config;
}

ConnectTcp tcp_connector(const PingOptions& options) {
  return [config = transport_config(options)](const std::string& host, uint16_t port,
                                              StopFlag) mutable {
    config.host = host;
    config.port = port;
    return open_transport(config, RdmaOptions());
  };
}

Result<void> list_exports(const NfsUrl& url, const PingOptions& options, std::FILE* out) {
  const ConnectTcp connect = tcp_connector(options);
  const std::string& host = url.hosts.front();
  const auto caller_to = [&](uint16_t port) -> Result<std::unique_ptr<SyncCaller>> {
    auto transport = connect(host, port, nullptr);
    if (!transport) return tl::unexpected(transport.error());
    SyncCallerConfig config;
    config.server = host_and_port(host, port);
    config.credential = Credential::of_process();
    config.call_timeout_ms = options.timeout_ms;
    return std::make_unique<SyncCaller>(std::move(*transport), config);
  };
  uint16_t port = url.mount_port;
  if (port == 0) {
    auto portmap = caller_to(kPortmapPort);
    if (!portmap) return tl::unexpected(portmap_error(host, portmap.error()));
    auto found = portmap_getport(**portmap, host, kMountProgram, kMountVersion);
    if (!found) return tl::unexpected(found.error());
    if (*found == 0) return fail(EOPNOTSUPP, host + " has no MOUNT service in version 3");
    port = *found;
  }
  auto caller = caller_to(port);
  if (!caller) return tl::unexpected(caller.error());
  auto exports = MountClient(**caller, host_and_port(host, port)).exports();
  if (!exports) return tl::unexpected(exports.error());
  for (const Export& entry : *exports) {
    std::string groups;
    for (const std::string& group : entry.groups) groups += (groups.empty() ? "" : ",") + group;
    std::fprintf(out, "%-40s %s\n", entry.path.c_str(), groups.empty() ? "*" : groups.c_str());
  }
  return {};
}

template <typename CallOnce>
Result<void> measure(const PingOptions& options, RoundTrips& trips, CallOnce call_once) {
  for (uint32_t i = 0; i < options.count; ++i) {
    const uint64_t start = now_ns();
    auto done = call_once();
    if (!done) return tl::unexpected(done.error());
    trips.add(now_ns() - start);
    if (options.interval_us != 0) usleep(options.interval_us);
  }
  return {};
}

void print_trips(std::FILE* out, const char* name, const RoundTrips& trips) {
  const Histogram& all = trips.histogram;
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) / 1000; };
  std::fprintf(out,
               "%s: %" PRIu64
               " calls, min %.1f, mean %.1f, p50 %.1f, p90 %.1f, p99 %.1f, max "
               "%.1f us\n",
               name, all.count(), us(all.min()), all.mean() / 1000, us(all.percentile(50)),
               us(all.percentile(90)), us(all.percentile(99)), us(all.max()));
  const uint64_t most = *std::max_element(trips.octaves.begin(), trips.octaves.end());
  for (size_t i = 1; i < trips.octaves.size(); ++i) {
    const uint64_t count = trips.octaves[i];
    if (count == 0) continue;
    const auto bar = static_cast<int>(count * kBarWidth / most);
    std::fprintf(out, "  %10.1f to %10.1f us %8" PRIu64 " %s\n", us(uint64_t{1} << (i - 1)),
                 us(uint64_t{1} << i), count, std::string(static_cast<size_t>(bar), '#').c_str());
  }
}

void print_negotiated(std::FILE* out, const Mounted& mounted, const TransportInfo& info) {
  const auto line = [out](const char* name, const std::string& value) {
    std::fprintf(out, "%-20s %s\n", name, value.c_str());
  };
  line("host", mounted.host);
  line("server", info.server);
  line("export", mounted.exported);
  line("transport", info.transport);
  if (!info.fabric.empty()) line("fabric", info.fabric);
  for (const auto& [name, value] : info.negotiated) line(name.c_str(), value);
  line("rtmax", std::to_string(mounted.limits.rtmax));
  line("wtmax", std::to_string(mounted.limits.wtmax));
}

}  // namespace

Result<void> run_ping(const PingOptions& options, std::FILE* out) {
  auto url = parse_nfs_url(options.url);
  if (!url) return tl::unexpected(url.error());
  for (const std::string& warning : url->warnings)
    std::fprintf(stderr, "nfsrdma-ping: %s\n", warning.c_str());
  if (options.exports) return list_exports(*url, options, out);

  NamespaceConfig mounting;
  mounting.call_timeout_ms = options.timeout_ms;
  auto mounted = mount_url(*url, tcp_connector(options), mounting);
  if (!mounted) return tl::unexpected(mounted.error());

  TransportConfig config = transport_config(options);
  config.host = mounted->host;
  config.port = mounted->nfs_port;
  RdmaOptions rdma = options.rdma;
  if (url->rdma_port != 0) rdma.rdma_port = url->rdma_port;
  auto transport = open_transport(config, rdma);
  if (!transport) return tl::unexpected(transport.error());
  SyncCallerConfig calling;
  calling.server = (*transport)->info().server;
  calling.credential = credential_of(*url, mounting.credential);
  calling.call_timeout_ms = options.timeout_ms;
  SyncCaller caller(std::move(*transport), calling);
  Nfs3Control nfs(caller, mounted->control);

  RoundTrips null_trips;
  RoundTrips getattr_trips;
  auto measured = measure(options, null_trips, [&] { return nfs.null(); });
  if (!measured) return measured;
  measured = measure(options, getattr_trips, [&]() -> Result<void> {
    auto attributes = nfs.getattr(mounted->root, mounted->exported);
    if (!attributes) return tl::unexpected(attributes.error());
    return {};
  });
  if (!measured) return measured;
  print_negotiated(out, *mounted, caller.transport().info());
  print_trips(out, "NULL", null_trips);
  print_trips(out, "GETATTR", getattr_trips);
  return {};
}

}  // namespace nfsrdma
