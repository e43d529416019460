// SPDX-License-Identifier: GPL-2.0-or-later
// The private data that RPC-over-RDMA exchanges while a connection is set up (RFC 8797).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "xdr.h"

namespace nfsrdma {

constexpr uint32_t kCmPrivateBytes = 8;
constexpr uint32_t kCmPrivateMagic = 0xf6ab0e18;

/// Inline sizes in bytes that the 8-bit code of RFC 8797 section 4.1 can say: whole KiB.
constexpr uint32_t kInlineSizeMin = 1024;
constexpr uint32_t kInlineSizeMax = 256 * 1024;
/// Of a peer that says nothing (RFC 8166 section 3.3.2).
constexpr uint32_t kInlineSizeDefault = 1024;

struct CmPrivateData {
  bool remote_invalidation = false;  ///< Send with Invalidate is understood (flag R)
  uint32_t send_size = kInlineSizeDefault;
  uint32_t receive_size = kInlineSizeDefault;
  bool present = false;  ///< decoded: the peer sent it; else all fields are the defaults

  friend bool operator==(const CmPrivateData&, const CmPrivateData&) = default;
};

/// Sizes are rounded down to what the code can say.
std::array<std::byte, kCmPrivateBytes> encode_cm_private_data(const CmPrivateData& data);

/// Defaults when `bytes` holds none: too short, another magic number or another version. Fabrics
/// pad private data, so bytes behind the eighth are ignored.
CmPrivateData decode_cm_private_data(ConstBytes bytes);

}  // namespace nfsrdma
