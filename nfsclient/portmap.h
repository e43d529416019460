// SPDX-License-Identifier: GPL-2.0-or-later
// The port mapper, version 2 (RFC 1833 section 3), asked over TCP.
#pragma once

#include <cstdint>
#include <string>

#include "result.h"
#include "rpc_caller.h"

namespace nfsrdma {

constexpr uint32_t kPortmapProgram = 100000;
constexpr uint32_t kPortmapVersion = 2;
constexpr uint16_t kPortmapPort = 111;

/// GETPORT: the TCP port of a program, or 0 when it is not registered. `host` is for messages,
/// which name the URL's nfsport= and mountport= as the way round.
Result<uint16_t> portmap_getport(RpcCaller& caller, const std::string& host, uint32_t program,
                                 uint32_t version);

/// Adds the way round the port mapper to an error met on the way to it.
Error portmap_error(const std::string& host, const Error& error);

}  // namespace nfsrdma
