// SPDX-License-Identifier: GPL-2.0-or-later
// The rules of fabric.h on a real verbs device: data, order, keys, ends.
#include <sys/resource.h>

#include "verbs_pair.h"

namespace nfsrdma::test {
namespace {

using Kind = CompletionKind;

bool same(ConstBytes got, ConstBytes wanted) {
  return got.size() == wanted.size() && std::memcmp(got.data(), wanted.data(), got.size()) == 0;
}

TEST(Verbs, TellsDeviceAndPrivateData) {
  Pair pair;
  ASSERT_TRUE(pair.up());
  EXPECT_FALSE(pair.client.fabric->device().empty());
  const auto said = pair.client.connection->peer_private_data();
  const auto asked = pair.server.connection->peer_private_data();
  ASSERT_GE(said.size(), 12u);
  ASSERT_GE(asked.size(), 12u);
  EXPECT_TRUE(same(said.first(12), std::as_bytes(std::span("hello client", 12))));
  EXPECT_TRUE(same(asked.first(12), std::as_bytes(std::span("hello server", 12))));
  EXPECT_GE(pair.client.connection->limits().gather_max, 3u);
  EXPECT_GE(pair.server.connection->limits().ord, 1u);
  for (const auto& [name, value] : pair.client.connection->negotiated())
    std::printf("%s %s\n", name.c_str(), value.c_str());
  std::printf("device %s, keys: %s\n", pair.client.fabric->device().c_str(),
              std::string(to_string(pair.client.fabric->key_per_call())).c_str());
}

TEST(Verbs, SendsOfEverySizeArriveWhole) {
  Pair pair;
  ASSERT_TRUE(pair.up());
  pair.client.data.fill(1);
  for (const uint32_t bytes : {1u, 64u, 100u, 255u, 256u, 257u, 1024u, 4095u, 4096u}) {
    pair.server.log.clear();
    pair.client.log.clear();
    const LocalSpan spans[] = {pair.client.span(bytes, bytes / 2),
                               pair.client.span(bytes + bytes / 2, bytes - bytes / 2)};
    ASSERT_TRUE(pair.client.connection->post_send(bytes, spans));
    if (bytes <= pair.client.connection->limits().inline_max)
      std::memset(pair.client.data.data() + bytes, 0, bytes);  // copied: ours again
    pair.client.connection->ring();
    ASSERT_TRUE(run_until(
        [&] {
          return pair.server.count(Kind::kReceive) == 1 && pair.client.count(Kind::kSendDone);
        },
        [&] { pair.step(); }));
    const Completion* got = pair.server.last(Kind::kReceive);
    pair.client.data.fill(1);
    EXPECT_TRUE(same(pair.server.received(*got), pair.client.data.span(bytes, bytes))) << bytes;
    EXPECT_EQ(pair.client.last(Kind::kSendDone)->context, bytes);
    ASSERT_TRUE(pair.server.connection->post_receive(got->buffer));
  }
}

TEST(Verbs, QuietSendsNeverFillTheQueue) {
  Pair pair;
  ASSERT_TRUE(pair.up());
  pair.client.data.fill(3);
  uint32_t received = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    const LocalSpan span = pair.client.span(i, 40);
    const uint32_t quiet = i % 16 == 15 ? 0 : kQuiet;
    ASSERT_TRUE(run_until([&] { return i - received < kReceives - 2; },
                          [&] {
                            pair.client.connection->ring();
                            pair.step();
                            for (const Completion& c : pair.server.log) {
                              if (c.kind != Kind::kReceive) continue;
                              EXPECT_TRUE(same(pair.server.received(c),
                                               pair.client.data.span(received, 40)));
                              ++received;
                              EXPECT_TRUE(pair.server.connection->post_receive(c.buffer));
                            }
                            pair.server.log.clear();
                            pair.server.connection->ring();
                          }));
    ASSERT_TRUE(run_until(
        [&] {
          return pair.client.connection->post_send(i, {&span, 1}, quiet);
        },
        [&] { pair.step(); }));
  }
  EXPECT_LT(pair.client.connection->counters().send_calls, 1000u);
}

TEST(Verbs, WriteIsThereWhenTheSendArrives) {
  Pair pair;
  ASSERT_TRUE(pair.up());
  for (const uint32_t bytes : {1u, 8192u, 1u << 20}) {
    pair.server.data.fill(bytes);
    pair.client.log.clear();
    const LocalSpan parts[] = {pair.server.span(0, bytes / 3),
                               pair.server.span(bytes / 3, bytes - bytes / 3)};
    const LocalSpan note = pair.server.span(0, 8);
    ASSERT_TRUE(pair.server.connection->post_write(5, parts, pair.client.remote(0), kQuiet));
    ASSERT_TRUE(pair.server.connection->post_send(6, {&note, 1}));
    pair.server.connection->ring();
    ASSERT_TRUE(
        run_until([&] { return pair.client.count(Kind::kReceive) == 1; }, [&] { pair.step(); }));
    EXPECT_TRUE(same(pair.client.data.span(0, bytes), pair.server.data.span(0, bytes)));
    ASSERT_TRUE(pair.client.connection->post_receive(pair.client.last(Kind::kReceive)->buffer));
  }
}

TEST(Verbs, ReadsBringTheBytes) {
  Pair pair;
  ASSERT_TRUE(pair.up());
  pair.client.data.fill(9);
  ASSERT_TRUE(
      pair.server.connection->post_read(1, pair.server.span(0, 8192), pair.client.remote(0)));
  ASSERT_TRUE(pair.server.connection->post_read(2, pair.server.span(8192, 1'000'001),
                                                pair.client.remote(8192)));
  pair.server.connection->ring();
  ASSERT_TRUE(
      run_until([&] { return pair.server.count(Kind::kReadDone) == 2; }, [&] { pair.step(); }));
  EXPECT_EQ(pair.server.last(Kind::kReadDone)->context, 2u);
  EXPECT_TRUE(same(pair.server.data.span(0, 1'008'193), pair.client.data.span(0, 1'008'193)));
}

// A device may complete a Send before the Read that was posted ahead of it (siw does).
TEST(Verbs, ReadsAndSendsBehindThemAllComplete) {
  Pair pair;
  ASSERT_TRUE(pair.up());
  pair.client.data.fill(11);
  constexpr uint32_t kRounds = 200, kBytes = 65'536;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    const LocalSpan note = pair.server.span(kBytes, 200);
    ASSERT_TRUE(pair.server.connection->post_read(round, pair.server.span(0, kBytes),
                                                  pair.client.remote(0)));
    ASSERT_TRUE(pair.server.connection->post_send(round, {&note, 1}));
    pair.server.connection->ring();
    ASSERT_TRUE(run_until(
        [&] {
          return pair.server.count(Kind::kReadDone) == round &&
                 pair.server.count(Kind::kSendDone) == round &&
                 pair.client.count(Kind::kReceive) == round;
        },
        [&] { pair.step(); }))
        << "round " << round << ": Reads " << pair.server.count(Kind::kReadDone) << ", Sends "
        << pair.server.count(Kind::kSendDone);
    EXPECT_EQ(pair.server.last(Kind::kReadDone)->context, round);
    EXPECT_EQ(pair.server.last(Kind::kSendDone)->context, round);
    ASSERT_TRUE(pair.client.connection->post_receive(pair.client.last(Kind::kReceive)->buffer));
    pair.client.connection->ring();
  }
}

