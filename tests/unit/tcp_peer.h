// SPDX-License-Identifier: GPL-2.0-or-later
// A TCP transport and the server it talks to, in one thread: the test decides which bytes come,
// in which pieces, and when the server closes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nfs3_data.h"
#include "rpc_script.h"
#include "tcp_transport.h"

namespace nfsrdma::testing {

using Wire = std::vector<std::byte>;

inline Wire operator+(Wire one, const Wire& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

inline Wire part(const Wire& whole, size_t from, size_t until) {
  return {whole.begin() + static_cast<long>(from), whole.begin() + static_cast<long>(until)};
}

/// One fragment (RFC 5531 section 11).
inline Wire fragment(const Wire& bytes, bool last) {
  return XdrText().u32((last ? 0x80000000u : 0) | static_cast<uint32_t>(bytes.size())).bytes() +
         bytes;
}
inline Wire record(const Wire& bytes) {
  return fragment(bytes, true);
}

/// Bytes that tell their place.
inline std::string pattern(size_t length, uint32_t seed = 1) {
  std::string text(length, 0);
  for (char& c : text) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return text;
}

/// A successful reply to READ.
inline Wire read_reply(uint32_t xid, std::string_view data) {
  XdrText text;
  text.u32(xid).u32(1).u32(0).u32(0).u32(0).u32(0).u32(0).u32(0);
  return text.u32(static_cast<uint32_t>(data.size())).u32(0).opaque(data).bytes();
}

/// A server's socket. Waits at most 10 s for anything.
class TcpPeer {
 public:
  TcpPeer() {
    bind_to(0);
    listen_again();
  }
  ~TcpPeer() {
    close_connection();
    ::close(listener_);
  }

  /// Connects are refused from now on. The port stays ours: others test on this machine too.
  void stop_listening() {
    ::close(listener_);
    bind_to(port_);
  }
  void listen_again() { ASSERT_EQ(listen(listener_, 16), 0); }
  [[nodiscard]] uint16_t port() const { return port_; }

  /// True: somebody had connected.
  bool accept_now() {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const int fd = accept4(listener_, reinterpret_cast<sockaddr*>(&from), &length,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return false;
    close_connection();
    fd_ = fd;
    client_port_ = ntohs(from.sin_port);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    received_.clear();
    return true;
  }
  [[nodiscard]] uint16_t client_port() const { return client_port_; }

  void close_connection() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  /// As many as the socket takes.
  size_t send_some(ConstBytes bytes) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return sent < 0 ? 0 : static_cast<size_t>(sent);
  }
  void receive_some() {
    std::byte buffer[65536];
    for (ssize_t got; (got = recv(fd_, buffer, sizeof buffer, 0)) > 0;)
      received_.insert(received_.end(), buffer, buffer + got);
  }
  /// A whole record of one fragment from what was received; its bytes without the marker.
  bool take_record(Wire* to) {
    if (received_.size() < 4) return false;
    const uint32_t marker = load_be32(received_.data());
    EXPECT_TRUE(marker >> 31) << "the transport sends whole records";
    const size_t length = marker & 0x7fffffff;
    if (received_.size() < 4 + length) return false;
    *to = part(received_, 4, 4 + length);
    received_.erase(received_.begin(), received_.begin() + static_cast<long>(4 + length));
    return true;
  }
  [[nodiscard]] const Wire& received() const { return received_; }

 private:
  void bind_to(uint16_t port) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const int small = 64 * 1024;  // so that a peer that does not read is felt soon
    setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(port);
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    socklen_t length = sizeof at;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &length);
    port_ = ntohs(at.sin_port);
  }

  int listener_ = -1;
  int fd_ = -1;
  uint16_t port_ = 0;
  uint16_t client_port_ = 0;
  Wire received_;
};

class TcpTransportTest : public ::testing::Test, protected CallSink {
 protected:
  struct Ended {
    uint32_t slot;
    int error;
    std::string text;
    Wire head;
    uint32_t bulk_length;
    uint32_t retransmissions;
  };

  TransportConfig config() const {
    TransportConfig config;
    config.host = "127.0.0.1";
    config.port = peer_.port();
    config.reserved_port = ReservedPort::kNo;
    config.slots = 16;
    config.head_max = 256;
    config.bulk_max = 8u << 20;
    return config;
  }

  void open() { open(config()); }
  void open(const TransportConfig& config) {
    auto opened = TcpTransport::open(config);
    ASSERT_TRUE(opened) << opened.error().text;
    transport_ = std::move(*opened);
    transport_->set_sink(this);
    ASSERT_TRUE(peer_.accept_now());
    port_ = peer_.client_port();
  }

