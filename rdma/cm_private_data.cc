// SPDX-License-Identifier: GPL-2.0-or-later
#include "cm_private_data.h"

#include <algorithm>

namespace nfsrdma {
namespace {

constexpr uint32_t kCmPrivateVersion = 1;
constexpr uint32_t kFlagRemoteInvalidation = 1;
constexpr uint32_t kSizeUnit = 1024;

std::byte size_code(uint32_t bytes) {
  const uint32_t held = std::clamp(bytes, kInlineSizeMin, kInlineSizeMax);
  return static_cast<std::byte>(held / kSizeUnit - 1);
}

uint32_t size_of_code(std::byte code) {
  return (std::to_integer<uint32_t>(code) + 1) * kSizeUnit;
}

}  // namespace

std::array<std::byte, kCmPrivateBytes> encode_cm_private_data(const CmPrivateData& data) {
  std::array<std::byte, kCmPrivateBytes> bytes;
  store_be32(bytes.data(), kCmPrivateMagic);
  bytes[4] = std::byte{kCmPrivateVersion};
  bytes[5] = static_cast<std::byte>(data.remote_invalidation ? kFlagRemoteInvalidation : 0);
  bytes[6] = size_code(data.send_size);
  bytes[7] = size_code(data.receive_size);
  return bytes;
}

CmPrivateData decode_cm_private_data(ConstBytes bytes) {
  if (bytes.size() < kCmPrivateBytes || load_be32(bytes.data()) != kCmPrivateMagic ||
      std::to_integer<uint32_t>(bytes[4]) != kCmPrivateVersion)
    return {};
  CmPrivateData data;
  data.present = true;
  data.remote_invalidation = (std::to_integer<uint32_t>(bytes[5]) & kFlagRemoteInvalidation) != 0;
  data.send_size = size_of_code(bytes[6]);
  data.receive_size = size_of_code(bytes[7]);
  return data;
}

}  // namespace nfsrdma
