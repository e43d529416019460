// SPDX-License-Identifier: GPL-2.0-or-later
// CRC32c (Castagnoli, reflected polynomial 0x82f63b78) as MPA uses it: RFC 5044 section 4.4, which
// takes it from RFC 3720 appendix B.4.
//
// Any thread. Uses the processor's crc32 instruction where it has one, a table elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nfsrdma::iwarp {

/// The CRC of what came before (0 at the start) and `length` bytes more. On the wire the result is
/// little-endian.
uint32_t crc32c(uint32_t crc, const void* data, size_t length);

/// The two implementations behind it, for tests. The first only where has_crc32_instruction().
bool has_crc32_instruction();
uint32_t crc32c_instruction(uint32_t crc, const void* data, size_t length);
uint32_t crc32c_table(uint32_t crc, const void* data, size_t length);

}  // namespace nfsrdma::iwarp
