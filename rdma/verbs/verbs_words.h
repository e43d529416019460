// SPDX-License-Identifier: GPL-2.0-or-later
// What librdmacm and libibverbs report, in words that a user can act on.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "result.h"

namespace nfsrdma::verbs {

/// "192.0.2.1:20049", "[2001:db8::1]:20049"; empty for another family.
std::string address_text(const sockaddr* address);

/// The failure that a connection manager event other than success stands for. `status` is the
/// event's: on InfiniBand and RoCE the reason of a rejection, else a negative errno value.
Error cm_error(rdma_cm_event_type event, int status, uint32_t timeout_ms, bool iwarp);

/// The failure that an unsuccessful completion stands for.
Error completion_error(ibv_wc_status status);

/// A refused registration. `wanted` and `registered`: bytes, now and before.
Error registration_error(int code, uint64_t wanted, uint64_t registered, const std::string& device);

}  // namespace nfsrdma::verbs
