// SPDX-License-Identifier: GPL-2.0-or-later
#include "crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace nfsrdma::iwarp {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;

constexpr uint32_t step_bit(uint32_t crc) {
  return (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
}

// kTable[n][b]: byte b followed by n zero bytes; eight of them take eight bytes a step.
using ByteTables = std::array<std::array<uint32_t, 256>, 8>;

constexpr ByteTables make_byte_tables() {
  ByteTables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = step_bit(crc);
    tables[0][byte] = crc;
  }
  for (size_t zeros = 1; zeros < 8; ++zeros) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[zeros - 1][byte];
      tables[zeros][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr ByteTables kTable = make_byte_tables();

uint32_t table_raw(uint32_t crc, const unsigned char* at, size_t length) {
  while (length >= 8) {
    const uint32_t low = crc ^ (uint32_t{at[0]} | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 |
                                uint32_t{at[3]} << 24);
    crc = kTable[7][low & 0xff] ^ kTable[6][(low >> 8) & 0xff] ^ kTable[5][(low >> 16) & 0xff] ^
          kTable[4][low >> 24] ^ kTable[3][at[4]] ^ kTable[2][at[5]] ^ kTable[1][at[6]] ^
          kTable[0][at[7]];
    at += 8;
    length -= 8;
  }
  while (length-- != 0) crc = (crc >> 8) ^ kTable[0][(crc ^ *at++) & 0xff];
  return crc;
}

#if defined(__x86_64__)

// One crc32 instruction has a latency of three cycles and a throughput of one: three lanes side by
// side run at full rate. The lanes are joined by moving a CRC over the bytes of the lane behind it,
// which is a linear function of its 32 bits: four look-ups.
constexpr size_t kLongLane = 1344;
constexpr size_t kShortLane = 168;

using ShiftTables = std::array<std::array<uint32_t, 256>, 4>;

// The CRC register is a polynomial, its least significant bit the highest power.
constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int bit = 0; bit < 32; ++bit) {
    if ((b & 0x80000000u) != 0) product ^= a;
    a = step_bit(a);
    b <<= 1;
  }
  return product;
}

constexpr ShiftTables make_shift_tables(size_t bytes) {
  uint32_t power = 0x80000000u;   // 1
  uint32_t square = 0x00800000u;  // x^8: one byte
  for (size_t left = bytes; left != 0; left >>= 1) {
    if ((left & 1) != 0) power = multiply(power, square);
    square = multiply(square, square);
  }
  ShiftTables tables{};
  for (size_t lane = 0; lane < 4; ++lane) {
    for (uint32_t bit = 0; bit < 8; ++bit) {
      tables[lane][size_t{1} << bit] = multiply(1u << (8 * lane + bit), power);
    }
    for (uint32_t byte = 1; byte < 256; ++byte) {
      const uint32_t low = byte & (~byte + 1);
      tables[lane][byte] = tables[lane][byte ^ low] ^ tables[lane][low];
    }
  }
  return tables;
}
constexpr ShiftTables kShiftLong = make_shift_tables(kLongLane);
constexpr ShiftTables kShiftShort = make_shift_tables(kShortLane);

inline uint32_t shift(const ShiftTables& tables, uint32_t crc) {
  return tables[0][crc & 0xff] ^ tables[1][(crc >> 8) & 0xff] ^ tables[2][(crc >> 16) & 0xff] ^
         tables[3][crc >> 24];
}

inline uint64_t load64(const unsigned char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

template <size_t kLane>
__attribute__((target("sse4.2"))) inline uint32_t three_lanes(uint32_t crc, const unsigned char* at,
                                                              const ShiftTables& tables) {
  static_assert(kLane % 8 == 0);
  uint64_t first = crc, second = 0, third = 0;
  for (size_t offset = 0; offset < kLane; offset += 8) {
    first = __builtin_ia32_crc32di(first, load64(at + offset));
    second = __builtin_ia32_crc32di(second, load64(at + kLane + offset));
    third = __builtin_ia32_crc32di(third, load64(at + 2 * kLane + offset));
  }
  crc = shift(tables, static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
  return shift(tables, crc) ^ static_cast<uint32_t>(third);
}

__attribute__((target("sse4.2"))) uint32_t instruction_raw(uint32_t crc, const unsigned char* at,
                                                           size_t length) {
  while (length >= 3 * kLongLane) {
    crc = three_lanes<kLongLane>(crc, at, kShiftLong);
    at += 3 * kLongLane;
    length -= 3 * kLongLane;
  }
  while (length >= 3 * kShortLane) {
    crc = three_lanes<kShortLane>(crc, at, kShiftShort);
    at += 3 * kShortLane;
    length -= 3 * kShortLane;
  }
  uint64_t wide = crc;
  while (length >= 8) {
    wide = __builtin_ia32_crc32di(wide, load64(at));
    at += 8;
    length -= 8;
  }
  crc = static_cast<uint32_t>(wide);
  while (length-- != 0) crc = __builtin_ia32_crc32qi(crc, *at++);
  return crc;
}

const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;

#endif

}  // namespace

uint32_t crc32c_table(uint32_t crc, const void* data, size_t length) {
  return ~table_raw(~crc, static_cast<const unsigned char*>(data), length);
}

#if defined(__x86_64__)
bool has_crc32_instruction() {
  return kHasInstruction;
}

uint32_t crc32c_instruction(uint32_t crc, const void* data, size_t length) {
  return ~instruction_raw(~crc, static_cast<const unsigned char*>(data), length);
}

uint32_t crc32c(uint32_t crc, const void* data, size_t length) {
  return kHasInstruction ? crc32c_instruction(crc, data, length) : crc32c_table(crc, data, length);
}
#else
bool has_crc32_instruction() {
  return false;
}

uint32_t crc32c_instruction(uint32_t crc, const void* data, size_t length) {
  return crc32c_table(crc, data, length);
}

uint32_t crc32c(uint32_t crc, const void* data, size_t length) {
  return crc32c_table(crc, data, length);
}
#endif

}  // namespace nfsrdma::iwarp
