// SPDX-License-Identifier: GPL-2.0-or-later
// What an operation over the iwarp fabric costs: a client that sends short calls in batches, and a
// server that answers each with an RDMA Write and a Send, as an NFS READ over RPC-over-RDMA does.
// Each side has a thread of its own; the figures are processor time of the thread, so that a busy
// machine does not spoil them. One line a mode.
//
// usage: iwarp-bench [operations [bytes [depth]]]
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <time.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "iwarp_fabric.h"
#include "transport.h"

using namespace nfsrdma;

namespace {

constexpr uint32_t kCallBytes = 144;
constexpr uint32_t kReplyBytes = 160;
constexpr uint32_t kReceiveSize = 4096;

struct Load {
  uint32_t operations = 200'000;
  uint32_t bytes = 4096;
  uint32_t depth = 128;
};

uint64_t thread_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

[[noreturn]] void die(const std::string& text) {
  std::fprintf(stderr, "iwarp-bench: %s\n", text.c_str());
  std::exit(1);
}

struct Side {
  Side(const Load& load, bool crc)
      : fabric(make_iwarp_fabric({crc, 0})),
        receives(size_t{load.depth} * kReceiveSize),
        data(size_t{load.depth} * load.bytes + kReceiveSize) {
    receive_region = fabric->register_memory(receives, Access::kLocalWrite).value();
    region = fabric->register_memory(data, Access::kRemoteWrite).value();
    config.send_depth = 2 * load.depth;
    config.receive_memory = receives;
    config.receive_region = receive_region;
    config.receive_count = load.depth;
    config.receive_size = kReceiveSize;
  }
  LocalSpan span(size_t offset, uint32_t length) { return {data.data() + offset, length, region}; }
  void sleep() {
    pollfd wait;
    if (connection->prepare_wait(wait)) ::poll(&wait, 1, 100);
  }

  std::unique_ptr<Fabric> fabric;
  std::vector<std::byte> receives, data;
  RegionId receive_region, region;
  ConnectionConfig config;
  std::unique_ptr<Connection> connection;
};

void serve(Side& side, Listener& listener, const Load& load, std::atomic<uint32_t>& sink_key) {
  while (!side.connection) side.connection = listener.poll();
  if (!side.connection->accept(*side.fabric, side.config, {})) die("accept failed");
  for (;;) {
    Completion some[64];
    const uint32_t count = side.connection->poll(some);
    if (count == 0) side.sleep();
    for (uint32_t i = 0; i < count; ++i) {
      if (some[i].kind == CompletionKind::kDisconnected) return;
      if (some[i].kind != CompletionKind::kReceive) continue;
      side.connection->post_receive(some[i].buffer);
      const uint64_t at = uint64_t{some[i].buffer} * load.bytes;
      const LocalSpan payload = side.span(at, load.bytes);
      const LocalSpan reply = side.span(0, kReplyBytes);
      if (!side.connection->post_write(0, {&payload, 1}, {sink_key.load(), at}, kQuiet) ||
          !side.connection->post_send(0, {&reply, 1})) {
        die("server queue full");
      }
    }
    side.connection->ring();
  }
}

void run(const Load& load, bool crc) {
  Side client(load, crc), server(load, crc);
  ListenConfig listen;
  auto& address = reinterpret_cast<sockaddr_in&>(listen.local);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto listener = server.fabric->listen(listen).value();
  address.sin_port = htons(listener->port());
  std::atomic<uint32_t> sink_key =
      client.fabric->remote_memory(client.region, client.data.data()).key;
  std::thread serving([&] { serve(server, *listener, load, sink_key); });

  client.connection = client.fabric->make_connection(client.config).value();
  ConnectRequest request;
  request.peer = listen.local;
  if (!client.connection->start_connect(request)) die("connect failed");
  while (client.connection->state() == ConnectionState::kConnecting) {
    Completion one[1];
    client.connection->poll(one);
  }

  const uint64_t cpu = thread_ns(), wall = now_ns();
  uint32_t sent = 0, done = 0;
  uint64_t polls = 0;
  while (done < load.operations) {
    while (sent < load.operations && sent - done < load.depth) {
      const LocalSpan call = client.span(0, kCallBytes);
      if (!client.connection->post_send(0, {&call, 1})) break;
      ++sent;
    }
    client.connection->ring();
    Completion some[64];
    const uint32_t count = client.connection->poll(some);
    ++polls;
    for (uint32_t i = 0; i < count; ++i) {
      if (some[i].kind == CompletionKind::kDisconnected) die(client.connection->error().text);
      if (some[i].kind != CompletionKind::kReceive) continue;
      client.connection->post_receive(some[i].buffer);
      ++done;
    }
    if (count == 0) client.sleep();
  }
  const double ops = load.operations;
  const double cpu_us = static_cast<double>(thread_ns() - cpu) / 1e3;
  const double wall_us = static_cast<double>(now_ns() - wall) / 1e3;
  const FabricCounters& calls = client.connection->counters();
  std::printf(
      "%u B, depth %u, CRC %s: client %.3f us an operation (wall %.3f), %.1f operations a "
      "send call, %.1f a receive call\n",
      load.bytes, load.depth, crc ? "on " : "off", cpu_us / ops, wall_us / ops,
      ops / static_cast<double>(calls.send_calls), ops / static_cast<double>(calls.recv_calls));
  client.connection->close();
  serving.join();
}

}  // namespace

int main(int argc, char** argv) {
  Load load;
  if (argc > 1) load.operations = static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10));
  if (argc > 2) load.bytes = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  if (argc > 3) load.depth = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10));
  if (load.operations == 0 || load.bytes == 0 || load.bytes > (1u << 20) || load.depth == 0 ||
      load.depth > 1024) {
    die("usage: iwarp-bench [operations [bytes, at most 1 MiB [depth, at most 1024]]]");
  }
  run(load, false);
  run(load, true);
  return 0;
}
