// SPDX-License-Identifier: GPL-2.0-or-later
// The verbs fabric: a reliable connection of an RDMA device (InfiniBand, RoCE, iWARP, rxe, siw)
// through librdmacm and libibverbs. Registered memory is pinned, so it counts against the limit of
// locked memory. To be made in the process that uses it: neither survives fork().
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>

#include "fabric.h"
#include "result.h"

namespace nfsrdma {

struct VerbsOptions {
  /// Client: a server's numeric address and port; the device is the one that the route to it has.
  /// Server: ss_family AF_UNSPEC; the device is the one that has the address `local`, or the only
  /// one when that is the wildcard.
  sockaddr_storage peer = {};
  sockaddr_storage local = {};  ///< source address; ss_family AF_UNSPEC: the route's choice
  uint32_t timeout_ms = 2'000;  ///< for finding route and device
  /// Chunks are named by bind_key() alone: regions then grant the peer nothing by themselves, and
  /// what remote_memory() names is refused by the device.
  bool key_per_call = false;
  /// Connections will post Reads. On iWARP devices the sink of a Read must be writable by the peer
  /// (RFC 5040 section 5.2.1), so there kLocalWrite then brings that right; without it no region
  /// has a right that was not asked for.
  bool reads = false;
};

/// Whether this machine has an RDMA device at all. Cheap when it has none.
bool verbs_device_present();

/// Waits, at most options.timeout_ms, for the route. ENODEV: the route has no RDMA device. The
/// Fabric follows the rules of fabric.h; close() waits for the device to drain, half a second at
/// most, before it destroys the queue pair.
Result<std::unique_ptr<Fabric>> make_verbs_fabric(const VerbsOptions& options);

}  // namespace nfsrdma
