// SPDX-License-Identifier: GPL-2.0-or-later
#include "portmap.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "rpc_script.h"
#include "sync_caller.h"

namespace nfsrdma {
namespace {

using testing::accepted;
using testing::FakeTransport;
using testing::not_done;
using testing::Script;
using testing::XdrText;

Result<uint16_t> ask(const FakeTransport::Answer& answer, std::string* call = nullptr) {
  FakeTransport transport(answer);
  SyncCallerConfig config;
  config.server = "host:111";
  config.credential = Credential::none();
  config.call_timeout_ms = 100;
  SyncCaller caller(transport, config);
  auto port = portmap_getport(caller, "host", 100005, 3);
  if (call != nullptr) *call = testing::to_hex(transport.calls().at(0));
  return port;
}

TEST(Portmap, Getport) {
  std::string call;
  auto port = ask([](ConstBytes bytes) { return accepted(bytes, XdrText().u32(20048)); }, &call);
  ASSERT_TRUE(port) << port.error().text;
  EXPECT_EQ(*port, 20048);
  // RFC 1833 section 3: program 100000 version 2 procedure 3; prog, vers, prot 6, port 0.
  EXPECT_EQ(call,
            "10000001"
            "00000000"
            "00000002"
            "000186a0"
            "00000002"
            "00000003"
            "00000000"
            "00000000"
            "00000000"
            "00000000"
            "000186a5"
            "00000003"
            "00000006"
            "00000000");
}

TEST(Portmap, NotRegisteredIsPortZero) {
  auto port = ask([](ConstBytes bytes) { return accepted(bytes, XdrText().u32(0)); });
  ASSERT_TRUE(port);
  EXPECT_EQ(*port, 0);
}

TEST(Portmap, ErrorsNameTheWayRound) {
  const FakeTransport::Answer answers[] = {
      [](ConstBytes bytes) { return accepted(bytes, XdrText().u32(65536)); },
      [](ConstBytes bytes) { return accepted(bytes, {}); },
      [](ConstBytes bytes) { return not_done(bytes, 1); },
      [](ConstBytes) { return Script{.lost = true}; },
  };
  for (const auto& answer : answers) {
    auto port = ask(answer);
    ASSERT_FALSE(port);
    for (const char* word : {"rpcbind", "port 111", "nfsport=", "mountport=", "host"}) {
      EXPECT_NE(port.error().text.find(word), std::string::npos) << port.error().text;
    }
  }
}

}  // namespace
}  // namespace nfsrdma
