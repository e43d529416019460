// SPDX-License-Identifier: GPL-2.0-or-later
// All STags that one connection honours: regions of its Fabric, and keys bound on the connection.
#pragma once

#include "stag_table.h"

namespace nfsrdma::iwarp {

struct KeySpace {
  StagTable* regions = nullptr;  ///< the Fabric's
  StagTable bound{StagClass::kBound, 0};

  StagFault resolve(uint32_t stag, uint64_t offset, uint64_t length, Access wanted,
                    std::byte*& at) const {
    switch (stag_class(stag)) {
      case StagClass::kRegion:
        return regions->resolve(stag, offset, length, wanted, at);
      case StagClass::kBound:
        return bound.resolve(stag, offset, length, wanted, at);
      case StagClass::kReadSink:
        break;  // only a Read Response may name it
    }
    return StagFault::kInvalid;
  }

  /// Whether a span of ours lies in its region. Verbs would refuse it, so this fabric does too.
  bool holds(const LocalSpan& span, Access wanted) const {
    const Bytes memory = regions->memory(span.region);
    const auto offset = static_cast<size_t>(span.address - memory.data());
    return span.address >= memory.data() && offset <= memory.size() &&
           span.length <= memory.size() - offset && !memory.empty() &&
           has(regions->access(span.region), wanted);
  }
};

}  // namespace nfsrdma::iwarp
