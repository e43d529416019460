// SPDX-License-Identifier: GPL-2.0-or-later
// For tests of the iwarp fabric: guarded memory, two connected ends driven by one thread, and
// bounds on what one system call sends or receives (iwarp_shim.cc).
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "iwarp_fabric.h"
#include "transport.h"

namespace nfsrdma::test {

/// Most bytes that the next system calls take; 0: no bound. Reset by ~Shim.
struct Shim {
  static size_t recv_max;
  static size_t send_max;
  Shim(size_t recv, size_t send) {
    recv_max = recv;
    send_max = send;
  }
  ~Shim() { recv_max = send_max = 0; }
};

/// Memory between two guards that must never change.
class Arena {
 public:
  static constexpr size_t kGuard = 4096;
  static constexpr auto kCanary = std::byte{0xc5};
  explicit Arena(size_t bytes) : all_(bytes + 2 * kGuard, kCanary), bytes_(bytes) {
    std::memset(data(), 0, bytes);
  }
  std::byte* data() { return all_.data() + kGuard; }
  Bytes span() { return {data(), bytes_}; }
  Bytes span(size_t offset, size_t bytes) { return {data() + offset, bytes}; }
  bool guards_whole() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (all_[i] != kCanary || all_[kGuard + bytes_ + i] != kCanary) return false;
    }
    return true;
  }
  void fill(uint32_t seed) { fill(seed, bytes_); }
  void fill(uint32_t seed, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) data()[i] = pattern(seed, i);
  }
  static std::byte pattern(uint32_t seed, size_t i) {
    return static_cast<std::byte>((i * 2654435761u + seed * 40503u + (i >> 8)) >> 7);
  }

 private:
  std::vector<std::byte> all_;
  size_t bytes_;
};

inline sockaddr_storage loopback(uint16_t port) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in&>(storage);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return storage;
}

inline ConstBytes text_bytes(const char* text) {
  return std::as_bytes(std::span(text, std::strlen(text)));
}

constexpr uint32_t kReceives = 32;
constexpr uint32_t kReceiveSize = 4096;
constexpr uint32_t kDataBytes = (1u << 20) + 4096;

/// A fabric with receive buffers and data memory, and at most one connection.
struct End {
  explicit End(IwarpOptions options = {},
               Access access = Access::kRemoteRead | Access::kRemoteWrite)
      : fabric(make_iwarp_fabric(options)) {
    receive_region = fabric->register_memory(receives.span(), Access::kLocalWrite).value();
    region = fabric->register_memory(data.span(), access | Access::kLocalWrite).value();
  }

  ConnectionConfig config() const {
    ConnectionConfig c;
    c.send_depth = 64;
    c.read_depth = 256;
    c.key_count = 16;
    c.receive_memory = const_cast<Arena&>(receives).span();
    c.receive_region = receive_region;
    c.receive_count = kReceives;
    c.receive_size = kReceiveSize;
    c.ird = ird;
    c.ord = ord;
    return c;
  }

  LocalSpan span(size_t offset, size_t length) {
    return {data.data() + offset, static_cast<uint32_t>(length), region};
  }
  RemoteMemory remote(size_t offset) const {
    return fabric->remote_memory(region, const_cast<Arena&>(data).data() + offset);
  }
  ConstBytes received(const Completion& c) {
    return {receives.data() + size_t{c.buffer} * kReceiveSize, c.bytes};
  }

  /// Polls once; completions are appended to `log`.
  void poll() {
    if (!connection) return;
    Completion some[8];
    const uint32_t count = connection->poll(some);
    log.insert(log.end(), some, some + count);
  }
  size_t count(CompletionKind kind) const {
    size_t n = 0;
    for (const Completion& c : log) n += c.kind == kind ? 1 : 0;
    return n;
  }
  const Completion* last(CompletionKind kind) const {
    for (auto c = log.rbegin(); c != log.rend(); ++c) {
      if (c->kind == kind) return &*c;
    }
    return nullptr;
  }

  uint32_t ird = 16, ord = 16;
  Arena receives{size_t{kReceives} * kReceiveSize};
  Arena data{kDataBytes};
  std::unique_ptr<Fabric> fabric;
  RegionId receive_region = 0, region = 0;
  std::unique_ptr<Connection> connection;
  std::vector<Completion> log;
};

/// Runs `step` until `done` or five seconds have passed.
inline bool run_until(const std::function<bool()>& done, const std::function<void()>& step) {
  const uint64_t end = now_ns() + 5'000'000'000u;
  while (!done()) {
    if (now_ns() > end) return false;
    step();
  }
  return true;
}

struct PairOptions {
  IwarpOptions client;
  IwarpOptions server;
};

struct Pair {
  explicit Pair(const PairOptions& options = {}) : client(options.client), server(options.server) {}

  void connect() {
    ListenConfig listen;
    listen.local = loopback(0);
    listener = server.fabric->listen(listen).value();
    client.connection = client.fabric->make_connection(client.config()).value();
    ConnectRequest request;
    request.peer = loopback(listener->port());
    request.private_data = text_bytes("request");
    ASSERT_TRUE(client.connection->start_connect(request));
    ASSERT_TRUE(until([&] {
      if (!server.connection) {
        server.connection = listener->poll();
        if (server.connection) {
          EXPECT_EQ(server.connection->state(), ConnectionState::kRequested);
          EXPECT_TRUE(
              server.connection->accept(*server.fabric, server.config(), text_bytes("reply")));
        }
      }
      return client.connection->state() == ConnectionState::kEstablished &&
             client.count(CompletionKind::kEstablished) == 1 &&
             server.count(CompletionKind::kEstablished) == 1;
    })) << client.connection->error().text;
    client.log.clear();
    server.log.clear();
    hello();
  }

  /// The client's first Send: only after it may a server send (RFC 5044 section 7.1.2).
  void hello() {
    ASSERT_TRUE(client.connection->post_send(0, {}, 0));
    client.connection->ring();
    ASSERT_TRUE(until([&] { return server.count(CompletionKind::kReceive) == 1; }));
    ASSERT_TRUE(server.connection->post_receive(server.log.back().buffer));
    ASSERT_TRUE(until([&] { return client.count(CompletionKind::kSendDone) == 1; }));
    client.log.clear();
    server.log.clear();
  }

  bool until(const std::function<bool()>& done) {
    return run_until(done, [&] {
      client.poll();
      server.poll();
    });
  }

  void expect_guards() {
    for (End* end : {&client, &server}) {
      EXPECT_TRUE(end->receives.guards_whole());
      EXPECT_TRUE(end->data.guards_whole());
    }
  }

  End client;
  End server;
  std::unique_ptr<Listener> listener;
};

}  // namespace nfsrdma::test
