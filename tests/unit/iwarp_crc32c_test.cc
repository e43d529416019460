// SPDX-License-Identifier: GPL-2.0-or-later
#include "crc32c.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "iwarp_plain_crc.h"

using namespace nfsrdma::iwarp;
using nfsrdma::test::plain_crc32c;

namespace {

struct Vector {
  std::vector<uint8_t> data;
  uint32_t crc;
};

// RFC 3720 appendix B.4; the digests there are in the order of the wire, least byte first.
std::vector<Vector> rfc3720() {
  std::vector<Vector> all;
  all.push_back({std::vector<uint8_t>(32, 0x00), 0x8a9136aa});
  all.push_back({std::vector<uint8_t>(32, 0xff), 0x62a8ab43});
  Vector up{std::vector<uint8_t>(32), 0x46dd794e}, down{std::vector<uint8_t>(32), 0x113fdb5c};
  for (uint8_t i = 0; i < 32; ++i) {
    up.data[i] = i;
    down.data[i] = static_cast<uint8_t>(31 - i);
  }
  all.push_back(up);
  all.push_back(down);
  Vector iscsi{std::vector<uint8_t>(48), 0xd9963a56};
  iscsi.data[0] = 0x01;
  iscsi.data[1] = 0xc0;
  iscsi.data[16] = 0x14;
  iscsi.data[22] = 0x04;
  iscsi.data[27] = 0x14;
  iscsi.data[31] = 0x18;
  iscsi.data[32] = 0x28;
  iscsi.data[40] = 0x02;
  all.push_back(iscsi);
  return all;
}

TEST(Crc32c, VectorsOfRfc3720) {
  for (const Vector& v : rfc3720()) {
    EXPECT_EQ(plain_crc32c(v.data), v.crc);
    EXPECT_EQ(crc32c(0, v.data.data(), v.data.size()), v.crc);
    EXPECT_EQ(crc32c_table(0, v.data.data(), v.data.size()), v.crc);
  }
}

TEST(Crc32c, CheckValue) {
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c(0, nullptr, 0), 0u);
}

TEST(Crc32c, EveryLengthAroundTheLanes) {
  std::mt19937 random(7);
  std::vector<uint8_t> data(9000);
  for (auto& byte : data) byte = static_cast<uint8_t>(random());
  std::vector<size_t> lengths;
  for (size_t length = 0; length < 1100; ++length) lengths.push_back(length);
  for (size_t near : {3u * 168, 6u * 168, 3u * 1344, 3u * 1344 + 3u * 168, 6u * 1344, 4096u}) {
    for (size_t length = near - 9; length <= near + 9; ++length) lengths.push_back(length);
  }
  for (size_t length : lengths) {
    for (size_t shift : {0u, 1u, 3u}) {
      const std::vector<uint8_t> part(data.begin() + static_cast<long>(shift),
                                      data.begin() + static_cast<long>(shift + length));
      const uint32_t expected = plain_crc32c(part);
      ASSERT_EQ(crc32c_table(0, data.data() + shift, length), expected) << length;
      if (has_crc32_instruction()) {
        ASSERT_EQ(crc32c_instruction(0, data.data() + shift, length), expected) << length;
      }
    }
  }
}

TEST(Crc32c, PartsMakeTheWhole) {
  std::vector<uint8_t> data(5000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 31 + 5);
  const uint32_t whole = plain_crc32c(data);
  for (size_t cut : {0u, 1u, 7u, 8u, 503u, 4032u, 4999u, 5000u}) {
    const uint32_t first = crc32c(0, data.data(), cut);
    EXPECT_EQ(crc32c(first, data.data() + cut, data.size() - cut), whole) << cut;
    const uint32_t first_table = crc32c_table(0, data.data(), cut);
    EXPECT_EQ(crc32c_table(first_table, data.data() + cut, data.size() - cut), whole) << cut;
  }
}

}  // namespace
