// SPDX-License-Identifier: GPL-2.0-or-later
// Connection set-up (RFC 5044 section 7, RFC 6581) on the server's side, both sides at once, and
// many at once.
#include <gtest/gtest.h>

#include <algorithm>

#include "iwarp_raw_peer.h"

using namespace nfsrdma;
using namespace nfsrdma::test;

namespace {

// The fabric as server, a hand-made client.
class ServerSetup : public testing::Test {
 protected:
  void listen(uint32_t half_open = 64, uint32_t timeout_ms = 5'000) {
    ListenConfig config;
    config.local = loopback(0);
    config.half_open_max = half_open;
    config.setup_timeout_ms = timeout_ms;
    listener = end.fabric->listen(config).value();
  }
  bool until(const std::function<bool()>& done) {
    return run_until(done, [&] {
      if (!end.connection) end.connection = listener->poll();
      end.poll();
    });
  }
  void expect_answer(const Octets& answer) {
    std::optional<Octets> got;
    ASSERT_TRUE(until([&] { return (got = peer.take(answer.size())).has_value(); }));
    EXPECT_EQ(*got, answer);
  }
  void expect_dropped() {
    ASSERT_TRUE(until([&] { return peer.receive(); }));
    EXPECT_EQ(end.connection, nullptr);
  }

  End end;
  RawPeer peer;
  std::unique_ptr<Listener> listener;
};

TEST_F(ServerSetup, RequestAndReply) {
  listen();
  peer.connect(listener->port());
  Octets values = ird_ord(8, 4);
  values.push_back('x');
  peer.send(mpa(kRequestKey, 0x1002, values));
  ASSERT_TRUE(until([&] { return end.connection != nullptr; }));
  EXPECT_EQ(end.connection->state(), ConnectionState::kRequested);
  ASSERT_EQ(end.connection->peer_private_data().size(), 1u);
  EXPECT_EQ(end.connection->peer_private_data()[0], std::byte{'x'});
  EXPECT_EQ(end.connection->peer_address().rfind("127.0.0.1:", 0), 0u);
  ASSERT_TRUE(end.connection->accept(*end.fabric, end.config(), text_bytes("yz")));
  Octets reply = ird_ord(16, 8);  // our ORD is cut to the peer's IRD
  reply.push_back('y');
  reply.push_back('z');
  expect_answer(mpa(kReplyKey, 0x5002, reply));  // CRC: the server asks for it
  ASSERT_TRUE(until([&] { return end.count(CompletionKind::kEstablished) == 1; }));
  EXPECT_EQ(end.connection->limits().ord, 8u);
}

TEST_F(ServerSetup, AsTheLinuxClientAsks) {
  listen();
  peer.connect(listener->port());
  peer.send(mpa(kRequestKey, 0x1002, ird_ord(128, 0)));
  ASSERT_TRUE(until([&] { return end.connection != nullptr; }));
  ASSERT_TRUE(end.connection->accept(*end.fabric, end.config(), {}));
  expect_answer(mpa(kReplyKey, 0x5002, ird_ord(16, 16)));
}

TEST_F(ServerSetup, NothingIsSentBeforeTheFirstFpdu) {
  listen();
  peer.connect(listener->port());
  peer.send(mpa(kRequestKey, 0x5002, ird_ord(16, 16)));
  ASSERT_TRUE(until([&] { return end.connection != nullptr; }));
  ASSERT_TRUE(end.connection->accept(*end.fabric, end.config(), {}));
  ASSERT_TRUE(until([&] { return peer.take(24).has_value(); }));
  ASSERT_TRUE(until([&] { return end.count(CompletionKind::kEstablished) == 1; }));
  ASSERT_TRUE(end.connection->post_send(1, {}));
  end.connection->ring();
  const uint64_t quiet_until = now_ns() + 50'000'000;
  run_until([&] { return now_ns() > quiet_until; }, [&] { end.poll(); });
  peer.receive();
  EXPECT_EQ(peer.buffered(), 0u);
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, octets(8, 1)));
  std::optional<Octets> got;
  ASSERT_TRUE(until([&] { return (got = peer.next_ulpdu()).has_value(); }));
  EXPECT_EQ(*got, untagged(kSend, true, 0, 1, 0, {}));
}

