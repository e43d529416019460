// SPDX-License-Identifier: GPL-2.0-or-later
#include "recovery.h"

#include <algorithm>
#include <cerrno>

namespace nfsrdma {
namespace {

// A connection may have come up, or a byte arrived, after the caller read its clock.
uint64_t since(uint64_t then, uint64_t now) {
  return now > then ? now - then : 0;
}

}  // namespace

uint64_t timer_scan_interval_ns(uint32_t timeo_ms) {
  return std::clamp<uint64_t>(timeo_ms / 8, 5, 1000) * kNsPerMs;
}

uint64_t reconnect_backoff_ns(uint32_t failures, uint64_t noise) {
  if (failures == 0) return 0;
  const uint64_t base = std::min<uint64_t>(uint64_t{50} << std::min(failures, 6u), 3000) * kNsPerMs;
  return base + noise % (base / 4);
}

Overdue overdue(CallSlot& entry, const TransportConfig& config, uint64_t now,
                uint64_t last_received_ns) {
  const uint64_t timeo_ns = config.timeo_ms * kNsPerMs;
  if (entry.queued_ns == 0) entry.queued_ns = now;
  if (config.soft && since(entry.queued_ns, now) >= timeo_ns * (config.retrans + 1))
    return Overdue::kMajor;
  if (entry.state == CallState::kSent)
    return since(entry.wait_start_ns, now) >= timeo_ns ? Overdue::kSilent : Overdue::kNo;
  const bool stuck =
      since(last_received_ns, now) >= timeo_ns && since(entry.queued_ns, now) >= timeo_ns;
  return stuck ? Overdue::kStuck : Overdue::kNo;
}

void requeue_all(CallTable& calls, SlotQueue& queue, std::vector<uint32_t>& scratch) {
  scratch.clear();
  for (uint32_t slot = 0; slot < calls.size(); ++slot) {
    CallSlot& entry = calls[slot];
    if (entry.state == CallState::kSent) {
      entry.state = CallState::kQueued;
      ++entry.retransmissions;
    } else if (entry.state != CallState::kQueued) {
      continue;
    }
    scratch.push_back(slot);
  }
  std::sort(scratch.begin(), scratch.end(),
            [&calls](uint32_t a, uint32_t b) { return calls[a].order < calls[b].order; });
  queue.clear();
  for (const uint32_t slot : scratch) queue.push(slot);
}

std::string describe_wait(uint64_t waited_ns) {
  const uint64_t tenths = waited_ns / (100 * kNsPerMs);
  return " within " + std::to_string(tenths / 10) +
         (tenths < 100 ? "." + std::to_string(tenths % 10) : std::string()) + " s";
}

Error major_timeout_error(const std::string& server, const CallSlot& entry,
                          const TransportConfig& config, uint64_t now, const std::string* lost) {
  Error error{ETIMEDOUT, "no reply from " + server + describe_wait(now - entry.queued_ns) +
                             " (timeo=" + std::to_string(config.timeo_ms / 100) +
                             ", retrans=" + std::to_string(config.retrans) + ")"};
  if (lost != nullptr) error.text += "; not connected: " + *lost;
  return error;
}

}  // namespace nfsrdma
