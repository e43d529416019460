// SPDX-License-Identifier: GPL-2.0-or-later
// The one place that chooses between the transports and between the RDMA fabrics. Above it nothing
// asks which one it has.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "result.h"
#include "transport.h"

namespace nfsrdma {

enum class TransportKind : uint8_t { kTcp, kRdma };

/// kAuto: verbs where the route to the server has an RDMA device; where it has none, when the
/// server refuses, or after two seconds, iwarp.
enum class FabricKind : uint8_t { kAuto, kVerbs, kIwarp };

constexpr uint16_t kRdmaPort = 20049;  ///< RFC 8267 section 6.2

struct RdmaOptions {
  TransportKind transport = TransportKind::kTcp;
  FabricKind fabric = FabricKind::kAuto;
  uint16_t rdma_port = kRdmaPort;
  uint32_t inline_size = 4096;  ///< offered, in bytes: 1024 to 65536
  uint32_t credits = 0;         ///< asked for; 0: as many as the transport has slots, 1024 at most
  bool iwarp_crc = true;
  bool key_per_call = false;
};

/// "tcp" or "rdma"; "auto", "verbs" or "iwarp": EINVAL for anything else.
Result<TransportKind> parse_transport(std::string_view text);
Result<FabricKind> parse_fabric(std::string_view text);

/// A connected transport. Waits at most config.connect_timeout_ms, for each fabric. With kRdma the
/// server's port is options.rdma_port, not config.port. To be called in the process and thread that
/// will use it: RDMA does not survive fork(). An error names each fabric that was tried, and which
/// of the two the server seems to have.
Result<std::unique_ptr<Transport>> open_transport(const TransportConfig& config,
                                                  const RdmaOptions& options);

}  // namespace nfsrdma
