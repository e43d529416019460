// SPDX-License-Identifier: GPL-2.0-or-later
// The userspace iWARP fabric: RDMAP (RFC 5040) over DDP (RFC 5041) over MPA (RFC 5044, set-up of
// RFC 6581) over an ordinary TCP socket. Needs no adapter, no kernel module, no rights; pins no
// memory. Its peers are siw, iWARP adapters and itself.
#pragma once

#include <memory>

#include "fabric.h"

namespace nfsrdma {

struct IwarpOptions {
  bool crc = true;           ///< ask for (client), insist on (server) CRC32c over each FPDU;
                             ///< used when either side asks (RFC 5044 section 7.1.1)
  uint32_t segment_max = 0;  ///< longest FPDU that we send, 128 to 65,532 bytes; 0: from the
                             ///< connection's TCP_MAXSEG. Received FPDUs may have any length
};

/// Never fails; nothing is opened yet. The Fabric follows the rules of fabric.h.
std::unique_ptr<Fabric> make_iwarp_fabric(const IwarpOptions& options);

}  // namespace nfsrdma
