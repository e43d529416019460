// SPDX-License-Identifier: GPL-2.0-or-later
// For tests of the verbs fabric on a device of this machine: guarded memory, and two connected ends
// that one thread drives. The device is the one that has the address of $VERBS_ADDRESS.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "transport.h"
#include "verbs_fabric.h"

namespace nfsrdma::test {

constexpr size_t kGuard = 4096;
constexpr auto kCanary = std::byte{0xc5};
constexpr uint32_t kReceives = 32;
constexpr uint32_t kReceiveSize = 4096;
constexpr uint32_t kDataBytes = (1u << 20) + 4096;
constexpr uint32_t kSendDepth = 64;

inline std::byte pattern(uint32_t seed, size_t i) {
  return static_cast<std::byte>((i * 2654435761u + seed * 40503u + (i >> 8)) >> 7);
}

class Arena {
 public:
  explicit Arena(size_t bytes) : all_(bytes + 2 * kGuard, kCanary), bytes_(bytes) {
    std::memset(data(), 0, bytes);
  }
  std::byte* data() { return all_.data() + kGuard; }
  Bytes span() { return {data(), bytes_}; }
  Bytes span(size_t offset, size_t bytes) { return {data() + offset, bytes}; }
  void fill(uint32_t seed) {
    for (size_t i = 0; i < bytes_; ++i) data()[i] = pattern(seed, i);
  }
  bool guards_whole() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (all_[i] != kCanary || all_[kGuard + bytes_ + i] != kCanary) return false;
    }
    return true;
  }

 private:
  std::vector<std::byte> all_;
  size_t bytes_;
};

inline sockaddr_storage device_address(uint16_t port) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in&>(storage);
  const char* text = std::getenv("VERBS_ADDRESS");
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (text == nullptr || inet_pton(AF_INET, text, &address.sin_addr) != 1) {
    std::fprintf(stderr, "VERBS_ADDRESS must be the IPv4 address of an RDMA device\n");
    std::abort();
  }
  return storage;
}

/// A fabric with receive buffers and data memory, and at most one connection.
struct End {
  explicit End(bool key_per_call = false, bool server = false) {
    VerbsOptions options;
    options.key_per_call = key_per_call;
    options.reads = true;
    if (server)
      options.local = device_address(0);
    else
      options.peer = device_address(20049);
    auto made = make_verbs_fabric(options);
    if (!made) {
      std::fprintf(stderr, "no fabric: %s\n", made.error().text.c_str());
      std::abort();
    }
    fabric = std::move(*made);
    receive_region = fabric->register_memory(receives.span(), Access::kLocalWrite).value();
    region =
        fabric->register_memory(data.span(), Access::kRemoteRead | Access::kRemoteWrite).value();
  }

  ConnectionConfig config() {
    ConnectionConfig c;
    c.send_depth = kSendDepth;
    c.read_depth = 16;
    c.key_count = 16;
    c.receive_memory = receives.span();
    c.receive_region = receive_region;
    c.receive_count = kReceives;
    c.receive_size = kReceiveSize;
    c.ird = 8;
    c.ord = 8;
    return c;
  }
  LocalSpan span(size_t offset, size_t length) {
    return {data.data() + offset, static_cast<uint32_t>(length), region};
  }
  RemoteMemory remote(size_t offset) { return fabric->remote_memory(region, data.data() + offset); }
  ConstBytes received(const Completion& c) {
    return {receives.data() + size_t{c.buffer} * kReceiveSize, c.bytes};
  }
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

  Arena receives{size_t{kReceives} * kReceiveSize};
  Arena data{kDataBytes};
  std::unique_ptr<Fabric> fabric;
  RegionId receive_region = 0, region = 0;
  std::unique_ptr<Connection> connection;
  std::vector<Completion> log;
};

inline bool run_until(const std::function<bool()>& done, const std::function<void()>& step) {
  const uint64_t deadline = now_ns() + 20'000'000'000u;
  while (!done()) {
    if (now_ns() > deadline) return false;
    step();
  }
  return true;
}

/// A client and a server, connected.
struct Pair {
  explicit Pair(bool key_per_call = false) : client(key_per_call), server(false, true) {
    ListenConfig config;
    config.local = device_address(0);
    auto made = server.fabric->listen(config);
    if (!made) {
      std::fprintf(stderr, "no listener: %s\n", made.error().text.c_str());
      std::abort();
    }
    listener = std::move(*made);
    client.connection = client.fabric->make_connection(client.config()).value();
  }
  ~Pair() {
    if (client.connection) client.connection->close();
    if (server.connection) server.connection->close();
    EXPECT_TRUE(client.data.guards_whole() && client.receives.guards_whole());
    EXPECT_TRUE(server.data.guards_whole() && server.receives.guards_whole());
  }
  void step() {
    client.poll();
    server.poll();
  }
  ConnectRequest request() const {
    ConnectRequest request;
    request.peer = device_address(listener->port());
    request.timeout_ms = 10'000;
    return request;
  }
  bool requested() {
    return run_until([&] { return server.connection != nullptr; },
                     [&] {
                       client.poll();
                       server.connection = listener->poll();
                     });
  }
  bool up() {
    client.log.clear();
    server.log.clear();
    const auto hello = std::as_bytes(std::span("hello server", 12));
    ConnectRequest wanted = request();
    wanted.private_data = hello;
    server.connection.reset();
    if (!client.connection->start_connect(wanted)) return false;
    if (!requested()) return false;
    const auto answer = std::as_bytes(std::span("hello client", 12));
    if (!server.connection->accept(*server.fabric, server.config(), answer)) return false;
    const bool both = run_until(
        [&] {
          return (client.count(CompletionKind::kEstablished) == 1 &&
                  server.count(CompletionKind::kEstablished) == 1) ||
                 client.count(CompletionKind::kDisconnected) != 0;
        },
        [&] { step(); });
    if (client.connection->state() == ConnectionState::kFailed)
      std::fprintf(stderr, "%s\n", client.connection->error().text.c_str());
    return both && client.connection->state() == ConnectionState::kEstablished;
  }

  End client, server;
  std::unique_ptr<Listener> listener;
};

}  // namespace nfsrdma::test
