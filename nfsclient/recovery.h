// SPDX-License-Identifier: GPL-2.0-or-later
// What the transports have in common when a server is slow or gone: nfs(5)'s timeo and retrans,
// when a connection is tried again, and the order in which calls are sent again.
//
// No state of its own; one thread, like the transports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "call_table.h"
#include "transport.h"

namespace nfsrdma {

constexpr uint64_t kNsPerMs = 1'000'000;

/// How often a transport looks at its calls' clocks.
uint64_t timer_scan_interval_ns(uint32_t timeo_ms);

/// How long to wait before the next try to connect, after `failures` in a row: the first try comes
/// at once, a server that keeps refusing is asked ever less often. `noise`: any changing number.
uint64_t reconnect_backoff_ns(uint32_t failures, uint64_t noise);

enum class Overdue : uint8_t {
  kNo,
  kStuck,   ///< could not be sent for timeo, and nothing arrives: the peer no longer reads
  kSilent,  ///< sent, and timeo went by without a reply
  kMajor,   ///< soft: timeo and all of retrans went by
};

/// How a call stands at `now`. Notes in the entry when it was seen first (from there the major
/// timeout counts: no clock is read per call in submit()).
Overdue overdue(CallSlot& entry, const TransportConfig& config, uint64_t now,
                uint64_t last_received_ns);

/// Queues everything that was on the wire, and what waited before, in the order of submission, to
/// be sent whole with the same xids. `scratch` has room for all slots, and holds them afterwards.
void requeue_all(CallTable& calls, SlotQueue& queue, std::vector<uint32_t>& scratch);

/// " within 1.5 s".
std::string describe_wait(uint64_t waited_ns);

/// ETIMEDOUT: the error of a call that soft gave up. `lost`: why there is no connection, or null.
Error major_timeout_error(const std::string& server, const CallSlot& entry,
                          const TransportConfig& config, uint64_t now, const std::string* lost);

}  // namespace nfsrdma
