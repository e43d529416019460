// SPDX-License-Identifier: GPL-2.0-or-later
#include "node_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace nfsrdma {
namespace {

TEST(NodePool, GivesEachNodeOnceThenRefuses) {
  NodePool pool(3);
  std::set<void*> nodes;
  for (uint32_t left = 3; left != 0; --left) {
    EXPECT_EQ(pool.available(), left);
    void* node = pool.take();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(node) % alignof(std::max_align_t), 0u);
    std::memset(node, 0xa5, NodePool::kNodeBytes);
    nodes.insert(node);
  }
  EXPECT_EQ(nodes.size(), 3u);
  EXPECT_EQ(pool.available(), 0u);
  EXPECT_THROW(pool.take(), std::bad_alloc);
  for (void* node : nodes) pool.give(node);
  EXPECT_EQ(pool.available(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(nodes.count(pool.take()), 1u);
}

TEST(NodePool, WithoutNodesHasNothingToGive) {
  NodePool pool(0);
  EXPECT_EQ(pool.available(), 0u);
  EXPECT_THROW(pool.take(), std::bad_alloc);
}

TEST(NodePool, CarriesAMap) {
  using Map =
      std::map<uint64_t, uint64_t, std::less<>, PoolAllocator<std::pair<const uint64_t, uint64_t>>>;
  NodePool pool(100);
  {
    Map map{PoolAllocator<Map::value_type>(&pool)};
    for (int round = 0; round < 10; ++round) {
      for (uint64_t i = 0; i < 100; ++i) map.emplace(i * 37 % 101, i);
      EXPECT_EQ(pool.available(), 0u);
      EXPECT_THROW(map.emplace(1000, 0), std::bad_alloc);
      EXPECT_EQ(map.size(), 100u);
      map.clear();
      EXPECT_EQ(pool.available(), 100u);
    }
    map.emplace(1, 1);
  }
  EXPECT_EQ(pool.available(), 100u);
}

}  // namespace
}  // namespace nfsrdma