// A sleeper is woken by a message, and only by one.
TEST(Verbs, SleepsUntilSomethingArrives) {
  Pair pair;
  ASSERT_TRUE(pair.up());
  for (int round = 0; round < 20; ++round) {
    pollfd wait{};
    pair.client.log.clear();
    ASSERT_TRUE(run_until([&] { return pair.client.connection->prepare_wait(wait); },
                          [&] { pair.client.poll(); }));
    ASSERT_EQ(::poll(&wait, 1, 20), 0) << "woken by nothing in round " << round;
    const LocalSpan note = pair.server.span(0, 64);
    ASSERT_TRUE(pair.server.connection->post_send(1, {&note, 1}));
    pair.server.connection->ring();
    ASSERT_EQ(::poll(&wait, 1, 5'000), 1) << "not woken in round " << round;
    ASSERT_TRUE(
        run_until([&] { return pair.client.count(Kind::kReceive) == 1; }, [&] { pair.step(); }));
    ASSERT_TRUE(pair.client.connection->post_receive(pair.client.last(Kind::kReceive)->buffer));
    ASSERT_TRUE(run_until([&] { return !pair.server.log.empty(); }, [&] { pair.step(); }));
    pair.server.log.clear();
  }
}

// A key works until it is unbound, and then the peer's Write changes nothing.
TEST(Verbs, KeyPerCallDiesWhenUnbound) {
  Pair pair(true);
  ASSERT_TRUE(pair.up());
  pair.server.data.fill(11);
  auto key = pair.client.connection->bind_key(pair.client.region, pair.client.data.span(4096, 8192),
                                              Access::kRemoteWrite);
  ASSERT_TRUE(key) << key.error().text;
  const LocalSpan note = pair.client.span(0, 8);
  ASSERT_TRUE(pair.client.connection->post_send(1, {&note, 1}));
  pair.client.connection->ring();
  ASSERT_TRUE(
      run_until([&] { return pair.server.count(Kind::kReceive) == 1; }, [&] { pair.step(); }));
  const LocalSpan source = pair.server.span(0, 8192);
  ASSERT_TRUE(pair.server.connection->post_write(2, {&source, 1}, *key));
  ASSERT_TRUE(pair.server.connection->post_send(3, {&note, 0}));
  pair.server.connection->ring();
  ASSERT_TRUE(
      run_until([&] { return pair.client.count(Kind::kReceive) == 1; }, [&] { pair.step(); }));
  EXPECT_TRUE(same(pair.client.data.span(4096, 8192), pair.server.data.span(0, 8192)));
  if (!pair.client.connection->unbind_key(key->key, 77)) {
    pair.client.connection->ring();
    ASSERT_TRUE(
        run_until([&] { return pair.client.count(Kind::kUnbound) == 1; }, [&] { pair.step(); }));
    EXPECT_EQ(pair.client.last(Kind::kUnbound)->context, 77u);
  }
  std::memset(pair.client.data.data(), 0, kDataBytes);
  pair.server.connection->post_write(4, {&source, 1}, *key);
  pair.server.connection->ring();
  ASSERT_TRUE(
      run_until([&] { return pair.server.count(Kind::kDisconnected) == 1; }, [&] { pair.step(); }));
  std::printf("write through a dead key: %s\n", pair.server.connection->error().text.c_str());
  for (uint32_t i = 0; i < 32'768; ++i) ASSERT_EQ(pair.client.data.data()[i], std::byte{0}) << i;
}

TEST(Verbs, RegionGrantsNothingWithKeyPerCall) {
  Pair pair(true);
  ASSERT_TRUE(pair.up());
  pair.server.data.fill(12);
  const LocalSpan source = pair.server.span(0, 4096);
  ASSERT_TRUE(pair.server.connection->post_write(4, {&source, 1}, pair.client.remote(0)));
  pair.server.connection->ring();
  // The server end has reads, and on iWARP those bring the right; the client's has them here too.
  if (pair.client.fabric->key_per_call() == KeyPerCall::kMemoryWindow) {
    ASSERT_TRUE(run_until([&] { return pair.server.count(Kind::kDisconnected) == 1; },
                          [&] { pair.step(); }));
    EXPECT_EQ(pair.client.data.data()[0], std::byte{0});
  }
}

TEST(Verbs, RemoteInvalidationKillsTheKey) {
  Pair pair(true);
  if (!pair.client.fabric->remote_invalidation())
    GTEST_SKIP() << "the device has no memory windows";
  ASSERT_TRUE(pair.up());
  auto key = pair.client.connection->bind_key(pair.client.region, pair.client.data.span(0, 4096),
                                              Access::kRemoteWrite | Access::kRemoteRead);
  ASSERT_TRUE(key) << key.error().text;
  const LocalSpan note = pair.client.span(0, 8);
  ASSERT_TRUE(pair.client.connection->post_send(1, {&note, 1}));
  pair.client.connection->ring();
  ASSERT_TRUE(
      run_until([&] { return pair.server.count(Kind::kReceive) == 1; }, [&] { pair.step(); }));
  const LocalSpan reply = pair.server.span(0, 8);
  ASSERT_TRUE(pair.server.connection->post_send(1, {&reply, 1}, kInvalidate, key->key));
  pair.server.connection->ring();
  ASSERT_TRUE(
      run_until([&] { return pair.client.count(Kind::kReceive) == 1; }, [&] { pair.step(); }));
  EXPECT_TRUE(pair.client.last(Kind::kReceive)->invalidated);
  EXPECT_EQ(pair.client.last(Kind::kReceive)->key, key->key);
  EXPECT_TRUE(pair.client.connection->unbind_key(key->key, 1));
}

TEST(Verbs, ClosedMeansOutOfReach) {
  Pair pair;
  ASSERT_TRUE(pair.up());
  pair.server.data.fill(13);
  const RemoteMemory sink = pair.client.remote(0);
  const LocalSpan source = pair.server.span(0, 1 << 20);
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(pair.server.connection->post_write(1, {&source, 1}, sink));
  pair.server.connection->ring();
  const uint64_t before = now_ns();
  pair.client.connection->close();
  const uint64_t took_ms = (now_ns() - before) / 1'000'000;
  std::memset(pair.client.data.data(), 0x5a, kDataBytes);
  EXPECT_EQ(pair.client.connection->state(), ConnectionState::kIdle);
  ASSERT_TRUE(run_until([&] { return pair.server.count(Kind::kDisconnected) == 1; },
                        [&] { pair.server.poll(); }));
  for (uint32_t i = 0; i < kDataBytes; ++i)
    ASSERT_EQ(pair.client.data.data()[i], std::byte{0x5a}) << i;
  std::printf("close took %lu ms; the peer: %s\n", static_cast<unsigned long>(took_ms),
              pair.server.connection->error().text.c_str());
  EXPECT_LT(took_ms, 3'000u);
}

TEST(Verbs, TheSameConnectionConnectsAgain) {
  Pair pair(true);
  for (uint32_t round = 0; round < 4; ++round) {
    ASSERT_TRUE(pair.up()) << round;
    pair.client.data.fill(round);
    const LocalSpan note = pair.client.span(round, 512);
    ASSERT_TRUE(pair.client.connection->post_send(1, {&note, 1}));
    pair.client.connection->ring();
    ASSERT_TRUE(
        run_until([&] { return pair.server.count(Kind::kReceive) == 1; }, [&] { pair.step(); }));
    EXPECT_TRUE(same(pair.server.received(*pair.server.last(Kind::kReceive)),
                     pair.client.data.span(round, 512)));
    pair.server.connection->close();
    ASSERT_TRUE(run_until([&] { return pair.client.count(Kind::kDisconnected) == 1; },
                          [&] { pair.client.poll(); }));
    if (round == 0) std::printf("peer closed: %s\n", pair.client.connection->error().text.c_str());
    pair.client.connection->close();
  }
}

TEST(Verbs, WrongPortIsSaidInWords) {
  Pair pair;
  ConnectRequest request = pair.request();
  request.peer = device_address(19);
  request.peer_name = "server.example";
  ASSERT_TRUE(pair.client.connection->start_connect(request));
  ASSERT_TRUE(run_until([&] { return pair.client.count(Kind::kDisconnected) == 1; },
                        [&] { pair.client.poll(); }));
  const Error& error = pair.client.connection->error();
  std::printf("wrong port: %s\n", error.text.c_str());
  EXPECT_EQ(error.code, ECONNREFUSED);
  EXPECT_NE(error.text.find("server.example"), std::string::npos);
  EXPECT_NE(error.text.find("no RDMA service listens on that port"), std::string::npos);
}

TEST(Verbs, RejectionIsSaidInWords) {
  Pair pair;
  ASSERT_TRUE(pair.client.connection->start_connect(pair.request()));
  ASSERT_TRUE(pair.requested());
  pair.server.connection->reject(std::as_bytes(std::span("no more", 7)));
  EXPECT_EQ(pair.server.connection->state(), ConnectionState::kIdle);
  ASSERT_TRUE(run_until([&] { return pair.client.count(Kind::kDisconnected) == 1; },
                        [&] { pair.client.poll(); }));
  const Error& error = pair.client.connection->error();
  std::printf("rejected: %s\n", error.text.c_str());
  EXPECT_NE(error.text.find("rejected"), std::string::npos);
}

// Run with a small `ulimit -l` and without the right to exceed it.
TEST(VerbsLimit, RefusedRegistrationNamesBytesAndLimit) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  if (limit.rlim_cur > (8u << 20)) GTEST_SKIP() << "`ulimit -l` is large here";
  VerbsOptions options;
  options.peer = device_address(20049);
  auto fabric = make_verbs_fabric(options);
  ASSERT_TRUE(fabric) << fabric.error().text;
  std::vector<std::byte> memory(32u << 20);
  auto region = (*fabric)->register_memory(memory, Access::kRemoteWrite);
  ASSERT_FALSE(region);
  std::printf("limit: %s\n", region.error().text.c_str());
  EXPECT_NE(region.error().text.find("33554432 bytes"), std::string::npos);
  EXPECT_NE(region.error().text.find("ulimit -l"), std::string::npos);
}

// Last: $VERBS_REMOVE is a command that takes the device away.
TEST(VerbsGone, RemovedDeviceIsSaidInWords) {
  const char* remove = std::getenv("VERBS_REMOVE");
  if (remove == nullptr) GTEST_SKIP() << "VERBS_REMOVE is not set";
  Pair pair;
  ASSERT_TRUE(pair.up());
  // It may wait until we have let go of the device.
  ASSERT_EQ(std::system((std::string(remove) + " &").c_str()), 0);
  ASSERT_TRUE(
      run_until([&] { return pair.client.count(Kind::kDisconnected) == 1; }, [&] { pair.step(); }));
  std::printf("removed: %s\n", pair.client.connection->error().text.c_str());
  EXPECT_FALSE(pair.client.connection->error().text.empty());
}

}  // namespace
}  // namespace nfsrdma::test