TEST_F(ServerSetup, RejectedWithPrivateData) {
  listen();
  peer.connect(listener->port());
  peer.send(mpa(kRequestKey, 0x1002, ird_ord(8, 4)));
  ASSERT_TRUE(until([&] { return end.connection != nullptr; }));
  end.connection->reject(text_bytes("no"));
  EXPECT_EQ(end.connection->state(), ConnectionState::kIdle);
  Octets values = ird_ord(0, 0);
  values.push_back('n');
  values.push_back('o');
  std::optional<Octets> got;
  ASSERT_TRUE(run_until([&] { return (got = peer.take(26)).has_value(); }, [] {}));
  EXPECT_EQ(*got, mpa(kReplyKey, 0x3002, values));
  EXPECT_TRUE(run_until([&] { return peer.receive(); }, [] {}));
}

TEST_F(ServerSetup, RevisionOneIsRejectedAsSuch) {
  listen();
  peer.connect(listener->port());
  peer.send(mpa(kRequestKey, 0x4001, {}));
  expect_answer(mpa(kReplyKey, 0x6001, {}));
  expect_dropped();
}

TEST_F(ServerSetup, NotEnhancedIsRejected) {
  listen();
  peer.connect(listener->port());
  peer.send(mpa(kRequestKey, 0x0002, {}));
  expect_answer(mpa(kReplyKey, 0x2002, {}));
  expect_dropped();
}

TEST_F(ServerSetup, MarkersAreRejected) {
  listen();
  peer.connect(listener->port());
  peer.send(mpa(kRequestKey, 0x9002, ird_ord(1, 1)));
  expect_answer(mpa(kReplyKey, 0x3002, ird_ord(0, 0)));
  expect_dropped();
}

TEST_F(ServerSetup, RubbishIsDropped) {
  listen();
  peer.connect(listener->port());
  peer.send({'G', 'E', 'T', ' '});
  expect_dropped();
}

TEST_F(ServerSetup, TooMuchPrivateDataIsDropped) {
  listen();
  peer.connect(listener->port());
  peer.send(mpa(kRequestKey, 0x1002, octets(513, 0)));
  expect_dropped();
}

TEST_F(ServerSetup, SlowRequestIsDroppedAtItsDeadline) {
  listen(64, 80);
  peer.connect(listener->port());
  const uint64_t before = now_ns();
  peer.send({'M', 'P', 'A'});
  expect_dropped();
  EXPECT_GE(now_ns() - before, 70'000'000u);
}

TEST_F(ServerSetup, HalfOpenSetupsAreBoundedAndMakeRoom) {
  listen(2, 150);
  RawPeer silent[2];
  for (RawPeer& one : silent) one.connect(listener->port());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(listener->poll(), nullptr);
  peer.connect(listener->port());
  peer.send(mpa(kRequestKey, 0x1002, ird_ord(8, 4)));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(listener->poll(), nullptr);
  EXPECT_NE(listener->next_timer_ns(), UINT64_MAX);
  ASSERT_TRUE(until([&] { return end.connection != nullptr; }));
}

TEST_F(ServerSetup, ListenerSleepsOnOneDescriptor) {
  listen();
  pollfd wait;
  ASSERT_TRUE(listener->prepare_wait(wait));
  EXPECT_EQ(::poll(&wait, 1, 0), 0);
  EXPECT_EQ(listener->next_timer_ns(), UINT64_MAX);
  peer.connect(listener->port());
  EXPECT_EQ(::poll(&wait, 1, 5000), 1);
  EXPECT_EQ(listener->poll(), nullptr);
  EXPECT_EQ(::poll(&wait, 1, 0), 0);
  peer.send(mpa(kRequestKey, 0x1002, ird_ord(8, 4)));
  EXPECT_EQ(::poll(&wait, 1, 5000), 1);
  EXPECT_NE(listener->poll(), nullptr);
}

