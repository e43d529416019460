// SPDX-License-Identifier: GPL-2.0-or-later
// Waiting for I/O when the user may have had enough.
#pragma once

#include <algorithm>
#include <cerrno>

#include "session.h"

namespace nfsrdma {

/// As Session::wait(), with something outstanding. Once `stop` says so, what the server does not
/// answer any more holds nobody for ever: after 5 s without a completion everything outstanding
/// ends with EINTR.
inline uint32_t wait_or_abandon(Session& session, uint32_t min, uint64_t deadline_ns,
                                StopFlag stop) {
  constexpr uint64_t kLookNs = 1'000'000'000;
  constexpr uint64_t kPatienceNs = 5 * kLookNs;
  uint64_t stopped_ns = 0;
  for (;;) {
    const uint64_t slice = std::min(deadline_ns, now_ns() + kLookNs);
    const uint32_t ready = session.wait(min, slice);
    if (ready >= min || slice == deadline_ns) return ready;
    if (!stopped(stop)) continue;
    const uint64_t now = now_ns();
    if (stopped_ns == 0) stopped_ns = now;
    if (ready != 0) return ready;
    if (now - stopped_ns >= kPatienceNs)
      session.abandon(Error{EINTR, "the job was told to end while the server did not answer"});
  }
}

}  // namespace nfsrdma
