// SPDX-License-Identifier: GPL-2.0-or-later
// One RPC call at a time, waited for: what the control plane (MOUNT, portmap, LOOKUP, CREATE,
// GETATTR, ...) is written against. The data path does not pass here.
#pragma once

#include <cstdint>

#include "result.h"
#include "xdr.h"

namespace nfsrdma {

class RpcCaller {
 public:
  virtual ~RpcCaller() = default;

  /// Sends one call (RFC 5531) with `arguments`, XDR of the procedure's arguments, and waits for
  /// its reply. Returns the XDR of the results, valid until the next call. `reply_max` bounds
  /// their length. Errors: ETIMEDOUT, ECONNREFUSED and the like from the network; EPROTO for a
  /// reply that is no RPC reply; EOPNOTSUPP for PROG_UNAVAIL, PROG_MISMATCH and PROC_UNAVAIL;
  /// EACCES for an authentication error; each says host, port, program and procedure.
  virtual Result<ConstBytes> call(uint32_t program, uint32_t version, uint32_t procedure,
                                  ConstBytes arguments, uint32_t reply_max) = 0;

  /// How often the last call was sent again. A call that is not idempotent may then report EXIST
  /// or NOENT though it took effect.
  [[nodiscard]] virtual uint32_t retransmissions() const { return 0; }
};

}  // namespace nfsrdma