// Peer-to-peer set-ups (RFC 6581 section 9): offered forms of RTR, and the one that is chosen.
struct RtrCase {
  uint32_t ird_flags, ord_flags;
  uint32_t chosen;
};
class ReadyToReceive : public ServerSetup, public testing::WithParamInterface<RtrCase> {};

TEST_P(ReadyToReceive, EstablishedWhenItHasCome) {
  listen();
  peer.connect(listener->port());
  peer.send(mpa(kRequestKey, 0x5002,
                ird_ord(0x8000 | GetParam().ird_flags | 8, GetParam().ord_flags | 4)));
  ASSERT_TRUE(until([&] { return end.connection != nullptr; }));
  ASSERT_TRUE(end.connection->accept(*end.fabric, end.config(), {}));
  expect_answer(mpa(kReplyKey, 0x5002, ird_ord(0x8000 | 16, GetParam().chosen | 8)));
  for (int i = 0; i < 20; ++i) end.poll();
  EXPECT_EQ(end.count(CompletionKind::kEstablished), 0u);
  EXPECT_EQ(end.connection->state(), ConnectionState::kConnecting);
  if (GetParam().chosen == 0x4000) {
    peer.send_fpdu(read_request(1, 1, 0, 0, 1, 0));
    std::optional<Octets> got;
    ASSERT_TRUE(until([&] { return (got = peer.next_ulpdu()).has_value(); }));
    EXPECT_EQ(*got, tagged(kReadResp, true, 1, 0, {}));
  } else {
    peer.send_fpdu(tagged(kWrite, true, 1, 0, {}));
  }
  ASSERT_TRUE(until([&] { return end.count(CompletionKind::kEstablished) == 1; }));
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, octets(8, 1)));
  ASSERT_TRUE(until([&] { return end.count(CompletionKind::kReceive) == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Forms, ReadyToReceive,
                         testing::Values(RtrCase{0, 0x8000, 0x8000}, RtrCase{0, 0x4000, 0x4000},
                                         RtrCase{0, 0xc000, 0x8000}, RtrCase{0x4000, 0, 0x8000},
                                         RtrCase{0x4000, 0x4000, 0x4000}));

TEST_F(ServerSetup, ReadyToReceiveThatNeverComes) {
  listen(64, 100);
  peer.connect(listener->port());
  peer.send(mpa(kRequestKey, 0x5002, ird_ord(0x8000 | 8, 0x8000)));
  ASSERT_TRUE(until([&] { return end.connection != nullptr; }));
  ASSERT_TRUE(end.connection->accept(*end.fabric, end.config(), {}));
  EXPECT_NE(end.connection->next_timer_ns(), UINT64_MAX);
  ASSERT_TRUE(until([&] { return end.count(CompletionKind::kDisconnected) == 1; }));
  EXPECT_NE(end.connection->error().text.find("no ready-to-receive message"), std::string::npos);
}

TEST_F(ServerSetup, GoneBeforeItsReadyToReceive) {
  listen();
  peer.connect(listener->port());
  peer.send(mpa(kRequestKey, 0x5002, ird_ord(0x8000 | 8, 0x8000)));
  ASSERT_TRUE(until([&] { return end.connection != nullptr; }));
  ASSERT_TRUE(end.connection->accept(*end.fabric, end.config(), {}));
  peer.finish_sending();
  ASSERT_TRUE(until([&] { return end.count(CompletionKind::kDisconnected) == 1; }));
  EXPECT_EQ(end.connection->error().code, ECONNRESET);
}

TEST(Setup, OneHundredAndTwentyEightConnectAtOnce) {
  constexpr int kCount = 128;
  End server, client;
  ListenConfig listen;
  listen.local = loopback(0);
  auto listener = server.fabric->listen(listen).value();
  std::vector<std::unique_ptr<Connection>> clients, servers;
  for (int i = 0; i < kCount; ++i) {
    clients.push_back(client.fabric->make_connection(client.config()).value());
    ConnectRequest request;
    request.peer = loopback(listener->port());
    ASSERT_TRUE(clients.back()->start_connect(request));
  }
  size_t established = 0, received = 0;
  ASSERT_TRUE(run_until([&] { return established == kCount && received == kCount; },
                        [&] {
                          while (auto one = listener->poll()) {
                            ASSERT_TRUE(one->accept(*server.fabric, server.config(), {}));
                            servers.push_back(std::move(one));
                          }
                          Completion some[4];
                          for (auto& one : clients) {
                            for (uint32_t n = one->poll(some); n != 0; --n) {
                              ASSERT_NE(some[n - 1].kind, CompletionKind::kDisconnected)
                                  << one->error().text;
                              if (some[n - 1].kind != CompletionKind::kEstablished) continue;
                              ++established;
                              ASSERT_TRUE(one->post_send(0, {}));
                              one->ring();
                            }
                          }
                          for (auto& one : servers) {
                            for (uint32_t n = one->poll(some); n != 0; --n) {
                              received += some[n - 1].kind == CompletionKind::kReceive ? 1 : 0;
                            }
                          }
                        }))
      << established << " established, " << received << " heard";
}

TEST(Setup, Ipv6) {
  End server, client;
  ListenConfig listen;
  auto& local = reinterpret_cast<sockaddr_in6&>(listen.local);
  local.sin6_family = AF_INET6;
  local.sin6_addr = in6addr_loopback;
  auto listener = server.fabric->listen(listen);
  ASSERT_TRUE(listener) << listener.error().text;
  ConnectRequest request;
  request.peer = listen.local;
  reinterpret_cast<sockaddr_in6&>(request.peer).sin6_port = htons((*listener)->port());
  client.connection = client.fabric->make_connection(client.config()).value();
  ASSERT_TRUE(client.connection->start_connect(request));
  ASSERT_TRUE(run_until([&] { return client.count(CompletionKind::kEstablished) == 1; },
                        [&] {
                          if (!server.connection) {
                            server.connection = (*listener)->poll();
                            if (server.connection) {
                              EXPECT_TRUE(
                                  server.connection->accept(*server.fabric, server.config(), {}));
                            }
                          }
                          client.poll();
                          server.poll();
                        }));
  EXPECT_EQ(client.connection->peer_address(), "[::1]:" + std::to_string((*listener)->port()));
}

TEST(Setup, ListeningTwiceOnAPortSaysSo) {
  End server;
  ListenConfig listen;
  listen.local = loopback(0);
  auto first = server.fabric->listen(listen).value();
  listen.local = loopback(first->port());
  const auto second = server.fabric->listen(listen);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, EADDRINUSE);
  EXPECT_NE(second.error().text.find("127.0.0.1:"), std::string::npos);
}

TEST(Setup, ConfigurationIsChecked) {
  End end;
  ConnectionConfig config = end.config();
  config.ird = 0;
  EXPECT_FALSE(end.fabric->make_connection(config));
  config = end.config();
  config.ord = 129;
  EXPECT_FALSE(end.fabric->make_connection(config));
  config = end.config();
  config.send_depth = 0;
  EXPECT_FALSE(end.fabric->make_connection(config));
  config = end.config();
  config.receive_count += 1;
  EXPECT_FALSE(end.fabric->make_connection(config));
  config = end.config();
  config.receive_region = kNoRegion;
  EXPECT_FALSE(end.fabric->make_connection(config));
  EXPECT_FALSE(end.fabric->register_memory({}, Access::kNone));
}

}  // namespace
