// SPDX-License-Identifier: GPL-2.0-or-later
// The same cases over TCP and over RDMA, against nfsrdma-memd; bytes compared. The cases come from
// RFC 1813, RFC 8166 and RFC 8267.
#include <cerrno>
#include <cstring>
#include <set>

#include "nfs_client.h"

namespace nfsrdma::testing {
namespace {

class Conformance : public ::testing::TestWithParam<Way> {
 protected:
  Conformance() : server(GetParam().memd), memory(4 * kBlockMax) { open(); }

  void open() {
    auto opened = NfsClient::open(server.url(), GetParam().rdma, {}, memory);
    if (!opened) {
      ADD_FAILURE() << opened.error().text;
      return;
    }
    client = std::move(*opened);
  }
  void SetUp() override { ASSERT_NE(client, nullptr); }

  MemdProcess server;
  std::vector<std::byte> memory;
  std::unique_ptr<NfsClient> client;
};

// Every size around units of XDR, inline sizes, segments and pages, up to wtmax.
std::vector<uint32_t> sizes() {
  std::set<uint32_t> all;
  for (uint32_t size = 1; size <= 17; ++size) all.insert(size);
  for (const uint32_t around : {512u, 800u, 1024u, 3800u, 3900u, 4000u, 4096u, 8192u, 16384u,
                                32768u, 65480u, 65536u, 131072u, 262144u, 1048576u}) {
    for (uint32_t size = around - 5; size <= around + 5 && size <= kBlockMax; ++size)
      all.insert(size);
  }
  for (uint32_t size = 3700; size < 4100; size += 7) all.insert(size);
  return {all.begin(), all.end()};
}

TEST_P(Conformance, EverySizeIsWrittenAndReadBack) {
  SessionFile* file = client->file("sizes");
  ASSERT_NE(file, nullptr);
  uint32_t seed = 1;
  for (const uint32_t size : sizes()) {
    const uint64_t offset = seed % 5;
    const auto data = pattern(size, ++seed);
    std::byte* out = memory.data() + seed % 3;
    std::memcpy(out, data.data(), size);
    const IoCompletion wrote = client->write(file, offset, {out, size});
    ASSERT_EQ(wrote.error, 0) << size << ": " << client->session->take_error_text();
    ASSERT_EQ(wrote.bytes, size);
    std::byte* in = memory.data() + 2 * kBlockMax + kCanary + seed % 7;
    std::memset(in - kCanary, static_cast<int>(kCanaryByte), size + 2 * kCanary);
    const IoCompletion got = client->read(file, offset, {in, size});
    ASSERT_EQ(got.error, 0) << size << ": " << client->session->take_error_text();
    ASSERT_EQ(got.bytes, size);
    ASSERT_EQ(std::memcmp(in, data.data(), size), 0) << size;
    for (size_t i = 0; i < kCanary; ++i) {
      ASSERT_EQ(*(in - 1 - i), kCanaryByte) << size;
      ASSERT_EQ(in[size + i], kCanaryByte) << size;
    }
  }
}

TEST_P(Conformance, ReadsBeyondTheEnd) {
  SessionFile* file = client->file("short");
  ASSERT_EQ(client->write(file, 0, Bytes(memory).first(1000)).bytes, 1000u);
  std::byte* in = memory.data() + kBlockMax;
  EXPECT_EQ(client->read(file, 990, {in, 8192}).bytes, 10u);
  EXPECT_EQ(client->read(file, 990, {in, 100}).bytes, 10u);
  EXPECT_EQ(client->read(file, 5000, {in, 8192}).bytes, 0u);
  EXPECT_EQ(client->read(file, 5000, {in, 64}).bytes, 0u);
}

TEST_P(Conformance, UnstableWritesAndCommit) {
  SessionFile* file = client->file("unstable");
  const auto data = pattern(300'000, 5);
  std::memcpy(memory.data(), data.data(), data.size());
  const IoCompletion wrote =
      client->write(file, 77, Bytes(memory).first(data.size()), StableHow::kUnstable, true);
  ASSERT_EQ(wrote.error, 0) << client->session->take_error_text();
  EXPECT_GE(client->statistics->of(StatProcedure::kCommit).ops, 1u);
  ASSERT_TRUE(client->session->sync(nullptr, file));
  EXPECT_EQ(client->finish().error, 0);
  std::byte* in = memory.data() + kBlockMax;
  ASSERT_EQ(client->read(file, 77, {in, data.size()}).bytes, data.size());
  EXPECT_EQ(std::memcmp(in, data.data(), data.size()), 0);
}

TEST_P(Conformance, OffsetsBeyond4GiB) {
  SessionFile* file = client->file("sparse");
  const auto data = pattern(5000, 6);
  const uint64_t offset = (uint64_t{5} << 32) + 3;
  std::memcpy(memory.data(), data.data(), data.size());
  ASSERT_EQ(client->write(file, offset, Bytes(memory).first(5000)).error, 0);
  std::byte* in = memory.data() + kBlockMax;
  ASSERT_EQ(client->read(file, offset, {in, 5000}).bytes, 5000u);
  EXPECT_EQ(std::memcmp(in, data.data(), 5000), 0);
}

TEST_P(Conformance, ManyAtOnce) {
  SessionFile* file = client->file("many");
  constexpr uint32_t kBlock = 8192;
  constexpr uint32_t kBlocks = 256;
  const auto data = pattern(size_t{kBlock} * kBlocks, 7);
  std::memcpy(memory.data(), data.data(), data.size());
  for (const bool reading : {false, true}) {
    uint32_t started = 0;
    uint32_t done = 0;
    if (reading) std::memset(memory.data(), 0, data.size());
    while (done < kBlocks) {
      while (started < kBlocks) {
        const uint32_t block = (started * 97) % kBlocks;
        const Bytes at = Bytes(memory).subspan(size_t{block} * kBlock, kBlock);
        const uint64_t offset = uint64_t{block} * kBlock;
        if (!(reading
                  ? client->session->read(nullptr, file, offset, at)
                  : client->session->write(nullptr, file, offset, at, StableHow::kFileSync, false)))
          break;
        ++started;
        client->session->commit();
      }
      const IoCompletion completion = client->finish();
      ASSERT_EQ(completion.error, 0) << client->session->take_error_text();
      ASSERT_EQ(completion.bytes, kBlock);
      ++done;
    }
  }
  EXPECT_EQ(std::memcmp(memory.data(), data.data(), data.size()), 0);
}

TEST_P(Conformance, ControlProcedures) {
  Nfs3Control& nfs = *client->nfs;
  const FileHandle& root = client->mounted.root;
  ASSERT_TRUE(nfs.null());
  auto made = nfs.mkdir(root, "dir", 0755);
  ASSERT_TRUE(made) << made.error().text;
  auto created = nfs.create(made->handle, "a", CreateMode::kGuarded, with_mode(0600));
  ASSERT_TRUE(created) << created.error().text;
  EXPECT_EQ(nfs.create(made->handle, "a", CreateMode::kGuarded, with_mode(0600)).error().code,
            EEXIST);
  ASSERT_TRUE(nfs.setattr(created->handle, with_size(12345), "a"));
  auto attributes = nfs.getattr(created->handle, "a");
  ASSERT_TRUE(attributes);
  EXPECT_EQ(attributes->size, 12345u);
  ASSERT_TRUE(nfs.rename(made->handle, "a", root, "b"));
  EXPECT_EQ(nfs.lookup(made->handle, "a").error().code, ENOENT);
  auto found = nfs.lookup(root, "b");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->handle, created->handle);
  EXPECT_TRUE(nfs.access(found->handle, 0x3f, "b"));
  ASSERT_TRUE(nfs.remove(root, "b"));
  ASSERT_TRUE(nfs.rmdir(root, "dir"));
  EXPECT_EQ(nfs.getattr(created->handle, "b").error().code, ESTALE);
  auto fsinfo = nfs.fsinfo(root, "/");
  ASSERT_TRUE(fsinfo);
  EXPECT_EQ(fsinfo->rtmax, kBlockMax);
  EXPECT_TRUE(nfs.fsstat(root, "/"));
  EXPECT_TRUE(nfs.pathconf(root, "/"));
}

// Replies above the inline size: over RDMA by Reply chunk.
TEST_P(Conformance, LargeDirectory) {
  constexpr int kEntries = 700;
  std::set<std::string> names;
  for (int i = 0; i < kEntries; ++i) {
    names.insert("entry-" + std::string(static_cast<size_t>(i % 60), 'x') + std::to_string(i));
  }
  for (const std::string& name : names) {
    ASSERT_TRUE(
        client->nfs->create(client->mounted.root, name, CreateMode::kUnchecked, with_mode(0644)));
  }
  auto entries = client->nfs->readdirplus(client->mounted.root, 10'000, "/");
  ASSERT_TRUE(entries) << entries.error().text;
  std::set<std::string> seen;
  for (const DirEntry& entry : *entries) seen.insert(entry.name);
  EXPECT_EQ(seen, names);
  EXPECT_EQ(entries->size(), names.size());
}

TEST_P(Conformance, ErrorsOfReadAndWrite) {
  auto made = client->nfs->mkdir(client->mounted.root, "dir", 0755);
  ASSERT_TRUE(made);
  SessionFile* directory = client->session->open_file("dir", made->handle);
  EXPECT_EQ(client->read(directory, 0, Bytes(memory).first(8192)).error, EISDIR);
  EXPECT_NE(client->write(directory, 0, Bytes(memory).first(8192)).error, 0);
  SessionFile* file = client->file("gone");
  ASSERT_TRUE(client->nfs->remove(client->mounted.root, "gone"));
  EXPECT_EQ(client->read(file, 0, Bytes(memory).first(8192)).error, ESTALE);
  EXPECT_EQ(client->write(file, 0, Bytes(memory).first(100)).error, ESTALE);
}

const Way kWays[] = {
    {"tcp", RdmaOptions(), {}},
    {"rdma", rdma(), {}},
    {"rdma_without_crc", rdma(4096, 0, false), {}},
    {"rdma_key_per_call", rdma(4096, 0, true, true), {}},
    {"rdma_inline_1024", rdma(1024), {"--rdma-inline", "1024"}},
    {"rdma_inline_65536", rdma(65536), {"--rdma-inline", "65536"}},
    {"rdma_unequal_inline", rdma(16384), {"--rdma-inline", "2048"}},
    {"rdma_grant_0", rdma(), {"--credits", "0"}},
    {"rdma_grant_1", rdma(), {"--credits", "1"}},
    {"rdma_grant_3", rdma(), {"--credits", "3"}},
    {"rdma_credits_2", rdma(4096, 2), {}},
};

INSTANTIATE_TEST_SUITE_P(Over, Conformance, ::testing::ValuesIn(kWays),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace nfsrdma::testing
