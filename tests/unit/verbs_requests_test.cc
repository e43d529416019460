// SPDX-License-Identifier: GPL-2.0-or-later
// The send queue of the verbs fabric, whatever the order in which a device completes it.
#include "verbs_requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace nfsrdma::verbs {
namespace {

Request request(RequestKind kind, uint64_t context, bool quiet = false) {
  return {.context = context, .kind = kind, .quiet = quiet};
}

TEST(VerbsRequests, ACompletionEndsTheQuietOnesBeforeIt) {
  RequestQueue queue;
  queue.open(4);
  for (uint64_t i = 0; i < 3; ++i) queue.push(request(RequestKind::kWrite, i, true));
  queue.push(request(RequestKind::kSend, 3));
  EXPECT_TRUE(queue.full());
  EXPECT_EQ(queue.sends(), 4u);
  const Request* ended = queue.retire(3);
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->context, 3u);
  EXPECT_EQ(queue.sends(), 0u);
  EXPECT_FALSE(queue.full());
}

TEST(VerbsRequests, ASendThatCompletesFirstLeavesTheReadOut) {
  RequestQueue queue;
  queue.open(4);
  queue.push(request(RequestKind::kRead, 10));
  queue.push(request(RequestKind::kBind, 0, true));
  queue.push(request(RequestKind::kSend, 11));
  ASSERT_NE(queue.retire(2), nullptr);
  EXPECT_EQ(queue.sends(), 0u);
  EXPECT_EQ(queue.reads(), 1u) << "its bytes are not there yet";
  const Request* read = queue.retire(0);
  ASSERT_NE(read, nullptr) << "and its own completion counts";
  EXPECT_EQ(read->context, 10u);
  EXPECT_EQ(read->kind, RequestKind::kRead);
  EXPECT_EQ(queue.reads(), 0u);
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(queue.full()) << "all three had ended";
    queue.push(request(RequestKind::kSend, i));
  }
  EXPECT_TRUE(queue.full());
}

TEST(VerbsRequests, WhatIsNotOutEndsNothing) {
  RequestQueue queue;
  queue.open(2);
  EXPECT_EQ(queue.retire(0), nullptr) << "not posted yet";
  queue.push(request(RequestKind::kRead, 1));
  queue.push(request(RequestKind::kSend, 2));
  ASSERT_NE(queue.retire(1), nullptr);
  EXPECT_EQ(queue.retire(1), nullptr) << "twice";
  EXPECT_EQ(queue.retire(2), nullptr) << "beyond";
  EXPECT_EQ(queue.retire(UINT64_MAX >> 1), nullptr) << "the marker of a drain";
  ASSERT_NE(queue.retire(0), nullptr);
  EXPECT_EQ(queue.retire(0), nullptr);
  EXPECT_EQ(queue.sends(), 0u);
  EXPECT_EQ(queue.reads(), 0u);
}

// Sends in their order, Reads in theirs, the two mixed at random: each that is waited for ends
// once, and the room is that of what is out.
TEST(VerbsRequests, AnyMixOfReadsAndSends) {
  std::mt19937 random(4711);
  RequestQueue queue;
  queue.open(24);
  std::vector<uint64_t> sends, reads, ended;
  uint64_t waited_for = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (!queue.full() && random() % 2 == 0) {
      const bool read = random() % 3 == 0;
      const bool quiet = !read && random() % 2 == 0;
      if (!quiet) (read ? reads : sends).push_back(queue.next());
      if (!quiet) ++waited_for;
      queue.push(request(read ? RequestKind::kRead : RequestKind::kSend, queue.next(), quiet));
      continue;
    }
    std::vector<uint64_t>& from =
        sends.empty() || (!reads.empty() && random() % 2 == 0) ? reads : sends;
    if (from.empty()) {  // only quiet ones are out: the connection signals one of so many
      if (queue.full()) {
        ASSERT_NE(queue.retire(queue.next() - 1), nullptr);
      }
      continue;
    }
    const Request* request = queue.retire(from.front());
    ASSERT_NE(request, nullptr) << from.front();
    ended.push_back(request->context);
    from.erase(from.begin());
    ASSERT_EQ(queue.reads(), reads.size());
  }
  std::sort(ended.begin(), ended.end());
  EXPECT_EQ(std::adjacent_find(ended.begin(), ended.end()), ended.end());
  EXPECT_EQ(ended.size() + sends.size() + reads.size(), waited_for);
}

}  // namespace
}  // namespace nfsrdma::verbs
