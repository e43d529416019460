// SPDX-License-Identifier: GPL-2.0-or-later
// Connection set-up (RFC 5044 section 7, RFC 6581): what is agreed, what is refused and in which
// words, and deadlines, on the client's side.
#include <gtest/gtest.h>

#include <algorithm>

#include "iwarp_raw_peer.h"

using namespace nfsrdma;
using namespace nfsrdma::test;

namespace {

// The fabric as client, a hand-made server.
class ClientSetup : public testing::Test {
 protected:
  void start(bool crc = true, uint32_t timeout_ms = 5'000) {
    end = std::make_unique<End>(IwarpOptions{crc, 0});
    end->connection = end->fabric->make_connection(end->config()).value();
    ConnectRequest request;
    request.peer = loopback(peer.listen());
    request.peer_name = "server.example";
    request.private_data = text_bytes("12345678");
    request.timeout_ms = timeout_ms;
    ASSERT_TRUE(end->connection->start_connect(request));
    EXPECT_EQ(end->connection->state(), ConnectionState::kConnecting);
    ASSERT_TRUE(until([&] { return peer.accept(); }));
    ASSERT_TRUE(until([&] {
      const auto got = peer.take(32);
      if (got) seen = *got;
      return got.has_value();
    }));
  }
  bool until(const std::function<bool()>& done) {
    return run_until(done, [&] { end->poll(); });
  }
  void expect_established() {
    ASSERT_TRUE(until([&] { return end->count(CompletionKind::kEstablished) == 1; }))
        << end->connection->error().text;
  }
  void expect_refused(int code, const std::string& words) {
    ASSERT_TRUE(until([&] { return end->count(CompletionKind::kDisconnected) == 1; }));
    EXPECT_EQ(end->count(CompletionKind::kEstablished), 0u);
    EXPECT_EQ(end->connection->error().code, code);
    const std::string& text = end->connection->error().text;
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_EQ(text.rfind("server.example (127.0.0.1:", 0), 0u) << text;
  }
  std::string agreed(const std::string& name) {
    for (const auto& [key, value] : end->connection->negotiated()) {
      if (key == name) return value;
    }
    return {};
  }

