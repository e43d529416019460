// SPDX-License-Identifier: GPL-2.0-or-later
// What nfsrdma-ping does: mount, connect, time calls, list exports. Prints to a FILE.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "open_transport.h"
#include "result.h"

namespace nfsrdma {

struct PingOptions {
  std::string url;
  RdmaOptions rdma;
  bool exports = false;          ///< list them and stop
  uint32_t count = 1000;         ///< calls of each procedure
  uint32_t interval_us = 0;      ///< between two calls
  uint32_t timeout_ms = 10'000;  ///< of each call and each connect
};

Result<void> run_ping(const PingOptions& options, std::FILE* out);

}  // namespace nfsrdma
