// SPDX-License-Identifier: GPL-2.0-or-later
// An NFS client as the engine makes one, over whichever transport a test asks for.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "memd_process.h"
#include "mounter.h"
#include "nfs3_control.h"
#include "open_transport.h"
#include "session.h"
#include "url.h"

namespace nfsrdma::testing {

constexpr size_t kBlockMax = 1u << 20;
constexpr size_t kCanary = 64;
constexpr std::byte kCanaryByte{0xc5};

/// A way to the server: what the parametrised tests run over.
struct Way {
  const char* name = "";
  RdmaOptions rdma;
  std::vector<std::string> memd;  ///< arguments of the server
};

inline std::vector<std::byte> pattern(size_t length, uint32_t seed) {
  std::vector<std::byte> bytes(length);
  uint32_t state = seed * 2654435761u + 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = std::byte(state >> 24);
  }
  return bytes;
}

inline SetAttributes with_mode(uint32_t mode) {
  SetAttributes attributes;
  attributes.mode = mode;
  return attributes;
}
inline SetAttributes with_size(uint64_t size) {
  SetAttributes attributes;
  attributes.size = size;
  return attributes;
}
inline RdmaOptions rdma(uint32_t inline_size = 4096, uint32_t credits = 0, bool crc = true,
                        bool key_per_call = false) {
  RdmaOptions options;
  options.transport = TransportKind::kRdma;
  options.fabric = FabricKind::kIwarp;
  options.inline_size = inline_size;
  options.credits = credits;
  options.iwarp_crc = crc;
  options.key_per_call = key_per_call;
  return options;
}

class NfsClient final : private IssueSink {
 public:
  struct Settings {
    uint32_t depth = 8;
    uint32_t timeo_ms = 2'000;
    uint32_t retrans = 3;
    bool soft = true;
  };

  /// Mounts over TCP, then connects as `rdma` says. `memory` is I/O memory, kept by the caller.
  static Result<std::unique_ptr<NfsClient>> open(const std::string& url_text, RdmaOptions rdma,
                                                 const Settings& settings, Bytes memory) {
    auto client = std::unique_ptr<NfsClient>(new NfsClient);
    auto url = parse_nfs_url(url_text);
    if (!url) return tl::unexpected(url.error());
    TransportConfig config;
    config.slots = 2;
    config.head_max = 4096;
    config.bulk_max = 0;
    const ConnectTcp connect = [config](const std::string& host, uint16_t port, StopFlag) mutable {
      config.host = host;
      config.port = port;
      return open_transport(config, RdmaOptions());
    };
    auto mounted = mount_url(*url, connect, NamespaceConfig());
    if (!mounted) return tl::unexpected(mounted.error());
    client->mounted = std::move(*mounted);

    SessionConfig session;
    session.depth = settings.depth;
    session.rtmax = client->mounted.limits.rtmax;
    session.wtmax = client->mounted.limits.wtmax;
    session.poll = PollMode::kEvent;
    session.soft = settings.soft;
    session.timeo_ms = settings.timeo_ms;
    session.retrans = settings.retrans;
    config.host = client->mounted.host;
    config.port = client->mounted.nfs_port;
    config.slots = Session::slots_per_connection(session, 1, kBlockMax);
    config.head_max = 1536;
    config.bulk_max = kBlockMax;
    config.soft = settings.soft;
    config.timeo_ms = settings.timeo_ms;
    config.retrans = settings.retrans;
    if (url->rdma_port != 0) rdma.rdma_port = url->rdma_port;
    auto transport = open_transport(config, rdma);
    if (!transport) return tl::unexpected(transport.error());
    client->transport = transport->get();
    std::vector<std::unique_ptr<Transport>> connections;
    connections.push_back(std::move(*transport));
    client->statistics = std::make_unique<SessionStatistics>();
    client->session =
        std::make_unique<Session>(session, std::move(connections), Credential::of_process(),
                                  client->statistics.get(), static_cast<IssueSink*>(client.get()));
    auto added = client->session->add_memory(memory);
    if (!added) return tl::unexpected(added.error());
    client->nfs = std::make_unique<Nfs3Control>(*client->session, client->mounted.control);
    return client;
  }

  SessionFile* file(const std::string& name) {
    auto made = nfs->create(mounted.root, name, CreateMode::kUnchecked, with_mode(0644));
    EXPECT_TRUE(made) << made.error().text;
    return made ? session->open_file(name, made->handle) : nullptr;
  }

  /// One I/O, waited for.
  IoCompletion finish() {
    session->wait(1, now_ns() + 30'000'000'000);
    EXPECT_GE(session->ready(), 1u) << "no completion";
    if (session->ready() == 0) return {.user = nullptr, .error = ETIME, .bytes = 0};
    return session->take();
  }
  IoCompletion write(SessionFile* to, uint64_t offset, ConstBytes from,
                     StableHow stable = StableHow::kFileSync, bool commit_after = false) {
    EXPECT_TRUE(session->write(nullptr, to, offset, from, stable, commit_after));
    return finish();
  }
  IoCompletion read(SessionFile* from, uint64_t offset, Bytes to) {
    EXPECT_TRUE(session->read(nullptr, from, offset, to));
    return finish();
  }

  Mounted mounted;
  Transport* transport = nullptr;
  std::unique_ptr<SessionStatistics> statistics;
  std::unique_ptr<Session> session;
  std::unique_ptr<Nfs3Control> nfs;

 private:
  NfsClient() = default;
  void on_issued(void*) override {}
};

}  // namespace nfsrdma::testing
