// SPDX-License-Identifier: GPL-2.0-or-later
// One end of the fabric, as client or as server, connected to a RawPeer; and what must be true
// after the peer has done wrong.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "ddp.h"
#include "iwarp_raw_peer.h"

namespace nfsrdma::test {

struct Role {
  const char* name;
  bool client;
  bool crc;
};

class Hostile : public testing::TestWithParam<Role> {
 protected:
  static constexpr uint32_t kKeyAt = 1000;  // what the peer may use lies here in `victim.data`
  static constexpr uint32_t kKeyBytes = 100'000;

  Hostile() : victim({GetParam().crc, 0}) { peer.crc = GetParam().crc; }

  void SetUp() override {
    GetParam().client ? connect_as_client() : connect_as_server();
    if (HasFatalFailure()) return;
    victim.log.clear();
    victim.data.fill(77);
    write_key = bind(Access::kRemoteWrite);
    read_key = bind(Access::kRemoteRead);
  }
  void TearDown() override {
    EXPECT_TRUE(victim.data.guards_whole());
    EXPECT_TRUE(victim.receives.guards_whole());
  }

  uint32_t bind(Access access) {
    return victim.connection->bind_key(victim.region, victim.data.span(kKeyAt, kKeyBytes), access)
        .value()
        .key;
  }

  void connect_as_client() {
    ConnectRequest request;
    request.peer = loopback(peer.listen());
    victim.connection = victim.fabric->make_connection(victim.config()).value();
    ASSERT_TRUE(victim.connection->start_connect(request));
    ASSERT_TRUE(until([&] { return peer.accept(); }));
    ASSERT_TRUE(until([&] { return peer.take(24).has_value(); }));
    peer.send(mpa(kReplyKey, peer.crc ? 0x5002 : 0x1002, ird_ord(16, 16)));
    ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kEstablished) == 1; }));
  }

  void connect_as_server() {
    ListenConfig config;
    config.local = loopback(0);
    listener = victim.fabric->listen(config).value();
    peer.connect(listener->port());
    peer.send(mpa(kRequestKey, peer.crc ? 0x5002 : 0x1002, ird_ord(16, 16)));
    ASSERT_TRUE(until([&] {
      victim.connection = listener->poll();
      return victim.connection != nullptr;
    }));
    ASSERT_TRUE(victim.connection->accept(*victim.fabric, victim.config(), {}));
    ASSERT_TRUE(until([&] { return peer.take(24).has_value(); }));
    ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kEstablished) == 1; }));
  }

  bool until(const std::function<bool()>& done) {
    return run_until(done, [&] { victim.poll(); });
  }

  /// The peer has done wrong: the connection has ended with `words`, the peer was told `code`, and
  /// no byte of the victim's data has changed.
  void expect_end(const std::string& words, iwarp::TerminateCode code) {
    expect_disconnected(words);
    if (HasFatalFailure()) return;
    std::optional<Octets> last;
    ASSERT_TRUE(run_until(
        [&] {
          while (const auto ulpdu = peer.next_ulpdu()) last = ulpdu;
          return peer.receive();
        },
        [] {}));
    ASSERT_TRUE(last) << "no Terminate";
    ASSERT_GE(last->size(), 22u);
    EXPECT_EQ((*last)[0], 0x41);
    EXPECT_EQ((*last)[1], 0x47);
    EXPECT_EQ(get32(*last, 6), 2u);   // queue
    EXPECT_EQ(get32(*last, 10), 1u);  // message sequence number
    EXPECT_EQ(get32(*last, 14), 0u);  // message offset
    const iwarp::TerminateCode told{static_cast<uint8_t>((*last)[18] >> 4),
                                    static_cast<uint8_t>((*last)[18] & 15), (*last)[19]};
    EXPECT_EQ(told, code) << iwarp::to_string(told);
    expect_untouched();
  }
  void expect_disconnected(const std::string& words) {
    ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kDisconnected) == 1; }));
    EXPECT_NE(victim.connection->error().text.find(words), std::string::npos)
        << victim.connection->error().text;
    EXPECT_NE(victim.connection->error().code, 0);
    EXPECT_EQ(victim.connection->state(), ConnectionState::kFailed);
    EXPECT_FALSE(victim.connection->post_send(0, {}));
    // Nothing follows.
    const size_t reported = victim.log.size();
    for (int i = 0; i < 10; ++i) victim.poll();
    EXPECT_EQ(victim.log.size(), reported);
  }
  void expect_untouched() {
    for (size_t i = 0; i < kDataBytes; ++i) {
      ASSERT_EQ(victim.data.data()[i], Arena::pattern(77, i)) << i;
    }
  }

  End victim;
  RawPeer peer;
  std::unique_ptr<Listener> listener;
  uint32_t write_key = 0;
  uint32_t read_key = 0;
};

inline std::string role_name(const testing::TestParamInfo<Role>& info) {
  return info.param.name;
}
inline auto roles() {
  return testing::Values(Role{"ClientCrc", true, true}, Role{"ClientPlain", true, false},
                         Role{"ServerCrc", false, true}, Role{"ServerPlain", false, false});
}

}  // namespace nfsrdma::test
