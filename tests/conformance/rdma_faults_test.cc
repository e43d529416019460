// SPDX-License-Identifier: GPL-2.0-or-later
// A server that misbehaves over RDMA, many clients at once, and what a user is told when there is
// no connection. Every I/O ends once, with its bytes or with an error.
#include <cerrno>
#include <cstring>
#include <thread>

#include "nfs_client.h"
#include "tcp_socket.h"

namespace nfsrdma::testing {
namespace {

constexpr uint32_t kBlock = 8192;
constexpr uint32_t kBlocks = 40;

enum class Outcome { kRight, kError };

struct FaultCase {
  const char* name;
  std::vector<std::string> memd;
  Outcome outcome;
  uint32_t timeo_ms = 300;
};

class RdmaFaults : public ::testing::TestWithParam<FaultCase> {};

// Writes a file and reads it back. With kRight all bytes must be right in spite of the fault; with
// kError each I/O ends with its bytes or with an error, and some do with an error.
TEST_P(RdmaFaults, EveryIoEndsRightly) {
  const FaultCase& param = GetParam();
  for (const bool key_per_call : {false, true}) {
    SCOPED_TRACE(key_per_call ? "key per call" : "long-lived keys");
    MemdProcess server(param.memd);
    std::vector<std::byte> memory(2 * kBlock * kBlocks);
    NfsClient::Settings settings;
    settings.timeo_ms = param.timeo_ms;
    settings.retrans = 10;
    auto opened =
        NfsClient::open(server.url(), rdma(4096, 0, true, key_per_call), settings, memory);
    ASSERT_TRUE(opened) << opened.error().text;
    NfsClient& client = **opened;
    SessionFile* file = client.file("faults");
    ASSERT_NE(file, nullptr);
    const auto data = pattern(size_t{kBlock} * kBlocks, 3);
    std::memcpy(memory.data(), data.data(), data.size());
    uint32_t errors = 0;
    for (const bool reading : {false, true}) {
      uint32_t started = 0;
      uint32_t done = 0;
      const size_t base = reading ? data.size() : 0;
      std::vector<bool> seen(kBlocks);
      while (done < kBlocks) {
        for (; started < kBlocks; ++started) {
          const uint64_t offset = uint64_t{started} * kBlock;
          const Bytes at = Bytes(memory).subspan(base + offset, kBlock);
          void* user = reinterpret_cast<void*>(uintptr_t{started});
          if (!(reading
                    ? client.session->read(user, file, offset, at)
                    : client.session->write(user, file, offset, at, StableHow::kFileSync, false)))
            break;
        }
        const IoCompletion completion = client.finish();
        const auto block = reinterpret_cast<uintptr_t>(completion.user);
        ASSERT_LT(block, kBlocks);
        ASSERT_FALSE(seen[block]) << "ended twice";
        seen[block] = true;
        ++done;
        if (completion.error != 0) {
          ++errors;
          EXPECT_EQ(param.outcome, Outcome::kError) << client.session->take_error_text();
        } else if (reading && param.outcome == Outcome::kRight) {
          EXPECT_EQ(completion.bytes, kBlock);
          EXPECT_EQ(std::memcmp(memory.data() + base + block * kBlock, data.data() + block * kBlock,
                                kBlock),
                    0);
        }
      }
    }
    EXPECT_TRUE(param.outcome == Outcome::kRight || errors > 0) << "no I/O was hit";
  }
}

const FaultCase kFaultCases[] = {
    {"drop", {"--fault", "drop:9:READ+WRITE"}, Outcome::kRight},
    {"close", {"--fault", "close:13:READ+WRITE"}, Outcome::kRight},
    {"dup_reply", {"--fault", "dup-reply:2:READ+WRITE"}, Outcome::kRight},
    {"bad_xid", {"--fault", "bad-xid:9:READ+WRITE"}, Outcome::kRight},
    {"late", {"--fault", "late:15:READ+WRITE", "--late-ms", "700"}, Outcome::kRight},
    {"late_writes_all", {"--fault", "late:1:READ:3", "--late-ms", "700"}, Outcome::kRight},
    {"unused_chunk", {"--rdma-inline", "16384", "--fault", "unused-chunk:2:READ"}, Outcome::kError},
    {"short_chunk", {"--fault", "short-chunk:5:READ"}, Outcome::kError},
    {"err_vers", {"--fault", "err-vers:9:READ+WRITE"}, Outcome::kError},
    {"err_chunk", {"--fault", "err-chunk:9:READ+WRITE"}, Outcome::kError},
    {"grant_zero", {"--fault", "grant-zero:3"}, Outcome::kRight},
    {"grant_huge", {"--fault", "grant-huge"}, Outcome::kRight},
    {"garbage", {"--fault", "garbage:11:READ+WRITE"}, Outcome::kError},
    {"short_read", {"--fault", "short-read:3"}, Outcome::kRight},
    {"short_write", {"--fault", "short-write:3"}, Outcome::kRight},
    {"jukebox", {"--fault", "jukebox:20:READ+WRITE"}, Outcome::kRight, 2000},
};

INSTANTIATE_TEST_SUITE_P(Of, RdmaFaults, ::testing::ValuesIn(kFaultCases),
                         [](const auto& info) { return std::string(info.param.name); });

// READ whose chunk comes back unused with the data inline, where they fit.
TEST(RdmaServerFaults, UnusedChunkWithDataInline) {
  MemdProcess server({"--fault", "unused-chunk:1:READ"});
  std::vector<std::byte> memory(1 << 16);
  auto opened = NfsClient::open(server.url(), rdma(), {}, memory);
  ASSERT_TRUE(opened) << opened.error().text;
  NfsClient& client = **opened;
  SessionFile* file = client.file("inline");
  const auto data = pattern(3600, 4);
  std::memcpy(memory.data(), data.data(), data.size());
  ASSERT_EQ(client.write(file, 0, Bytes(memory).first(data.size())).error, 0);
  std::byte* in = memory.data() + 8192;
  const IoCompletion got = client.read(file, 0, {in, 3600});
  ASSERT_EQ(got.error, 0) << client.session->take_error_text();
  EXPECT_EQ(std::memcmp(in, data.data(), data.size()), 0);
}

TEST(RdmaConnections, OneHundredAndTwentyEightAtOnce) {
  MemdProcess server;
  constexpr uint32_t kThreads = 16;
  constexpr uint32_t kEach = 8;
  std::atomic<uint32_t> good{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&server, &good, t] {
      std::vector<std::unique_ptr<NfsClient>> clients;
      std::vector<std::byte> memory(2 * kBlock);
      for (uint32_t i = 0; i < kEach; ++i) {
        NfsClient::Settings settings;
        settings.timeo_ms = 10'000;
        auto opened = NfsClient::open(server.url(), rdma(), settings, memory);
        ASSERT_TRUE(opened) << opened.error().text;
        clients.push_back(std::move(*opened));
      }
      for (uint32_t i = 0; i < kEach; ++i) {  // all are connected now
        NfsClient& client = *clients[i];
        SessionFile* file = client.file("f" + std::to_string(t * kEach + i));
        const auto data = pattern(kBlock, t * kEach + i);
        std::memcpy(memory.data(), data.data(), kBlock);
        ASSERT_EQ(client.write(file, 0, Bytes(memory).first(kBlock)).error, 0);
        ASSERT_EQ(client.read(file, 0, Bytes(memory).last(kBlock)).bytes, kBlock);
        if (std::memcmp(memory.data() + kBlock, data.data(), kBlock) == 0) good.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good.load(), kThreads * kEach);
}

TEST(RdmaConnections, ServerThatGoesAwayAndOneThatIsNotThere) {
  std::string url;
  std::vector<std::byte> memory(2 * kBlock);
  {
    MemdProcess server;
    url = server.url();
    NfsClient::Settings settings;
    settings.timeo_ms = 100;
    settings.retrans = 2;
    auto opened = NfsClient::open(url, rdma(), settings, memory);
    ASSERT_TRUE(opened) << opened.error().text;
    SessionFile* file = (*opened)->file("gone");
    server.stop();
    const IoCompletion ended = (*opened)->write(file, 0, Bytes(memory).first(kBlock));
    EXPECT_EQ(ended.error, ETIMEDOUT);
  }
  auto parsed = parse_nfs_url(url);
  ASSERT_TRUE(parsed);
  TransportConfig config;
  config.host = parsed->hosts.front();
  RdmaOptions options = rdma();
  options.rdma_port = parsed->rdma_port;
  for (const FabricKind fabric : {FabricKind::kIwarp, FabricKind::kAuto}) {
    options.fabric = fabric;
    auto opened = open_transport(config, options);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ECONNREFUSED) << opened.error().text;
    EXPECT_NE(opened.error().text.find("nothing listens on TCP port"), std::string::npos)
        << opened.error().text;
    const bool names_verbs = opened.error().text.find("verbs: ") != std::string::npos;
    EXPECT_EQ(names_verbs, fabric == FabricKind::kAuto) << opened.error().text;
  }
}

// NFS over TCP on the port that should be RDMA's: told in words, within the time.
TEST(RdmaConnections, PortOfAnotherProtocol) {
  MemdProcess server;
  auto parsed = parse_nfs_url(server.url());
  ASSERT_TRUE(parsed);
  TransportConfig config;
  config.host = parsed->hosts.front();
  config.connect_timeout_ms = 3'000;
  RdmaOptions options = rdma();
  options.rdma_port = parsed->nfs_port;
  auto opened = open_transport(config, options);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text.find("iwarp: "), std::string::npos) << opened.error().text;
}

TEST(RdmaConnections, WordsForOptions) {
  EXPECT_EQ(parse_transport("udp").error().code, EINVAL);
  EXPECT_EQ(parse_fabric("roce").error().code, EINVAL);
  EXPECT_EQ(*parse_fabric("verbs"), FabricKind::kVerbs);
  TransportConfig config;
  config.host = "127.0.0.1";
  RdmaOptions options = rdma(512);
  auto opened = open_transport(config, options);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, EINVAL) << opened.error().text;
}

}  // namespace
}  // namespace nfsrdma::testing
