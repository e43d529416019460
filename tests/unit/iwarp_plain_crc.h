// SPDX-License-Identifier: GPL-2.0-or-later
// CRC32c by its definition, bit by bit: neither tables nor lanes.
#pragma once

#include <cstdint>
#include <vector>

namespace nfsrdma::test {

inline uint32_t plain_crc32c(const std::vector<uint8_t>& data) {
  uint32_t crc = ~0u;
  for (uint8_t byte : data) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

}  // namespace nfsrdma::test
