// SPDX-License-Identifier: GPL-2.0-or-later
// Two ends of the iwarp fabric through the fabric interface alone: what is sent, written and read
// arrives byte for byte, and nothing beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "iwarp_pair.h"

using namespace nfsrdma;
using namespace nfsrdma::test;

namespace {

struct Mode {
  const char* name;
  bool client_crc;
  bool server_crc;
  uint32_t segment_max;
};

class Loopback : public testing::TestWithParam<Mode> {
 protected:
  Loopback() : pair(options(GetParam())) {}
  void SetUp() override { pair.connect(); }
  void TearDown() override { pair.expect_guards(); }

  static PairOptions options(const Mode& mode) {
    return {{mode.client_crc, mode.segment_max}, {mode.server_crc, mode.segment_max}};
  }
  static std::vector<uint32_t> sizes() {
    std::vector<uint32_t> all;
    for (uint32_t size = 1; size <= 36; ++size) all.push_back(size);
    for (uint32_t near :
         {512u, 1404u, 1420u, 4096u, 20480u, 32768u, 65464u, 65483u, 65536u, 131072u, 1u << 20}) {
      for (uint32_t size = near - 5; size <= near + 5; ++size) all.push_back(size);
    }
    return all;
  }

  void write_and_compare(End& from, End& to, uint32_t size, uint32_t at) {
    from.data.fill(size, size);
    std::memset(to.data.data(), 0x3c, std::min(kDataBytes, at + size + 4096));
    const LocalSpan span = from.span(0, size);
    ASSERT_TRUE(from.connection->post_write(size, {&span, 1}, to.remote(at), kQuiet));
    ASSERT_TRUE(from.connection->post_send(7, {}));
    from.connection->ring();
    const size_t before = to.count(CompletionKind::kReceive);
    ASSERT_TRUE(pair.until([&] { return to.count(CompletionKind::kReceive) == before + 1; }));
    to.connection->post_receive(to.last(CompletionKind::kReceive)->buffer);
    ASSERT_EQ(std::memcmp(to.data.data() + at, from.data.data(), size), 0) << size;
    for (size_t i = 0; i < at; ++i) ASSERT_EQ(to.data.data()[i], std::byte{0x3c}) << size;
    for (size_t i = at + size; i < std::min<size_t>(kDataBytes, at + size + 4096); ++i) {
      ASSERT_EQ(to.data.data()[i], std::byte{0x3c}) << size;
    }
    ASSERT_TRUE(pair.until([&] { return from.count(CompletionKind::kSendDone) > 0; }));
    EXPECT_EQ(from.count(CompletionKind::kWriteDone), 0u);  // quiet
    from.log.clear();
    to.log.clear();
  }

