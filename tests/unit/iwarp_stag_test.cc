// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "stag_table.h"

using namespace nfsrdma;
using namespace nfsrdma::iwarp;

namespace {

struct Fixture {
  std::vector<std::byte> memory = std::vector<std::byte>(100);
  StagTable table{StagClass::kBound, 4};
  std::byte* at = nullptr;
};

TEST(Stag, ResolvesWithinItsMemory) {
  Fixture f;
  const uint32_t stag = f.table.insert(f.memory, Access::kRemoteWrite);
  ASSERT_NE(stag, 0u);
  EXPECT_EQ(stag_class(stag), StagClass::kBound);
  EXPECT_EQ(f.table.resolve(stag, 0, 100, Access::kRemoteWrite, f.at), StagFault::kNone);
  EXPECT_EQ(f.at, f.memory.data());
  EXPECT_EQ(f.table.resolve(stag, 99, 1, Access::kRemoteWrite, f.at), StagFault::kNone);
  EXPECT_EQ(f.at, f.memory.data() + 99);
  EXPECT_EQ(f.table.resolve(stag, 100, 0, Access::kRemoteWrite, f.at), StagFault::kNone);
}

TEST(Stag, BoundsToTheByte) {
  Fixture f;
  const uint32_t stag = f.table.insert(f.memory, Access::kRemoteWrite);
  EXPECT_EQ(f.table.resolve(stag, 0, 101, Access::kRemoteWrite, f.at), StagFault::kBounds);
  EXPECT_EQ(f.table.resolve(stag, 100, 1, Access::kRemoteWrite, f.at), StagFault::kBounds);
  EXPECT_EQ(f.table.resolve(stag, UINT64_MAX - 3, 3, Access::kRemoteWrite, f.at),
            StagFault::kBounds);
  EXPECT_EQ(f.table.resolve(stag, UINT64_MAX - 3, 4, Access::kRemoteWrite, f.at), StagFault::kWrap);
  EXPECT_EQ(f.at, nullptr);
}

TEST(Stag, RightsAreAskedForOneByOne) {
  Fixture f;
  const uint32_t read = f.table.insert(f.memory, Access::kRemoteRead);
  const uint32_t write = f.table.insert(f.memory, Access::kRemoteWrite);
  const uint32_t local = f.table.insert(f.memory, Access::kLocalWrite);
  EXPECT_EQ(f.table.resolve(read, 0, 1, Access::kRemoteRead, f.at), StagFault::kNone);
  EXPECT_EQ(f.table.resolve(read, 0, 1, Access::kRemoteWrite, f.at), StagFault::kAccess);
  EXPECT_EQ(f.table.resolve(write, 0, 1, Access::kRemoteRead, f.at), StagFault::kAccess);
  EXPECT_EQ(f.table.resolve(local, 0, 1, Access::kRemoteWrite, f.at), StagFault::kAccess);
  EXPECT_EQ(f.table.resolve(local, 0, 1, Access::kRemoteRead, f.at), StagFault::kAccess);
}

TEST(Stag, ZeroAndStrangersAreInvalid) {
  Fixture f;
  const uint32_t stag = f.table.insert(f.memory, Access::kRemoteWrite);
  for (uint32_t other : {0u, stag ^ 1u, stag ^ 0x10000u, stag ^ 0x40000000u, stag ^ 0x80000000u,
                         stag | 0xffffu, 0xffffffffu}) {
    EXPECT_EQ(f.table.resolve(other, 0, 1, Access::kRemoteWrite, f.at), StagFault::kInvalid);
    EXPECT_FALSE(f.table.erase(other));
  }
}

TEST(Stag, AnErasedOneStaysInvalidWhenItsSlotIsUsedAgain) {
  Fixture f;
  std::set<uint32_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint32_t stag = f.table.insert(f.memory, Access::kRemoteWrite);
    ASSERT_TRUE(seen.insert(stag).second);
    ASSERT_TRUE(f.table.erase(stag));
    EXPECT_FALSE(f.table.erase(stag));
    EXPECT_EQ(f.table.resolve(stag, 0, 1, Access::kRemoteWrite, f.at), StagFault::kInvalid);
  }
}

TEST(Stag, FullTableGivesNone) {
  Fixture f;
  std::vector<uint32_t> all;
  for (int i = 0; i < 4; ++i) all.push_back(f.table.insert(f.memory, Access::kNone));
  EXPECT_EQ(f.table.insert(f.memory, Access::kNone), 0u);
  EXPECT_TRUE(f.table.erase(all[2]));
  EXPECT_NE(f.table.insert(f.memory, Access::kNone), 0u);
  EXPECT_EQ(f.table.insert(f.memory, Access::kNone), 0u);
  f.table.erase_all();
  for (uint32_t stag : all) EXPECT_FALSE(f.table.valid(stag));
  for (int i = 0; i < 4; ++i) EXPECT_NE(f.table.insert(f.memory, Access::kNone), 0u);
}

TEST(Stag, EmptyTable) {
  StagTable none(StagClass::kBound, 0);
  std::byte* at = nullptr;
  EXPECT_EQ(none.insert({}, Access::kNone), 0u);
  EXPECT_EQ(none.resolve(make_stag(StagClass::kBound, 0, 0), 0, 0, Access::kNone, at),
            StagFault::kInvalid);
}

}  // namespace
