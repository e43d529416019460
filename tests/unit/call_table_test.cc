// SPDX-License-Identifier: GPL-2.0-or-later
#include "call_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <set>

namespace nfsrdma {
namespace {

uint32_t take_sent(CallTable& calls) {
  const uint32_t slot = calls.acquire();
  calls[slot].state = CallState::kSent;
  calls[slot].first_sent_ns = 1;
  return slot;
}

TEST(CallTable, HandsOutEachSlotOnce) {
  for (const uint32_t slots : {1u, 2u, 3u, 64u, 1000u}) {
    CallTable calls(slots, 256, 4);
    std::set<uint32_t> taken;
    for (uint32_t i = 0; i < slots; i++) EXPECT_TRUE(taken.insert(calls.acquire()).second);
    EXPECT_EQ(*taken.rbegin(), slots - 1);
    EXPECT_EQ(calls.acquire(), kNoSlot);
    calls.release(slots / 2);
    EXPECT_EQ(calls.acquire(), slots / 2);
  }
}

TEST(CallTable, AReplyFindsTheCallThatWaitsForIt) {
  CallTable calls(100, 256, 0);
  std::set<uint32_t> xids;
  for (int i = 0; i < 100; i++) {
    const uint32_t slot = take_sent(calls);
    EXPECT_TRUE(xids.insert(calls.xid(slot)).second);
    EXPECT_EQ(calls.find(calls.xid(slot)), slot);
  }
}

TEST(CallTable, RefusesXidsThatNobodyWaitsFor) {
  CallTable calls(5, 256, 0);
  const uint32_t slot = calls.acquire();
  const uint32_t xid = calls.xid(slot);
  EXPECT_EQ(calls.find(xid), kNoSlot) << "only acquired";
  calls[slot].state = CallState::kQueued;
  EXPECT_EQ(calls.find(xid), kNoSlot) << "never sent: a forged reply";
  calls[slot].state = CallState::kSent;
  calls[slot].first_sent_ns = 1;
  EXPECT_EQ(calls.find(xid), slot);
  calls[slot].state = CallState::kQueued;
  EXPECT_EQ(calls.find(xid), slot) << "waits to be sent again; the first reply may come yet";
  for (uint32_t bit = 0; bit < 32; bit++) EXPECT_EQ(calls.find(xid ^ (1u << bit)), kNoSlot) << bit;
  calls.release(slot);
  EXPECT_EQ(calls.find(xid), kNoSlot) << "a repeated reply";
}

TEST(CallTable, ALateReplyDoesNotFindTheSlotsNextCall) {
  CallTable calls(2, 256, 0);
  std::vector<uint32_t> dead;
  for (int round = 0; round < 50; round++) {
    const uint32_t slot = take_sent(calls);
    for (const uint32_t xid : dead) EXPECT_EQ(calls.find(xid), kNoSlot);
    dead.push_back(calls.xid(slot));
    calls.release(slot);
  }
  EXPECT_EQ(std::set<uint32_t>(dead.begin(), dead.end()).size(), dead.size());
}

TEST(CallTable, XidsStartAtRandom) {
  std::set<uint32_t> first;
  for (int i = 0; i < 16; i++) {
    CallTable calls(4, 64, 0);
    first.insert(calls.xid(calls.acquire()));
  }
  EXPECT_GE(first.size(), 15u);
}

TEST(CallTable, HeadsAndTheRoomBeforeThemDoNotOverlap) {
  constexpr uint32_t kHead = 200, kRoom = 28;
  CallTable calls(33, kHead, kRoom);
  for (uint32_t i = 0; i < 33; i++)
    std::memset(calls.head(i) - kRoom, static_cast<int>(i + 1), kHead + kRoom);
  for (uint32_t i = 0; i < 33; i++)
    for (uint32_t at = 0; at < kHead + kRoom; at++)
      ASSERT_EQ(*(calls.head(i) - kRoom + at), std::byte(i + 1));
}

TEST(SlotQueue, IsAFirstInFirstOutQueueThatWraps) {
  SlotQueue queue(7);
  std::deque<uint32_t> model;
  std::mt19937 random(5);
  for (int step = 0; step < 20000; step++) {
    const uint32_t slot = random() % 7;
    const bool there = std::find(model.begin(), model.end(), slot) != model.end();
    switch (random() % 5) {
      case 0:
      case 1:
        if (there) break;
        queue.push(slot);
        model.push_back(slot);
        break;
      case 2:
        if (there) break;
        queue.push_front(slot);
        model.push_front(slot);
        break;
      case 3:
        if (model.empty()) break;
        EXPECT_EQ(queue.pop(), model.front());
        model.pop_front();
        break;
      default:
        queue.remove(slot);
        std::erase(model, slot);
    }
    ASSERT_EQ(queue.size(), model.size());
    ASSERT_EQ(queue.empty(), model.empty());
    for (uint32_t i = 0; i < model.size(); i++) ASSERT_EQ(queue.at(i), model[i]);
  }
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace nfsrdma