  RawPeer peer;
  std::unique_ptr<End> end;
  Octets seen;
};

TEST_F(ClientSetup, RequestIsRevisionTwoEnhanced) {
  start(false);
  Octets values = ird_ord(16, 16);
  for (char c : std::string("12345678")) values.push_back(static_cast<uint8_t>(c));
  EXPECT_EQ(seen, mpa(kRequestKey, 0x1002, values));
  EXPECT_EQ(peer.buffered(), 0u);  // nothing follows the request
}

TEST_F(ClientSetup, RequestAsksForCrc) {
  start(true);
  EXPECT_EQ(seen[16], 0x50);
}

TEST_F(ClientSetup, CrcAskedAndGranted) {
  start(true);
  peer.send(mpa(kReplyKey, 0x5002, ird_ord(16, 16)));
  expect_established();
  EXPECT_EQ(agreed("crc"), "on");
}

TEST_F(ClientSetup, CrcAskedByThePeerOnly) {
  start(false);
  peer.send(mpa(kReplyKey, 0x5002, ird_ord(16, 16)));
  expect_established();
  EXPECT_EQ(agreed("crc"), "on");
}

TEST_F(ClientSetup, CrcAskedByNobody) {
  start(false);
  peer.send(mpa(kReplyKey, 0x1002, ird_ord(16, 16)));
  expect_established();
  EXPECT_EQ(agreed("crc"), "off");
}

TEST_F(ClientSetup, ReplyByteByByteWithPrivateData) {
  start();
  Octets values = ird_ord(16, 16);
  for (char c : std::string("private")) values.push_back(static_cast<uint8_t>(c));
  for (uint8_t byte : mpa(kReplyKey, 0x5002, values)) {
    EXPECT_EQ(end->connection->state(), ConnectionState::kConnecting);
    peer.send({byte});
    for (int i = 0; i < 3; ++i) end->poll();
  }
  expect_established();
  const ConstBytes got = end->connection->peer_private_data();
  ASSERT_EQ(got.size(), 7u);
  EXPECT_EQ(std::memcmp(got.data(), "private", 7), 0);
}

TEST_F(ClientSetup, OrdIsCutToThePeersIrd) {
  start();
  peer.send(mpa(kReplyKey, 0x5002, ird_ord(3, 5)));
  expect_established();
  EXPECT_EQ(end->connection->limits().ord, 3u);
  EXPECT_EQ(end->connection->limits().ird, 16u);
}

TEST_F(ClientSetup, PeerThatReadsNothing) {
  start();
  peer.send(mpa(kReplyKey, 0x5002, ird_ord(0, 0)));
  expect_established();
  EXPECT_EQ(end->connection->limits().ord, 0u);
  EXPECT_FALSE(end->connection->post_read(0, end->span(0, 8), {1, 0}));
}

TEST_F(ClientSetup, PeersOrdAboveOurIrdIsTakenUpTo128) {
  start();
  peer.send(mpa(kReplyKey, 0x5002, ird_ord(16, 128)));
  expect_established();
  EXPECT_EQ(end->connection->limits().ird, 128u);
}

TEST_F(ClientSetup, PeersOrdAbove128IsRefusedWithTerminate) {
  start();
  peer.send(mpa(kReplyKey, 0x5002, ird_ord(16, 129)));
  expect_refused(EPROTO, "wants 129 Reads outstanding");
  std::optional<Octets> told;
  ASSERT_TRUE(until([&] { return (told = peer.next_ulpdu()).has_value(); }));
  ASSERT_GE(told->size(), 22u);
  EXPECT_EQ((*told)[18], 0x20);
  EXPECT_EQ((*told)[19], 0x06);
}

TEST_F(ClientSetup, Rejected) {
  start();
  Octets values = ird_ord(0, 0);
  values.push_back('n');
  values.push_back('o');
  peer.send(mpa(kReplyKey, 0x7002, values));
  expect_refused(ECONNREFUSED, "rejected the set-up");
  ASSERT_EQ(end->connection->peer_private_data().size(), 2u);
}

TEST_F(ClientSetup, RejectedAsSiwDoesIt) {
  start();
  peer.send(mpa(kReplyKey, 0x7002, {}));
  expect_refused(ECONNREFUSED, "rejected the set-up (asked with IRD 16, ORD 16");
}

TEST_F(ClientSetup, RevisionOne) {
  start();
  peer.send(mpa(kReplyKey, 0x6001, {}));
  expect_refused(EPROTONOSUPPORT, "speaks MPA revision 1; the enhanced set-up");
}

TEST_F(ClientSetup, RevisionTwoNotEnhanced) {
  start();
  peer.send(mpa(kReplyKey, 0x4002, {}));
  expect_refused(EPROTONOSUPPORT, "revision 2 without the enhanced set-up");
}

TEST_F(ClientSetup, Markers) {
  start();
  peer.send(mpa(kReplyKey, 0xd002, ird_ord(16, 16)));
  expect_refused(EPROTONOSUPPORT, "wants MPA markers");
}

TEST_F(ClientSetup, AnotherProtocol) {
  start();
  const std::string http = "HTTP/1.1 400 Bad Request\r\n\r\n";
  peer.send(Octets(http.begin(), http.end()));
  expect_refused(EPROTO, "is no iWARP one");
}

TEST_F(ClientSetup, RequestComesBack) {
  start();
  peer.send(seen);
  expect_refused(EPROTO, "not MPA");
}

TEST_F(ClientSetup, PrivateDataBeyondTheBound) {
  start();
  peer.send(mpa(kReplyKey, 0x5002, octets(513, 0)));
  expect_refused(EPROTO, "513 bytes of private data");
}

TEST_F(ClientSetup, EnhancedWithoutValues) {
  start();
  peer.send(mpa(kReplyKey, 0x5002, octets(3, 0)));
  expect_refused(EPROTO, "without IRD and ORD");
}

TEST_F(ClientSetup, ClosedInsteadOfAReply) {
  start();
  peer.close();
  expect_refused(ECONNREFUSED, "closed the connection instead of an MPA reply");
}

TEST_F(ClientSetup, ClosedWithinTheReply) {
  start();
  peer.send({'M', 'P', 'A'});
  peer.finish_sending();
  expect_refused(ECONNREFUSED, "closed the connection instead of an MPA reply");
}

TEST_F(ClientSetup, NoReplyInTime) {
  const uint64_t before = now_ns();
  start(true, 100);
  const uint64_t timer = end->connection->next_timer_ns();
  EXPECT_GT(timer, before);
  EXPECT_LE(timer, now_ns() + 100'000'000);
  expect_refused(ETIMEDOUT, "no MPA reply within 100 ms");
  EXPECT_GE(now_ns() - before, 100'000'000u);
}

TEST_F(ClientSetup, NothingListens) {
  end = std::make_unique<End>();
  end->connection = end->fabric->make_connection(end->config()).value();
  ConnectRequest request;
  {
    RawPeer gone;
    request.peer = loopback(gone.listen());
  }
  request.peer_name = "server.example";
  ASSERT_TRUE(end->connection->start_connect(request));
  expect_refused(ECONNREFUSED, "refused: no iWARP service listens on that port");
}

TEST_F(ClientSetup, CloseDuringSetupAndConnectAgain) {
  start();
  end->connection->close();
  EXPECT_EQ(end->connection->state(), ConnectionState::kIdle);
  EXPECT_EQ(end->connection->next_timer_ns(), UINT64_MAX);
  pollfd wait;
  EXPECT_TRUE(end->connection->prepare_wait(wait));
  EXPECT_EQ(wait.fd, -1);
  ASSERT_TRUE(until([&] { return peer.receive(); }));  // the peer sees the end
  peer.reset();
  ConnectRequest request;
  request.peer = loopback(peer.listen());
  ASSERT_TRUE(end->connection->start_connect(request));
  ASSERT_TRUE(until([&] { return peer.accept(); }));
  ASSERT_TRUE(until([&] { return peer.take(24).has_value(); }));
  peer.send(mpa(kReplyKey, 0x5002, ird_ord(16, 16)));
  expect_established();
}

TEST_F(ClientSetup, SourceAddressIsKept) {
  end = std::make_unique<End>();
  end->connection = end->fabric->make_connection(end->config()).value();
  ConnectRequest request;
  request.peer = loopback(peer.listen());
  request.local = loopback(0);
  reinterpret_cast<sockaddr_in&>(request.local).sin_addr.s_addr = htonl(0x7f000009);
  ASSERT_TRUE(end->connection->start_connect(request));
  ASSERT_TRUE(until([&] { return peer.accept(); }));
  EXPECT_EQ(end->connection->local_address().rfind("127.0.0.9:", 0), 0u);
}

TEST_F(ClientSetup, WhatCannotBeTriedFailsAtOnce) {
  end = std::make_unique<End>();
  end->connection = end->fabric->make_connection(end->config()).value();
  ConnectRequest request;
  EXPECT_EQ(end->connection->start_connect(request).error().code, EAFNOSUPPORT);
  request.peer = loopback(1);
  const std::vector<std::byte> large(kPrivateDataMax + 1);
  request.private_data = large;
  EXPECT_EQ(end->connection->start_connect(request).error().code, EINVAL);
  request.private_data = {};
  request.local = loopback(0);
  reinterpret_cast<sockaddr_in&>(request.local).sin_addr.s_addr = htonl(0xc0000201);
  EXPECT_EQ(end->connection->start_connect(request).error().code, EADDRNOTAVAIL);
  EXPECT_EQ(end->connection->state(), ConnectionState::kIdle);
}

// siw does not always look at the first FPDU: a Write without payload is sent while it is silent.
TEST_F(ClientSetup, SilentPeerIsWoken) {
  start();
  peer.send(mpa(kReplyKey, 0x5002, ird_ord(16, 16)));
  expect_established();
  EXPECT_EQ(end->connection->next_timer_ns(), UINT64_MAX);  // nothing was sent yet
  const LocalSpan call = end->span(0, 40);
  ASSERT_TRUE(end->connection->post_send(1, {&call, 1}));
  const uint64_t start_ns = now_ns();
  end->connection->ring();
  std::vector<uint64_t> woken;
  std::optional<Octets> got;
  ASSERT_TRUE(until([&] { return (got = peer.next_ulpdu()).has_value(); }));
  EXPECT_EQ((*got)[1], 0x43);
  while (woken.size() < 4) {
    ASSERT_TRUE(until([&] { return (got = peer.next_ulpdu()).has_value(); }));
    EXPECT_EQ(*got, tagged(kWrite, true, 0, 0, {}));
    woken.push_back(now_ns() - start_ns);
  }
  // 5, 15, 35, 75 ms after the call, at the earliest.
  for (size_t i = 0; i < 4; ++i) EXPECT_GE(woken[i], ((10u << i) - 5) * 1'000'000u);
  EXPECT_NE(end->connection->next_timer_ns(), UINT64_MAX);
  // Once it has spoken, never again.
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, octets(8, 1)));
  ASSERT_TRUE(until([&] { return end->count(CompletionKind::kReceive) == 1; }));
  EXPECT_EQ(end->connection->next_timer_ns(), UINT64_MAX);
  while (peer.next_ulpdu()) continue;
  const uint64_t quiet_until = now_ns() + 200'000'000;
  run_until([&] { return now_ns() > quiet_until; }, [&] { end->poll(); });
  EXPECT_FALSE(peer.next_ulpdu());
}

}  // namespace
