// SPDX-License-Identifier: GPL-2.0-or-later
// Faults on purpose, for tests of clients: which replies are hit, and what is done to their bytes.
//
// A fault is given as KIND[:N[:PROCS[:TIMES]]]: each Nth reply (default 1: every) to a procedure
// of PROCS ("READ+WRITE"; default: all that the kind applies to), at most TIMES times (default:
// without end).
//
// Threads: add() before the server starts, everything else from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "nfs3_proto.h"
#include "result.h"
#include "xdr.h"

namespace nfsrdma::memd {

enum class Fault : uint32_t {
  // Done by the transport to a finished reply.
  kDrop,         ///< no reply
  kClose,        ///< the connection is closed after half of the reply
  kCloseBefore,  ///< the connection is closed instead of a reply
  kFragment,     ///< the record in many fragments of odd sizes
  kTrickle,      ///< one byte a send call
  kGarbage,      ///< random bytes behind the xid
  kBadXid,       ///< a xid that was not asked
  kDupReply,     ///< the reply twice
  kReorder,      ///< replies of one batch in reverse order
  kLate,         ///< the reply after --late-ms
  kHugeRecord,   ///< a record marker of 2 GiB - 1
  // Done by the RPC-over-RDMA transport alone (RFC 8166).
  kGrantZero,    ///< a credit grant of 0
  kGrantHuge,    ///< a grant far above what the client asked for
  kShortChunk,   ///< the returned Write chunk says half of what was written
  kUnusedChunk,  ///< the Write chunk is returned unused, the data are inline
  kErrVers,      ///< RDMA_ERROR, ERR_VERS
  kErrChunk,     ///< RDMA_ERROR, ERR_CHUNK
  // Done by the protocol.
  kShortRead,       ///< READ returns half, eof false
  kShortWrite,      ///< WRITE takes half
  kZeroWrite,       ///< WRITE takes nothing, without an error
  kJukebox,         ///< NFS3ERR_JUKEBOX, and the same call again is served
  kLongRead,        ///< READ returns more than asked
  kCommitError,     ///< COMMIT answers NFS3ERR_IO
  kAuthError,       ///< MSG_DENIED, AUTH_ERROR
  kProgMismatch,    ///< NFS is served in version 4 only
  kWrongVerifier,   ///< another verifier in each WRITE's reply
  kDenyUnreserved,  ///< source ports of 1024 and above are refused
  kCount,
};
constexpr uint32_t kFaults = static_cast<uint32_t>(Fault::kCount);
constexpr uint32_t kTransportFaults = static_cast<uint32_t>(Fault::kShortRead);

/// The names of all kinds, for --help.
std::string fault_names();

/// A procedure as counters and faults number it: NFS procedures, then those of MOUNT, then other
/// programs. Returns its name ("READ", "MNT", "OTHER").
constexpr uint32_t kProcIndexMount = kNfsProcs;
constexpr uint32_t kProcIndexOther = kNfsProcs + kMountProcs;
constexpr uint32_t kProcIndices = kProcIndexOther + 1;
std::string_view proc_name(uint32_t proc_index);

class FaultPlan {
 public:
  /// Takes in one --fault; an error's text says what is allowed.
  Result<void> add(std::string_view spec);

  [[nodiscard]] bool any() const { return active_ != 0; }
  [[nodiscard]] bool any_of_transport() const {
    return (active_ & ((1u << kTransportFaults) - 1)) != 0;
  }
  [[nodiscard]] bool has(Fault fault) const {
    return (active_ & (1u << static_cast<uint32_t>(fault))) != 0;
  }

  /// Counts a reply to that procedure; true: this one is hit.
  bool fires(Fault fault, uint32_t proc_index) { return has(fault) && hit(fault, proc_index); }

  /// kJukebox: true if this call is to be refused; the same call again is let through.
  bool jukebox(uint32_t proc_index, uint64_t file, uint64_t offset);

  /// How often each fault struck, as a JSON object.
  [[nodiscard]] std::string strikes_json() const;

 private:
  struct Rule {
    uint64_t every = 1;
    uint64_t times = UINT64_MAX;
    uint32_t procs = 0;  ///< a bit for each proc index
    std::atomic<uint64_t> seen{0};
    std::atomic<uint64_t> strikes{0};
  };

  bool hit(Fault fault, uint32_t proc_index);

  uint32_t active_ = 0;
  std::array<Rule, kFaults> rules_;
  std::mutex jukebox_mutex_;
  std::unordered_set<uint64_t> jukebox_refused_;
};

/// A record of one fragment, or of many at odd sizes (RFC 5531 section 11).
std::vector<std::byte> frame_record(ConstBytes message, bool many_fragments);

/// Random bytes over everything behind the xid.
void fill_with_garbage(Bytes message);

}  // namespace nfsrdma::memd
