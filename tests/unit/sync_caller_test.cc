// SPDX-License-Identifier: GPL-2.0-or-later
#include "sync_caller.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

#include "fake_transport.h"
#include "rpc_script.h"

namespace nfsrdma {
namespace {

using testing::accepted;
using testing::FakeTransport;
using testing::hex;
using testing::not_done;
using testing::Script;
using testing::to_hex;
using testing::XdrText;

SyncCallerConfig config_with(uint32_t timeout_ms) {
  SyncCallerConfig config;
  config.server = "server:2049";
  config.credential = Credential::none();
  config.call_timeout_ms = timeout_ms;
  return config;
}

/// One GETATTR-like call against `answer`.
struct Outcome {
  Result<std::vector<std::byte>> results;
  uint64_t took_ms;
  uint32_t retransmissions;
};
Outcome run(const FakeTransport::Answer& answer, uint32_t timeout_ms = 2000,
            uint32_t reply_max = 64) {
  FakeTransport transport(answer);
  SyncCaller caller(transport, config_with(timeout_ms));
  const uint64_t begin = now_ns();
  auto body = caller.call(100003, 3, 1, hex("0000002a"), reply_max);
  Outcome outcome{fail(1, ""), (now_ns() - begin) / 1'000'000, caller.retransmissions()};
  if (body) {
    outcome.results = std::vector<std::byte>(body->begin(), body->end());
  } else {
    outcome.results = tl::unexpected(body.error());
  }
  EXPECT_EQ(transport.outstanding(), 0u);
  return outcome;
}

void expect_error(const Outcome& outcome, int code, const std::string& word) {
  ASSERT_FALSE(outcome.results);
  const Error& error = outcome.results.error();
  EXPECT_EQ(error.code, code) << error.text;
  EXPECT_NE(error.text.find(word), std::string::npos) << error.text;
  EXPECT_NE(error.text.find("NFS GETATTR"), std::string::npos) << error.text;
  EXPECT_NE(error.text.find("program 100003 version 3"), std::string::npos) << error.text;
  EXPECT_NE(error.text.find("server:2049"), std::string::npos) << error.text;
}

TEST(SyncCaller, BytesOfCallAndResults) {
  FakeTransport transport([](ConstBytes call) { return accepted(call, XdrText().u64(77)); });
  SyncCaller caller(transport, config_with(2000));
  auto results = caller.call(100003, 3, 1, hex("0000000400000007"), 64);
  ASSERT_TRUE(results) << results.error().text;
  EXPECT_EQ(to_hex(*results), "000000000000004d");
  ASSERT_EQ(transport.calls().size(), 1u);
  EXPECT_EQ(to_hex(transport.calls()[0]),
            "10000001"
            "00000000"
            "00000002"
            "000186a3"
            "00000003"
            "00000001"
            "00000000"
            "00000000"
            "00000000"
            "00000000"
            "00000004"
            "00000007");
}

TEST(SyncCaller, ManyCallsInARow) {
  FakeTransport transport(
      [](ConstBytes call) { return accepted(call, XdrText().u32(load_be32(call.data() + 40))); });
  SyncCaller caller(transport, config_with(2000));
  for (uint32_t i = 0; i < 1000; i++) {
    auto results = caller.call(100003, 3, 1, XdrText().u32(i).bytes(), 64);
    ASSERT_TRUE(results);
    EXPECT_EQ(load_be32(results->data()), i);
  }
}

TEST(SyncCaller, OwnsItsTransport) {
  auto transport = std::make_unique<FakeTransport>(
      [](ConstBytes call) { return accepted(call, XdrText().u32(5)); });
  SyncCaller caller(std::move(transport), config_with(2000));
  EXPECT_TRUE(caller.call(100003, 3, 1, {}, 64));
}

TEST(SyncCaller, WaitsForADelayedReply) {
  const Outcome outcome = run([](ConstBytes call) {
    Script script = accepted(call, XdrText().u32(5));
    script.delay_ns = 50'000'000;
    return script;
  });
  ASSERT_TRUE(outcome.results);
  EXPECT_GE(outcome.took_ms, 50u);
  EXPECT_LT(outcome.took_ms, 1500u);
}

TEST(SyncCaller, EndsAtItsDeadline) {
  const Outcome outcome = run([](ConstBytes) { return Script{.lost = true}; }, 120);
  expect_error(outcome, ETIMEDOUT, "no reply within 120 ms");
  EXPECT_GE(outcome.took_ms, 120u);
  EXPECT_LT(outcome.took_ms, 1000u);
}

TEST(SyncCaller, EndsWhenItIsToldTo) {
  volatile bool stop = false;
  FakeTransport transport([&](ConstBytes) {
    stop = true;
    return Script{.lost = true};
  });
  SyncCallerConfig config = config_with(20'000);
  config.stop = &stop;
  SyncCaller caller(transport, config);
  const uint64_t begin = now_ns();
  const auto results = caller.call(100003, 3, 1, {}, 64);
  EXPECT_LT(now_ns() - begin, 5'000'000'000u);
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().code, EINTR);
  EXPECT_NE(results.error().text.find("server:2049: told to end while waiting for a reply"),
            std::string::npos)
      << results.error().text;
  EXPECT_EQ(transport.outstanding(), 0u);
}

TEST(SyncCaller, CallsAgainAfterATimeout) {
  int calls = 0;
  FakeTransport transport([&](ConstBytes call) {
    if (calls++ == 0) return Script{.lost = true};
    return accepted(call, XdrText().u32(9));
  });
  SyncCaller caller(transport, config_with(50));
  EXPECT_EQ(caller.call(100003, 3, 1, {}, 64).error().code, ETIMEDOUT);
  EXPECT_TRUE(caller.call(100003, 3, 1, {}, 64));
}

TEST(SyncCaller, RepliesToNobodyAreNamed) {
  const Outcome outcome = run([](ConstBytes) { return Script{.bad_xid = true}; }, 60);
  expect_error(outcome, ETIMEDOUT, "does not answer as an NFS server");
}

TEST(SyncCaller, APeerThatDropsConnectionsIsGivenUpEarly) {
  const Outcome outcome = run([](ConstBytes) { return Script{.drop_connection = true}; }, 20'000);
  expect_error(outcome, EPROTO, "does not answer as an NFS server");
  EXPECT_LT(outcome.took_ms, 2000u);
}

TEST(SyncCaller, OneDroppedConnectionIsNoError) {
  int calls = 0;
  const Outcome outcome = run([&](ConstBytes call) {
    if (calls++ == 0) return Script{.drop_connection = true};
    return accepted(call, XdrText().u32(5));
  });
  ASSERT_TRUE(outcome.results);
  EXPECT_EQ(outcome.retransmissions, 1u);
}

TEST(SyncCaller, TransportErrorsPassThrough) {
  Script script;
  script.error = Error{ECONNRESET, "server:2049 is gone"};
  const auto outcome = run([&](ConstBytes) { return script; });
  expect_error(outcome, ECONNRESET, "is gone");
}

TEST(SyncCaller, RepliesThatAreTooLong) {
  auto reply_of = [](uint32_t words) {
    return [words](ConstBytes call) {
      XdrText text;
      for (uint32_t i = 0; i < words; i++) text.u32(i);
      return accepted(call, text);
    };
  };
  EXPECT_TRUE(run(reply_of(16)).results);
  expect_error(run(reply_of(17)), EPROTO, "more than 64 bytes");
  expect_error(run(reply_of(1000)), EPROTO, "more than 64 bytes");
}

TEST(SyncCaller, ReplyHeadersInWords) {
  expect_error(run([](ConstBytes call) { return not_done(call, 2, 4, 4); }), EOPNOTSUPP,
               "version 4");
  expect_error(run([](ConstBytes call) { return not_done(call, 1); }), EOPNOTSUPP, "PROG_UNAVAIL");
  expect_error(run([](ConstBytes) {
                 Script script;
                 script.reply = hex("10000001 00000001 00000001 00000001 00000005");
                 return script;
               }),
               EACCES, "AUTH_TOOWEAK");
  expect_error(run([](ConstBytes) {
                 Script script;
                 script.reply = hex("10000001 00000000");
                 return script;
               }),
               EPROTO, "does not answer as an NFS server");
}

TEST(SyncCaller, NoFreeSlotAndNoRoom) {
  TransportConfig config;
  config.slots = 1;
  config.head_max = 64;
  FakeTransport transport([](ConstBytes call) { return accepted(call, {}); }, config);
  SyncCaller caller(transport, config_with(100));
  EXPECT_EQ(caller.call(100003, 3, 1, std::vector<std::byte>(28), 64).error().code, E2BIG);
  // The slot was given back.
  EXPECT_TRUE(caller.call(100003, 3, 1, std::vector<std::byte>(24), 64));
  const uint32_t taken = transport.acquire();
  EXPECT_EQ(caller.call(100003, 3, 1, {}, 64).error().code, ENOBUFS);
  transport.release(taken);
}

}  // namespace
}  // namespace nfsrdma