  void on_sent(uint32_t slot, uint64_t sent_ns) override {
    EXPECT_NE(sent_ns, 0u);
    sent_.push_back(slot);
  }
  void on_reply(uint32_t slot, const Reply& reply) override {
    ended_.push_back({slot,
                      reply.error != nullptr ? reply.error->code : 0,
                      reply.error != nullptr ? reply.error->text : "",
                      {reply.head.begin(), reply.head.end()},
                      reply.bulk_length,
                      reply.retransmissions});
    if (then_) then_(slot);
  }

  /// A call of 32 bytes, and its bulk. Returns the slot; the xid is in xid_[slot].
  uint32_t start(Bytes in = {}, ConstBytes out = {}) {
    const uint32_t slot = transport_->acquire();
    EXPECT_NE(slot, kNoSlot);
    xid_.resize(std::max<size_t>(xid_.size(), slot + 1));
    xid_[slot] = transport_->xid(slot);
    XdrWriter head(transport_->head(slot));
    head.u32(xid_[slot]);
    for (uint32_t i = 1; i < 8; i++) head.u32(i * 0x01010101);
    Call call;
    call.head_length = static_cast<uint32_t>(head.size());
    call.bulk_in = in;
    call.bulk_out = out;
    call.split = split_read_reply;
    transport_->submit(slot, call);
    return slot;
  }
  /// What start() puts on the wire, without the marker.
  Wire message(uint32_t xid, ConstBytes out = {}) const {
    XdrText text;
    text.u32(xid);
    for (uint32_t i = 1; i < 8; i++) text.u32(i * 0x01010101);
    Wire wire = text.bytes();
    wire.insert(wire.end(), out.begin(), out.end());
    while (wire.size() % 4 != 0) wire.push_back(std::byte{0});
    return wire;
  }

  /// Runs the transport until `done`, 10 s at most.
  ::testing::AssertionResult until(const std::function<bool()>& done, uint32_t pause_us = 200) {
    const uint64_t give_up = now_ns() + 10'000'000'000;
    while (!done()) {
      if (now_ns() > give_up) return ::testing::AssertionFailure() << "waited 10 s";
      transport_->progress();
      if (done()) break;
      usleep(pause_us);
    }
    return ::testing::AssertionSuccess();
  }
  void run_for(uint32_t ms) {
    const uint64_t end = now_ns() + uint64_t{ms} * 1'000'000;
    while (now_ns() < end) {
      transport_->progress();
      usleep(500);
    }
  }
  /// The next record that the server gets.
  Wire next_record() {
    Wire taken;
    EXPECT_TRUE(until([&] {
      peer_.receive_some();
      return peer_.take_record(&taken);
    }));
    return taken;
  }
  void send(const Wire& bytes) {
    size_t sent = 0;
    EXPECT_TRUE(until([&] {
      sent += peer_.send_some(ConstBytes(bytes).subspan(sent));
      return sent == bytes.size();
    }));
  }
  void wait_ended(size_t count) {
    ASSERT_TRUE(until([&] { return ended_.size() >= count; })) << ended_.size() << " of " << count;
  }
  void accept_again() {
    ASSERT_TRUE(until([&] { return peer_.accept_now(); }));
  }

  /// A READ whose reply is `reply(xid)`; the transport must end it well, with these data.
  void expect_read_works(const std::string& data = "in sync") {
    Wire buffer(data.size() + 8, std::byte{0xee});
    const size_t before = ended_.size();
    const uint32_t slot = start(Bytes(buffer).first(data.size()));
    transport_->flush();
    Wire got = next_record();
    for (int i = 0; i < 100 && got != message(xid_[slot]); i++)
      got = next_record();  // earlier ones
    ASSERT_EQ(to_hex(got), to_hex(message(xid_[slot])));
    send(record(read_reply(xid_[slot], data)));
    wait_ended(before + 1);
    expect_read(ended_.back(), slot, buffer, data);
  }
  /// `buffer` is eight canary bytes longer than the data.
  static void expect_read(const Ended& ended, uint32_t slot, const Wire& buffer,
                          std::string_view data) {
    EXPECT_EQ(ended.slot, slot);
    EXPECT_EQ(ended.error, 0) << ended.text;
    ASSERT_EQ(ended.bulk_length, data.size());
    EXPECT_TRUE(std::equal(data.begin(), data.end(), buffer.begin(), [](char c, std::byte b) {
      return std::byte(c) == b;
    })) << "data differ";
    EXPECT_EQ(ended.head.size(), 44u);
    for (size_t i = data.size(); i < buffer.size(); i++)
      ASSERT_EQ(buffer[i], std::byte{0xee}) << "written beyond the buffer";
  }

  TcpPeer peer_;
  std::unique_ptr<TcpTransport> transport_;
  uint16_t port_ = 0;
  std::vector<uint32_t> xid_;  // by slot, of the last call
  std::vector<uint32_t> sent_;
  std::vector<Ended> ended_;
  std::function<void(uint32_t)> then_;
};

}  // namespace nfsrdma::testing