  Pair pair;
};

TEST_P(Loopback, CrcIsUsedWhenEitherAsks) {
  const std::pair<std::string, std::string> expected{
      "crc", GetParam().client_crc || GetParam().server_crc ? "on" : "off"};
  for (End* end : {&pair.client, &pair.server}) {
    const auto agreed = end->connection->negotiated();
    EXPECT_NE(std::find(agreed.begin(), agreed.end(), expected), agreed.end());
  }
}

TEST_P(Loopback, SendsBothWaysOfEverySize) {
  for (End* from : {&pair.client, &pair.server}) {
    End& to = from == &pair.client ? pair.server : pair.client;
    for (uint32_t size = 0; size <= kReceiveSize; size += size < 600 ? 1 : 97) {
      from->data.fill(size, size + 3);
      const LocalSpan span = from->span(3, size);
      ASSERT_TRUE(from->connection->post_send(size, {&span, 1}));
      from->connection->ring();
      ASSERT_TRUE(pair.until([&] {
        return to.count(CompletionKind::kReceive) == 1 &&
               from->count(CompletionKind::kSendDone) == 1;
      }));
      const Completion& done = *to.last(CompletionKind::kReceive);
      ASSERT_EQ(done.bytes, size);
      EXPECT_FALSE(done.invalidated);
      ASSERT_EQ(std::memcmp(to.received(done).data(), from->data.data() + 3, size), 0);
      EXPECT_EQ(from->last(CompletionKind::kSendDone)->context, size);
      ASSERT_TRUE(to.connection->post_receive(done.buffer));
      from->log.clear();
      to.log.clear();
    }
  }
}

TEST_P(Loopback, ABatchOfSendsArrivesInOrder) {
  for (uint32_t i = 0; i < kReceives; ++i) {
    const LocalSpan parts[3] = {pair.client.span(i * 64, 5), pair.client.span(i * 64 + 5, 0),
                                pair.client.span(i * 64 + 9, 40 + i)};
    pair.client.data.data()[i * 64] = static_cast<std::byte>(i);
    pair.client.data.data()[i * 64 + 9] = static_cast<std::byte>(i + 100);
    ASSERT_TRUE(pair.client.connection->post_send(i, parts, i % 2 == 0 ? kSolicited : 0));
  }
  pair.client.connection->ring();
  ASSERT_TRUE(pair.until([&] { return pair.server.count(CompletionKind::kReceive) == kReceives; }));
  ASSERT_TRUE(
      pair.until([&] { return pair.client.count(CompletionKind::kSendDone) == kReceives; }));
  for (uint32_t i = 0; i < kReceives; ++i) {
    const ConstBytes message = pair.server.received(pair.server.log[i]);
    ASSERT_EQ(message.size(), 45u + i);
    EXPECT_EQ(message[0], static_cast<std::byte>(i));
    EXPECT_EQ(message[5], static_cast<std::byte>(i + 100));
    EXPECT_EQ(pair.client.log[i].context, i);
  }
}

TEST_P(Loopback, NothingLeavesBeforeTheDoorbell) {
  const LocalSpan span = pair.client.span(0, 100);
  ASSERT_TRUE(pair.client.connection->post_send(1, {&span, 1}));
  for (int i = 0; i < 1000; ++i) {
    pair.client.poll();
    pair.server.poll();
  }
  EXPECT_TRUE(pair.server.log.empty());
  pair.client.connection->ring();
  EXPECT_TRUE(pair.until([&] { return pair.server.count(CompletionKind::kReceive) == 1; }));
}

TEST_P(Loopback, WritesOfEverySizeFromTheServer) {
  for (uint32_t size : sizes()) write_and_compare(pair.server, pair.client, size, 17);
}

TEST_P(Loopback, WritesOfEverySizeFromTheClient) {
  for (uint32_t size : {1u, 3u, 4096u, 65537u, (1u << 20) + 3}) {
    write_and_compare(pair.client, pair.server, size, 5);
  }
}

TEST_P(Loopback, ReadsOfEverySize) {
  for (uint32_t size : sizes()) {
    pair.client.data.fill(size + 1, size + 6);
    std::memset(pair.server.data.data(), 0x3c, std::min(kDataBytes, size + 12));
    ASSERT_TRUE(
        pair.server.connection->post_read(size, pair.server.span(11, size), pair.client.remote(6)));
    pair.server.connection->ring();
    ASSERT_TRUE(pair.until([&] { return pair.server.count(CompletionKind::kReadDone) == 1; }));
    EXPECT_EQ(pair.server.last(CompletionKind::kReadDone)->context, size);
    ASSERT_EQ(std::memcmp(pair.server.data.data() + 11, pair.client.data.data() + 6, size), 0)
        << size;
    EXPECT_EQ(pair.server.data.data()[10], std::byte{0x3c});
    EXPECT_EQ(pair.server.data.data()[11 + size], std::byte{0x3c});
    pair.server.log.clear();
  }
}

TEST_P(Loopback, ReadsBeyondOrdWaitInOrder) {
  pair.client.data.fill(3);
  for (uint32_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(pair.server.connection->post_read(i, pair.server.span(i * 500, 500),
                                                  pair.client.remote(i * 500)));
  }
  pair.server.connection->ring();
  ASSERT_TRUE(pair.until([&] { return pair.server.count(CompletionKind::kReadDone) == 200; }));
  for (uint32_t i = 0; i < 200; ++i) EXPECT_EQ(pair.server.log[i].context, i);
  EXPECT_EQ(std::memcmp(pair.server.data.data(), pair.client.data.data(), 200 * 500), 0);
}

TEST_P(Loopback, GatherOfManySpans) {
  pair.server.data.fill(9);
  std::vector<LocalSpan> parts;
  std::vector<std::byte> expected;
  uint32_t at = 0;
  for (uint32_t length : {1u, 70000u, 3u, 511u, 513u, 2u, 65536u, 7u}) {
    parts.push_back(pair.server.span(at, length));
    expected.insert(expected.end(), parts.back().address, parts.back().address + length);
    at += length + 13;
  }
  EXPECT_EQ(pair.server.connection->limits().gather_max, parts.size());
  ASSERT_TRUE(pair.server.connection->post_write(1, parts, pair.client.remote(1)));
  ASSERT_TRUE(pair.server.connection->post_send(2, {}));
  pair.server.connection->ring();
  ASSERT_TRUE(pair.until([&] { return pair.client.count(CompletionKind::kReceive) == 1; }));
  EXPECT_EQ(std::memcmp(pair.client.data.data() + 1, expected.data(), expected.size()), 0);
  parts.push_back(pair.server.span(0, 1));
  EXPECT_FALSE(pair.server.connection->post_write(1, parts, pair.client.remote(1)));
}

TEST_P(Loopback, EverythingAtOnce) {
  pair.client.data.fill(21);
  pair.server.data.fill(22);
  constexpr uint32_t kHalf = 500'000;
  std::vector<std::byte> from_client(pair.client.data.data(), pair.client.data.data() + kHalf);
  std::vector<std::byte> from_server(pair.server.data.data(), pair.server.data.data() + kHalf);
  for (uint32_t i = 0; i < 20; ++i) {
    const uint32_t at = i * 25'000;
    const LocalSpan client_part = pair.client.span(at, 25'000);
    const LocalSpan server_part = pair.server.span(at, 25'000);
    const LocalSpan word = pair.client.span(at, 100);
    if (i % 2 == 0) {
      ASSERT_TRUE(
          pair.client.connection->post_write(i, {&client_part, 1}, pair.server.remote(kHalf + at)));
      ASSERT_TRUE(
          pair.server.connection->post_write(i, {&server_part, 1}, pair.client.remote(kHalf + at)));
    } else {
      ASSERT_TRUE(pair.client.connection->post_read(i, pair.client.span(kHalf + at, 25'000),
                                                    pair.server.remote(at)));
      ASSERT_TRUE(pair.server.connection->post_read(i, pair.server.span(kHalf + at, 25'000),
                                                    pair.client.remote(at)));
    }
    ASSERT_TRUE(pair.client.connection->post_send(i, {&word, 1}));
    ASSERT_TRUE(pair.server.connection->post_send(i, {}));
  }
  pair.client.connection->ring();
  pair.server.connection->ring();
  ASSERT_TRUE(pair.until([&] {
    return pair.client.count(CompletionKind::kReceive) == 20 &&
           pair.server.count(CompletionKind::kReceive) == 20 &&
           pair.client.count(CompletionKind::kReadDone) == 10 &&
           pair.server.count(CompletionKind::kReadDone) == 10;
  }));
  EXPECT_EQ(std::memcmp(pair.server.data.data() + kHalf, from_client.data(), kHalf), 0);
  EXPECT_EQ(std::memcmp(pair.client.data.data() + kHalf, from_server.data(), kHalf), 0);
}

TEST_P(Loopback, AKeyPerCall) {
  Connection& client = *pair.client.connection;
  Connection& server = *pair.server.connection;
  pair.server.data.fill(4);
  const Result<RemoteMemory> key =
      client.bind_key(pair.client.region, pair.client.data.span(1000, 5000), Access::kRemoteWrite);
  ASSERT_TRUE(key);
  const LocalSpan span = pair.server.span(0, 5000);
  ASSERT_TRUE(server.post_write(1, {&span, 1}, *key));
  ASSERT_TRUE(server.post_send(2, {}, kInvalidate, key->key));
  server.ring();
  ASSERT_TRUE(pair.until([&] { return pair.client.count(CompletionKind::kReceive) == 1; }));
  const Completion& done = *pair.client.last(CompletionKind::kReceive);
  EXPECT_TRUE(done.invalidated);
  EXPECT_EQ(done.key, key->key);
  EXPECT_EQ(std::memcmp(pair.client.data.data() + 1000, pair.server.data.data(), 5000), 0);
  EXPECT_EQ(pair.client.data.data()[999], std::byte{0});
  EXPECT_EQ(pair.client.data.data()[6000], std::byte{0});

  // The key is dead: writing once more ends the connection.
  std::memset(pair.client.data.data(), 0, kDataBytes);
  ASSERT_TRUE(server.post_write(1, {&span, 1}, *key));
  server.ring();
  ASSERT_TRUE(pair.until([&] { return pair.client.count(CompletionKind::kDisconnected) == 1; }));
  EXPECT_NE(client.error().text.find("invalid STag"), std::string::npos) << client.error().text;
  ASSERT_TRUE(pair.until([&] { return pair.server.count(CompletionKind::kDisconnected) == 1; }));
  EXPECT_NE(server.error().text.find("Terminate: DDP, tagged buffer: invalid STag"),
            std::string::npos)
      << server.error().text;
  EXPECT_EQ(pair.client.data.data()[1000], std::byte{0});
}

TEST_P(Loopback, KeysAreCountedAndBounded) {
  Connection& client = *pair.client.connection;
  std::vector<RemoteKey> keys;
  for (uint32_t i = 0; i < 16; ++i) {
    const auto key =
        client.bind_key(pair.client.region, pair.client.data.span(i, 1), Access::kRemoteRead);
    ASSERT_TRUE(key);
    keys.push_back(key->key);
  }
  EXPECT_FALSE(client.bind_key(pair.client.region, pair.client.data.span(0, 1), Access::kNone));
  EXPECT_TRUE(client.unbind_key(keys[3], 0));
  EXPECT_TRUE(client.bind_key(pair.client.region, pair.client.data.span(0, 1), Access::kNone));
  // Outside the region, and with a right that its region lacks.
  EXPECT_TRUE(client.unbind_key(keys[4], 0));
  EXPECT_FALSE(
      client.bind_key(pair.client.region, {pair.client.data.data() - 1, 2}, Access::kRemoteRead));
  EXPECT_FALSE(client.bind_key(pair.client.region, {pair.client.data.data() + 1, kDataBytes},
                               Access::kRemoteRead));
  EXPECT_FALSE(client.bind_key(pair.client.receive_region, pair.client.receives.span(0, 10),
                               Access::kRemoteWrite));
}

TEST_P(Loopback, SpansOutsideTheirRegionAreRefused) {
  Connection& client = *pair.client.connection;
  LocalSpan span = pair.client.span(kDataBytes - 10, 11);
  EXPECT_FALSE(client.post_send(0, {&span, 1}));
  EXPECT_FALSE(client.post_write(0, {&span, 1}, pair.server.remote(0)));
  EXPECT_FALSE(client.post_read(0, span, pair.server.remote(0)));
  span = pair.client.span(0, 10);
  span.region = 4000;
  EXPECT_FALSE(client.post_send(0, {&span, 1}));
  span.region = kNoRegion;
  EXPECT_FALSE(client.post_send(0, {&span, 1}));
}

TEST_P(Loopback, TheQueueIsAsDeepAsItSays) {
  Connection& client = *pair.client.connection;
  for (uint32_t i = 0; i < 64; ++i) {
    ASSERT_TRUE(client.post_write(i, {}, RemoteMemory{}, i == 63 ? 0 : kQuiet));
  }
  EXPECT_FALSE(client.post_send(64, {}));
  client.ring();
  ASSERT_TRUE(pair.until([&] { return pair.client.count(CompletionKind::kWriteDone) == 1; }));
  EXPECT_EQ(pair.client.log.size(), 1u);
  EXPECT_EQ(pair.client.log[0].context, 63u);
  EXPECT_TRUE(client.post_send(64, {}));
}

TEST_P(Loopback, SendWithoutAReceiveEndsTheConnection) {
  for (uint32_t i = 0; i < kReceives + 1; ++i) {
    ASSERT_TRUE(pair.client.connection->post_send(i, {}));
  }
  pair.client.connection->ring();
  ASSERT_TRUE(pair.until([&] { return pair.client.count(CompletionKind::kDisconnected) == 1; }));
  EXPECT_EQ(pair.server.count(CompletionKind::kReceive), kReceives);
  EXPECT_NE(pair.server.connection->error().text.find("no receive is posted"), std::string::npos);
  EXPECT_NE(pair.client.connection->error().text.find("no buffer for the message"),
            std::string::npos);
}

TEST_P(Loopback, PostReceiveOfAPostedOrUnknownBufferIsRefused) {
  EXPECT_FALSE(pair.client.connection->post_receive(0));
  EXPECT_FALSE(pair.client.connection->post_receive(kReceives));
}

TEST_P(Loopback, CloseIsSeenByThePeerAndTheObjectConnectsAgain) {
  const uint64_t sends = pair.client.connection->counters().send_calls;
  pair.client.connection->close();
  EXPECT_EQ(pair.client.connection->state(), ConnectionState::kIdle);
  ASSERT_TRUE(pair.until([&] { return pair.server.count(CompletionKind::kDisconnected) == 1; }));
  EXPECT_NE(pair.server.connection->error().text.find("closed the connection"), std::string::npos);
  pair.client.log.clear();
  pair.server.log.clear();
  pair.server.connection.reset();

  ConnectRequest request;
  request.peer = loopback(pair.listener->port());
  ASSERT_TRUE(pair.client.connection->start_connect(request));
  ASSERT_TRUE(pair.until([&] {
    if (!pair.server.connection) {
      pair.server.connection = pair.listener->poll();
      if (pair.server.connection) {
        EXPECT_TRUE(pair.server.connection->accept(*pair.server.fabric, pair.server.config(), {}));
      }
    }
    return pair.client.count(CompletionKind::kEstablished) == 1;
  }));
  pair.client.log.clear();
  pair.server.log.clear();
  pair.hello();
  write_and_compare(pair.server, pair.client, 70'000, 3);
  EXPECT_GT(pair.client.connection->counters().send_calls, sends);
}

// Every byte the last of a system call, on both sides.
TEST_P(Loopback, ByteByByte) {
  const Shim shim(1, 1);
  for (uint32_t size : {1u, 2u, 3u, 4u, 5u, 600u, 2000u}) {
    write_and_compare(pair.server, pair.client, size, 9);
  }
  ASSERT_TRUE(
      pair.server.connection->post_read(1, pair.server.span(0, 1500), pair.client.remote(100)));
  pair.server.connection->ring();
  ASSERT_TRUE(pair.until([&] { return pair.server.count(CompletionKind::kReadDone) == 1; }));
  EXPECT_EQ(std::memcmp(pair.server.data.data(), pair.client.data.data() + 100, 1500), 0);
}

TEST_P(Loopback, OddCutsOfLongMessages) {
  for (size_t cut : {7u, 1013u, 21001u, 65536u}) {
    const Shim shim(cut, 40009);
    for (uint32_t size : {20479u, 65460u, 70003u, 200001u}) {
      write_and_compare(pair.server, pair.client, size, 9);
    }
  }
  const Shim shim(30011, 11);
  write_and_compare(pair.server, pair.client, 30001, 2);
}

TEST_P(Loopback, AClientSleepsInTheReceiveCall) {
  Connection& client = *pair.client.connection;
  const auto server_sends = [&] {
    ASSERT_TRUE(pair.server.connection->post_send(1, {}, kQuiet));
    pair.server.connection->ring();
  };
  EXPECT_FALSE(client.sleep_receiving(now_ns(), UINT64_MAX)) << "its peer may need to be woken";
  server_sends();
  ASSERT_TRUE(pair.until([&] { return pair.client.count(CompletionKind::kReceive) == 1; }));
  EXPECT_FALSE(client.sleep_receiving(now_ns(), now_ns() + 30'000'000)) << "it may be late";
  EXPECT_FALSE(pair.server.connection->sleep_receiving(now_ns(), UINT64_MAX)) << "no client";
  // A Send that is done and not polled for does not keep it awake.
  ASSERT_TRUE(client.post_send(2, {}));
  client.ring();
  EXPECT_TRUE(client.sleep_receiving(now_ns(), UINT64_MAX)) << "though nothing comes";
  server_sends();
  const uint64_t calls = client.counters().recv_calls;
  ASSERT_TRUE(client.sleep_receiving(now_ns(), UINT64_MAX));
  pair.client.poll();
  EXPECT_EQ(pair.client.count(CompletionKind::kReceive), 2u);
  EXPECT_EQ(pair.client.count(CompletionKind::kSendDone), 1u);
  EXPECT_EQ(client.counters().recv_calls, calls + 1);
}

INSTANTIATE_TEST_SUITE_P(Modes, Loopback,
                         testing::Values(Mode{"CrcBoth", true, true, 0},
                                         Mode{"CrcNone", false, false, 0},
                                         Mode{"CrcClient", true, false, 0},
                                         Mode{"CrcServer", false, true, 0},
                                         Mode{"SmallSegments", true, true, 1448},
                                         Mode{"TinySegments", false, false, 128}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
