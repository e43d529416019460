// SPDX-License-Identifier: GPL-2.0-or-later
// The first connection of the TCP transport: refused, hanging, ended by the user.
#include <thread>

#include "tcp_peer.h"

namespace nfsrdma::testing {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(TcpConnect, AClosedPortIsRefused) {
  TcpPeer peer;
  peer.stop_listening();
  const uint16_t port = peer.port();
  TransportConfig config;
  config.host = "127.0.0.1";
  config.port = port;
  const auto opened = TcpTransport::open(config);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ECONNREFUSED);
  EXPECT_NE(opened.error().text.find("127.0.0.1:" + std::to_string(port)), std::string::npos);
}

// A listener whose queue is full drops further SYNs.
class FullListener {
 public:
  FullListener() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_.fd(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(listen(listener_.fd(), 0), 0);
    socklen_t length = sizeof at;
    getsockname(listener_.fd(), reinterpret_cast<sockaddr*>(&at), &length);
    for (int i = 0; i < 4; i++) {
      fillers_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      connect(fillers_.back().fd(), reinterpret_cast<sockaddr*>(&at), sizeof at);
    }
    config.host = "127.0.0.1";
    config.port = ntohs(at.sin_port);
    config.reserved_port = ReservedPort::kNo;
  }
  TransportConfig config;

 private:
  Socket listener_;
  std::vector<Socket> fillers_;
};

TEST(TcpConnect, AConnectThatHangsEndsAtItsDeadline) {
  FullListener server;
  server.config.connect_timeout_ms = 1200;
  const uint64_t begin = now_ns();
  const auto opened = TcpTransport::open(server.config);
  const uint64_t waited = now_ns() - begin;
  EXPECT_GE(waited, 1000 * kMs);
  EXPECT_LT(waited, 4000 * kMs);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ETIMEDOUT);
  EXPECT_NE(opened.error().text.find("within 1 s"), std::string::npos) << opened.error().text;
}

TEST(TcpConnect, AConnectThatHangsEndsWhenItIsToldTo) {
  FullListener server;
  volatile bool stop = false;
  server.config.connect_timeout_ms = 60'000;
  server.config.stop = &stop;
  std::thread user([&stop] {
    usleep(20'000);
    stop = true;
  });
  const uint64_t begin = now_ns();
  const auto opened = TcpTransport::open(server.config);
  user.join();
  EXPECT_LT(now_ns() - begin, 10'000 * kMs);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, EINTR);
  EXPECT_NE(opened.error().text.find("told to end while connecting to 127.0.0.1:"),
            std::string::npos)
      << opened.error().text;
}

TEST(TcpConnect, SlotsAreBounded) {
  TransportConfig config;
  config.slots = 0;
  EXPECT_FALSE(TcpTransport::open(config));
  config.slots = kSlotsMax + 1;
  EXPECT_FALSE(TcpTransport::open(config));
}

}  // namespace
}  // namespace nfsrdma::testing
