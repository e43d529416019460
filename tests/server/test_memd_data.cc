// SPDX-License-Identifier: GPL-2.0-or-later
// READ, WRITE, COMMIT of the embedded server by RFC 1813, in-process and over TCP.
#include <random>

#include "memd_client.h"

namespace nfsrdma::memd {
namespace {

std::string random_bytes(size_t length, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(length, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// Same words on every server that a test needs; the parameter is "over TCP".
class MemdData : public testing::TestWithParam<bool> {
 protected:
  void start(const ServerSettings& settings = {}) {
    server = std::make_unique<TestServer>(settings, GetParam());
    client = std::make_unique<TestClient>(*server);
    files = std::make_unique<Files>(*client);
    root = files->mount("/export");
  }

  std::unique_ptr<TestServer> server;
  std::unique_ptr<TestClient> client;
  std::unique_ptr<Files> files;
  Handle root;
};

INSTANTIATE_TEST_SUITE_P(Carriers, MemdData, testing::Bool(),
                         [](const auto& over_tcp) { return over_tcp.param ? "Tcp" : "InProcess"; });

TEST_P(MemdData, WritesAndReadsEverySizeAroundWordAndBlockLimits) {
  start();
  const Handle file = files->create(root, "f");
  const std::string bytes = random_bytes(3 * kBlockSize, 1);
  uint64_t offset = 0;
  for (const size_t length :
       {size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{5}, size_t{4095}, size_t{4096},
        size_t{4097}, size_t{16383}, size_t{16384}, size_t{16385}, size_t{kBlockSize - 1},
        size_t{kBlockSize}, size_t{kBlockSize + 1}, size_t{2 * kBlockSize + 3}}) {
    ASSERT_EQ(files->write(file, offset, bytes.substr(0, length)), length);
    bool eof = false;
    EXPECT_TRUE(files->read(file, offset, static_cast<uint32_t>(length), nullptr, &eof) ==
                bytes.substr(0, length))
        << length;
    EXPECT_TRUE(eof);
    offset += length;
  }
  EXPECT_EQ(files->getattr(file).size, offset);
}

TEST_P(MemdData, MatchesAPlainBufferUnderRandomWritesAndTruncations) {
  start();
  const Handle file = files->create(root, "f");
  std::mt19937 random(7);
  std::string expected;
  for (uint32_t step = 0; step < 200; ++step) {
    const size_t offset = random() % (4 * kBlockSize);
    if (random() % 5 == 0) {
      ASSERT_EQ(files->truncate(file, offset), NFS3_OK);
      expected.resize(offset);
      continue;
    }
    const std::string bytes = random_bytes(1 + random() % (kBlockSize + 100), step);
    ASSERT_EQ(files->write(file, offset, bytes), bytes.size());
    if (expected.size() < offset + bytes.size()) expected.resize(offset + bytes.size());
    expected.replace(offset, bytes.size(), bytes);
  }
  EXPECT_EQ(files->getattr(file).size, expected.size());
  EXPECT_TRUE(files->read(file, 0, kTransferMax) == expected);
}

TEST_P(MemdData, KeepsASparseFileSmall) {
  start();
  const Handle file = files->create(root, "sparse");
  const uint64_t far = uint64_t{1} << 40;
  ASSERT_EQ(files->write(file, far, "here"), 4u);
  ASSERT_EQ(files->write(file, 5, "there"), 5u);
  ASSERT_EQ(files->write(file, kFileSizeMax - 4, "edge"), 4u);
  EXPECT_EQ(files->getattr(file).size, kFileSizeMax);
  EXPECT_EQ(files->getattr(file).used, 3 * kBlockSize);
  EXPECT_EQ(files->read(file, far - 2, 8), std::string("\0\0here\0\0", 8));
  EXPECT_EQ(files->read(file, 0, 12), std::string("\0\0\0\0\0there\0\0", 12));
  EXPECT_EQ(files->read(file, uint64_t{1} << 33, 100000), std::string(100000, '\0'));
  EXPECT_EQ(files->read(file, kFileSizeMax - 4, 4), "edge");
  ASSERT_EQ(files->truncate(file, 8), NFS3_OK);
  EXPECT_EQ(files->getattr(file).used, kBlockSize);
  ASSERT_EQ(files->truncate(file, 64), NFS3_OK);
  EXPECT_EQ(files->read(file, 5, 8), std::string("the\0\0\0\0\0", 8));
}

TEST_P(MemdData, RefusesWhatLiesBeyondTheLargestFile) {
  start();
  const Handle file = files->create(root, "f");
  nfsstat3 status;
  files->write(file, kFileSizeMax - 1, "xy", FILE_SYNC, &status);
  EXPECT_EQ(status, NFS3ERR_FBIG);
  files->write(file, UINT64_MAX - 1, "xy", FILE_SYNC, &status);
  EXPECT_EQ(status, NFS3ERR_FBIG);
  EXPECT_EQ(files->truncate(file, kFileSizeMax + 1), NFS3ERR_FBIG);
  EXPECT_EQ(files->getattr(file).size, 0u);
}

TEST_P(MemdData, ReadStopsAtTheEnd) {
  start();
  const Handle file = files->create(root, "f");
  files->write(file, 0, "0123456789");
  bool eof = true;
  EXPECT_EQ(files->read(file, 0, 9, nullptr, &eof), "012345678");
  EXPECT_FALSE(eof);
  EXPECT_EQ(files->read(file, 8, 100, nullptr, &eof), "89");
  EXPECT_TRUE(eof);
  EXPECT_EQ(files->read(file, 10, 1, nullptr, &eof), "");
  EXPECT_TRUE(eof);
  EXPECT_EQ(files->read(file, UINT64_MAX, 1, nullptr, &eof), "");
  EXPECT_TRUE(eof);
}

TEST_P(MemdData, CutsTransfersToRtmaxAndWtmax) {
  ServerSettings settings;
  settings.service.rtmax = 4096;
  settings.service.wtmax = 8192;
  start(settings);
  const Handle file = files->create(root, "f");
  EXPECT_EQ(files->write(file, 0, std::string(10000, 'a')), 8192u);
  bool eof = true;
  EXPECT_EQ(files->read(file, 0, 8192, nullptr, &eof).size(), 4096u);
  EXPECT_FALSE(eof);
}

TEST_P(MemdData, WccDataTellTheStateBeforeAndAfter) {
  start();
  Handle file = files->create(root, "f");
  files->write(file, 0, "0123456789");
  const fattr3 before = files->getattr(file);
  std::string data = "abc";
  WRITE3args args = {};
  args.file = fh(file);
  args.offset = 20;
  args.count = 3;
  args.stable = UNSTABLE;
  args.data.data_len = 3;
  args.data.data_val = data.data();
  auto result = client->nfs(NFS3_WRITE, zdr_WRITE3args, args, zdr_WRITE3res);
  ASSERT_EQ(result->value.status, NFS3_OK);
  const wcc_data& wcc = result->value.WRITE3res_u.resok.file_wcc;
  ASSERT_TRUE(wcc.before.attributes_follow);
  ASSERT_TRUE(wcc.after.attributes_follow);
  const wcc_attr& was = wcc.before.pre_op_attr_u.attributes;
  EXPECT_EQ(was.size, 10u);
  EXPECT_EQ(was.ctime.seconds, before.ctime.seconds);
  EXPECT_EQ(was.ctime.nseconds, before.ctime.nseconds);
  EXPECT_EQ(was.mtime.nseconds, before.mtime.nseconds);
  const fattr3 after = files->getattr(file);
  const fattr3& told = wcc.after.post_op_attr_u.attributes;
  EXPECT_EQ(told.size, 23u);
  EXPECT_EQ(std::memcmp(&told, &after, sizeof told), 0);
  EXPECT_NE(std::memcmp(&told.ctime, &before.ctime, sizeof told.ctime), 0);
}

TEST_P(MemdData, GuardedSetattrNeedsTheCtime) {
  start();
  Handle file = files->create(root, "f");
  const fattr3 before = files->getattr(file);
  SETATTR3args args = {};
  args.object = fh(file);
  args.new_attributes.mode.set_it = 1;
  args.new_attributes.mode.set_mode3_u.mode = 0640;
  args.guard.check = 1;
  args.guard.sattrguard3_u.obj_ctime = before.ctime;
  EXPECT_EQ(client->nfs(NFS3_SETATTR, zdr_SETATTR3args, args, zdr_SETATTR3res)->value.status,
            NFS3_OK);
  EXPECT_EQ(files->getattr(file).mode, 0640u);
  args.new_attributes.mode.set_mode3_u.mode = 0600;
  EXPECT_EQ(client->nfs(NFS3_SETATTR, zdr_SETATTR3args, args, zdr_SETATTR3res)->value.status,
            NFS3ERR_NOT_SYNC);
  EXPECT_EQ(files->getattr(file).mode, 0640u);
}

TEST_P(MemdData, SetattrSetsTimesAndOwners) {
  start();
  Handle file = files->create(root, "f");
  SETATTR3args args = {};
  args.object = fh(file);
  args.new_attributes.uid.set_it = 1;
  args.new_attributes.uid.set_uid3_u.uid = 7;
  args.new_attributes.gid.set_it = 1;
  args.new_attributes.gid.set_gid3_u.gid = 8;
  args.new_attributes.atime.set_it = SET_TO_CLIENT_TIME;
  args.new_attributes.atime.set_atime_u.atime = {11, 12};
  args.new_attributes.mtime.set_it = SET_TO_CLIENT_TIME;
  args.new_attributes.mtime.set_mtime_u.mtime = {13, 14};
  ASSERT_EQ(client->nfs(NFS3_SETATTR, zdr_SETATTR3args, args, zdr_SETATTR3res)->value.status,
            NFS3_OK);
  const fattr3 now = files->getattr(file);
  EXPECT_EQ(now.uid, 7u);
  EXPECT_EQ(now.gid, 8u);
  EXPECT_EQ(now.atime.seconds, 11u);
  EXPECT_EQ(now.atime.nseconds, 12u);
  EXPECT_EQ(now.mtime.seconds, 13u);
  EXPECT_EQ(now.mtime.nseconds, 14u);
}

TEST_P(MemdData, CapacityEndsInNospcAndRemovalFreesIt) {
  ServerSettings settings;
  settings.store.capacity = 4 * kBlockSize;
  start(settings);
  const Handle file = files->create(root, "f");
  EXPECT_EQ(files->write(file, 0, std::string(3 * kBlockSize, 'a')), 3 * kBlockSize);
  // Only part fits: a short WRITE, as RFC 1813 allows, then NOSPC.
  EXPECT_EQ(files->write(file, 3 * kBlockSize, std::string(2 * kBlockSize, 'b')), kBlockSize);
  nfsstat3 status;
  files->write(file, 4 * kBlockSize, "c", FILE_SYNC, &status);
  EXPECT_EQ(status, NFS3ERR_NOSPC);
  EXPECT_EQ(files->write(file, 0, "over"), 4u) << "overwriting needs no room";
  Handle root_copy = root;
  FSSTAT3args args = {fh(root_copy)};
  auto stat = client->nfs(NFS3_FSSTAT, zdr_FSSTAT3args, args, zdr_FSSTAT3res);
  EXPECT_EQ(stat->value.FSSTAT3res_u.resok.tbytes, 4 * kBlockSize);
  EXPECT_EQ(stat->value.FSSTAT3res_u.resok.fbytes, 0u);
  EXPECT_EQ(files->remove(root, "f"), NFS3_OK);
  const Handle again = files->create(root, "g");
  EXPECT_EQ(files->write(again, 0, std::string(100, 'x')), 100u);
  EXPECT_EQ(files->read(again, 0, 200), std::string(100, 'x'));
  files->truncate(again, 200);
  EXPECT_EQ(files->read(again, 100, 100), std::string(100, '\0')) << "a used block was not zeroed";
}

TEST_P(MemdData, RefusesKindsThatHaveNoData) {
  start();
  const Handle dir = files->mkdir(root, "d");
  nfsstat3 status;
  files->read(dir, 0, 10, &status);
  EXPECT_EQ(status, NFS3ERR_ISDIR);
  files->write(dir, 0, "x", FILE_SYNC, &status);
  EXPECT_EQ(status, NFS3ERR_ISDIR);
  files->commit(dir, 0, 0, &status);
  EXPECT_EQ(status, NFS3ERR_ISDIR);
  EXPECT_EQ(files->truncate(dir, 0), NFS3ERR_ISDIR);
}

TEST_P(MemdData, HandlesOfRemovedFilesAreStaleAndForeignOnesBad) {
  for (const uint32_t length : {8u, 32u, 64u}) {
    ServerSettings settings;
    settings.store.handle_length = length;
    start(settings);
    ASSERT_EQ(root.size(), length);
    const Handle file = files->create(root, "f");
    EXPECT_EQ(files->remove(root, "f"), NFS3_OK);
    files->create(root, "g");  // takes the same place in the table
    nfsstat3 status;
    files->getattr(file, &status);
    EXPECT_EQ(status, NFS3ERR_STALE);
    files->read(file, 0, 1, &status);
    EXPECT_EQ(status, NFS3ERR_STALE);
    files->write(file, 0, "x", FILE_SYNC, &status);
    EXPECT_EQ(status, NFS3ERR_STALE);
    files->getattr("short", &status);
    EXPECT_EQ(status, NFS3ERR_BADHANDLE);
    files->getattr(std::string(length, '\xff'), &status);
    EXPECT_EQ(status, NFS3ERR_BADHANDLE);
  }
}

TEST_P(MemdData, ReadOnlyExportRefusesEveryChange) {
  ServerSettings settings;
  settings.store.read_only = true;
  start(settings);
  nfsstat3 status;
  files->create(root, "f", &status);
  EXPECT_EQ(status, NFS3ERR_ROFS);
  files->mkdir(root, "d", &status);
  EXPECT_EQ(status, NFS3ERR_ROFS);
  EXPECT_EQ(files->remove(root, "f"), NFS3ERR_ROFS);
  EXPECT_EQ(files->rename(root, "a", root, "b"), NFS3ERR_ROFS);
  EXPECT_EQ(files->truncate(root, 0), NFS3ERR_ROFS);
  Handle copy = root;
  ACCESS3args args = {fh(copy), 0x3f};
  auto access = client->nfs(NFS3_ACCESS, zdr_ACCESS3args, args, zdr_ACCESS3res);
  EXPECT_EQ(access->value.ACCESS3res_u.resok.access, uint32_t{kAccessRead | kAccessLookup});
}

TEST_P(MemdData, CheckAccessHonoursModeBits) {
  ServerSettings settings;
  settings.store.check_access = true;
  start(settings);
  client->identity = {100, 100};
  Handle file = files->create(root, "f");
  files->write(file, 0, "secret");
  SETATTR3args args = {};
  args.object = fh(file);
  args.new_attributes.mode.set_it = 1;
  args.new_attributes.mode.set_mode3_u.mode = 0600;
  ASSERT_EQ(client->nfs(NFS3_SETATTR, zdr_SETATTR3args, args, zdr_SETATTR3res)->value.status,
            NFS3_OK);
  client->identity = {200, 200};
  nfsstat3 status;
  files->read(file, 0, 6, &status);
  EXPECT_EQ(status, NFS3ERR_ACCES);
  files->write(file, 0, "x", FILE_SYNC, &status);
  EXPECT_EQ(status, NFS3ERR_ACCES);
  EXPECT_EQ(client->nfs(NFS3_SETATTR, zdr_SETATTR3args, args, zdr_SETATTR3res)->value.status,
            NFS3ERR_PERM);
  client->identity = {0, 0};
  EXPECT_EQ(files->read(file, 0, 6), "secret");
}

TEST_P(MemdData, SyntheticKeepsSizesOnly) {
  ServerSettings settings;
  settings.store.synthetic = true;
  settings.store.capacity = 1 << 20;
  start(settings);
  const Handle file = files->create(root, "f");
  EXPECT_EQ(files->write(file, 100000, "dropped"), 7u);
  EXPECT_EQ(files->getattr(file).size, 100007u);
  const std::string first = files->read(file, 0, 70000);
  ASSERT_EQ(first.size(), 70000u);
  EXPECT_TRUE(first == files->read(file, 4096, 70000));
  EXPECT_TRUE(first != std::string(70000, first[0]));
  nfsstat3 status;
  files->write(file, 2 << 20, "x", FILE_SYNC, &status);
  EXPECT_EQ(status, NFS3ERR_NOSPC);
}

TEST_P(MemdData, LossyRestartDropsExactlyWhatNoCommitCovered) {
  ServerSettings settings;
  settings.store.lossy = true;
  start(settings);
  const Handle file = files->create(root, "f");
  files->write(file, 0, std::string(3 * kBlockSize, 's'), FILE_SYNC);
  std::string old_verifier;
  files->write(file, 10, "uncommitted", UNSTABLE, nullptr, &old_verifier);
  files->write(file, kBlockSize + 10, "committed", UNSTABLE);
  EXPECT_EQ(files->commit(file, kBlockSize, kBlockSize), old_verifier);
  files->write(file, 2 * kBlockSize, "lost", UNSTABLE);
  files->write(file, 2 * kBlockSize + 1, "X", FILE_SYNC);
  files->write(file, 3 * kBlockSize, "grown", UNSTABLE);
  EXPECT_EQ(files->read(file, 2 * kBlockSize, 4), "lXst");

  server->store.simulate_restart();
  EXPECT_EQ(files->getattr(file).size, 3 * kBlockSize);
  EXPECT_EQ(files->read(file, 10, 11), std::string(11, 's'));
  EXPECT_EQ(files->read(file, kBlockSize + 10, 9), "committed");
  EXPECT_EQ(files->read(file, 2 * kBlockSize, 4), "sXss");
  const std::string new_verifier = files->commit(file, 0, 0);
  EXPECT_NE(new_verifier, old_verifier);
  EXPECT_EQ(files->getattr(file).used, 3 * kBlockSize);
}

TEST_P(MemdData, PartOfABlockCanBeCommitted) {
  ServerSettings settings;
  settings.store.lossy = true;
  start(settings);
  const Handle file = files->create(root, "f");
  files->write(file, 0, "aaaaaaaaaa", UNSTABLE);
  files->commit(file, 0, 5);
  server->store.simulate_restart();
  EXPECT_EQ(files->read(file, 0, 100), "aaaaa");
}

TEST_P(MemdData, WithoutLossyARestartChangesTheVerifierOnly) {
  ServerSettings settings;
  settings.service.verifier_change_after = 2;
  start(settings);
  const Handle file = files->create(root, "f");
  std::string first, second, third;
  files->write(file, 0, "a", UNSTABLE, nullptr, &first);
  files->write(file, 1, "b", UNSTABLE, nullptr, &second);
  files->write(file, 2, "c", UNSTABLE, nullptr, &third);
  EXPECT_EQ(first, second);
  EXPECT_NE(second, third);
  EXPECT_EQ(files->commit(file, 0, 0), third);
  EXPECT_EQ(files->read(file, 0, 3), "abc");
}

TEST(MemdBulk, ReadDataOutliveTruncationUntilReleased) {
  TestServer server({}, false);
  TestClient client(server);
  Files files(client);
  const Handle root = files.mount("/export");
  Handle file = files.create(root, "f");
  files.write(file, 0, std::string(kBlockSize, 'a'));
  READ3args args = {fh(file), 0, kBlockSize};
  const auto message = client.encode_call(kNfsProgram, kNfsVersion, NFS3_READ, zdr_READ3args, args);
  std::vector<std::byte> head(kReplyHeadMax);
  CallMessage call;
  call.head = message;
  ReplyMessage reply;
  reply.head = head;
  ASSERT_TRUE(server.service->handle(call, reply, client.counters));
  ASSERT_EQ(reply.bulk_spans, 1u);
  EXPECT_EQ(files.remove(root, "f"), NFS3_OK);
  const Handle other = files.create(root, "g");
  files.write(other, 0, std::string(kBlockSize, 'b'));
  EXPECT_EQ(std::memcmp(reply.bulk[0].data, std::string(kBlockSize, 'a').data(), kBlockSize), 0);
  server.service->release(reply.spans());
}

TEST(MemdBulk, TakesWriteDataApartFromTheHead) {
  TestServer server({}, false);
  TestClient client(server);
  Files files(client);
  Handle file = files.create(files.mount("/export"), "f");
  std::string data = "0123456789";
  WRITE3args args = {};
  args.file = fh(file);
  args.count = 10;
  args.stable = FILE_SYNC;
  args.data.data_len = 10;
  args.data.data_val = data.data();
  auto message = client.encode_call(kNfsProgram, kNfsVersion, NFS3_WRITE, zdr_WRITE3args, args);
  message.resize(message.size() - 12);  // as RPC-over-RDMA: up to the length word
  const ConstBytes bytes = std::as_bytes(std::span(data));
  const ConstBytes chunk[] = {bytes.first(3), bytes.subspan(3)};
  std::vector<std::byte> head(kReplyHeadMax);
  CallMessage call;
  call.head = message;
  call.bulk = chunk;
  call.bulk_apart = true;
  ReplyMessage reply;
  reply.head = head;
  ASSERT_TRUE(server.service->handle(call, reply, client.counters));
  EXPECT_EQ(files.read(file, 0, 100), data);
}

}  // namespace
}  // namespace nfsrdma::memd
