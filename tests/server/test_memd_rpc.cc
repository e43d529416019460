// SPDX-License-Identifier: GPL-2.0-or-later
// RPC, MOUNT, records and faults of the embedded server, and libnfs as an independent client.
#include <nfsc/libnfs.h>

#include <algorithm>
#include <thread>

#include "memd_client.h"
#include "transport.h"  // now_ns()

namespace nfsrdma::memd {
namespace {

std::vector<std::byte> raw_call(std::initializer_list<uint32_t> words) {
  std::vector<std::byte> call(words.size() * 4);
  XdrWriter out(call);
  for (const uint32_t word : words) out.u32(word);
  return call;
}

std::vector<uint32_t> words_of(ConstBytes bytes) {
  std::vector<uint32_t> words;
  XdrReader in(bytes);
  while (in.left() >= 4) words.push_back(in.u32());
  return words;
}

using Words = std::vector<uint32_t>;

TEST(MemdRpc, AnswersOddCallsAsRfc5531Says) {
  TestServer server({}, false);
  TestClient client(server);
  const auto ask = [&](std::initializer_list<uint32_t> call) {
    return words_of(client.exchange(raw_call(call)));
  };
  EXPECT_EQ(ask({7, 0, 2, 100003, 3, 0, 0, 0, 0, 0}), (Words{7, 1, 0, 0, 0, 0}));
  EXPECT_EQ(ask({7, 0, 3, 100003, 3, 0, 0, 0, 0, 0}), (Words{7, 1, 1, 0, 2, 2})) << "RPC version";
  EXPECT_EQ(ask({7, 0, 2, 100003, 4, 0, 0, 0, 0, 0}), (Words{7, 1, 0, 0, 0, 2, 3, 3}));
  EXPECT_EQ(ask({7, 0, 2, 100005, 1, 0, 0, 0, 0, 0}), (Words{7, 1, 0, 0, 0, 2, 3, 3}));
  EXPECT_EQ(ask({7, 0, 2, 100099, 1, 0, 0, 0, 0, 0}), (Words{7, 1, 0, 0, 0, 1})) << "program";
  EXPECT_EQ(ask({7, 0, 2, 100003, 3, 22, 0, 0, 0, 0}), (Words{7, 1, 0, 0, 0, 3})) << "procedure";
  EXPECT_EQ(ask({7, 0, 2, 100003, 3, 1, 0, 0, 0, 0, 65}), (Words{7, 1, 0, 0, 0, 4})) << "garbage";
  EXPECT_EQ(ask({7, 0, 2, 100003, 3, 6, 0, 0, 0, 0}), (Words{7, 1, 0, 0, 0, 4}));
  EXPECT_EQ(ask({7, 0, 2, 100003, 3, 1, 6, 0, 0, 0}), (Words{7, 1, 1, 1, 2})) << "RPCSEC_GSS";
  EXPECT_EQ(ask({7, 0, 2, 100003, 3, 1, 1, 4, 0, 0, 0}), (Words{7, 1, 1, 1, 1})) << "short body";
  EXPECT_TRUE(ask({7, 1, 0, 0, 0, 0}).empty()) << "a reply is no call";
  EXPECT_TRUE(ask({7, 0}).empty());
}

TEST(MemdRpc, EveryTruncationOfACallIsRefused) {
  TestServer server({}, false);
  TestClient client(server);
  Files files(client);
  Handle file = files.create(files.mount("/export"), "f");
  std::string data = "0123456789";
  WRITE3args args = {};
  args.file = fh(file);
  args.count = args.data.data_len = 10;
  args.data.data_val = data.data();
  const auto call = client.encode_call(kNfsProgram, kNfsVersion, NFS3_WRITE, zdr_WRITE3args, args);
  for (size_t length = 0; length < call.size(); ++length) {
    const auto reply = words_of(client.exchange(ConstBytes(call).first(length)));
    if (!reply.empty()) {
      EXPECT_NE(reply, (Words{client.xid, 1, 0, 0, 0, 0})) << length;
      EXPECT_EQ(reply.size(), reply[2] == 0 ? 6u : 5u) << length;
    }
  }
  EXPECT_EQ(files.getattr(file).size, 0u);
}

TEST(MemdMount, ExportDumpAndUmount) {
  ServerSettings settings;
  settings.store.exports = {"/export", "/second one"};
  TestServer server(settings, false);
  TestClient client(server);
  Files files(client);
  files.mount("/second one");
  char nothing = 0;
  const auto no_args = +[](ZDR*, char*) -> uint32_t { return 1; };
  auto exports_list =
      client.call(kMountProgram, kMountVersion, MOUNT3_EXPORT, no_args, nothing, zdr_exports);
  ASSERT_NE(exports_list->value, nullptr);
  EXPECT_STREQ(exports_list->value->ex_dir, "/export");
  ASSERT_NE(exports_list->value->ex_next, nullptr);
  EXPECT_STREQ(exports_list->value->ex_next->ex_dir, "/second one");
  EXPECT_EQ(exports_list->value->ex_next->ex_next, nullptr);
  auto dump =
      client.call(kMountProgram, kMountVersion, MOUNT3_DUMP, no_args, nothing, zdr_mountlist);
  ASSERT_NE(dump->value, nullptr);
  EXPECT_STREQ(dump->value->ml_hostname, "in-process");
  EXPECT_STREQ(dump->value->ml_directory, "/second one");
  client.call(kMountProgram, kMountVersion, MOUNT3_UMNTALL, no_args, nothing, no_args);
  dump = client.call(kMountProgram, kMountVersion, MOUNT3_DUMP, no_args, nothing, zdr_mountlist);
  EXPECT_EQ(dump->value, nullptr);
}

TEST(MemdMount, GetportNamesThePort) {
  TestServer server({}, true);
  TestClient client(server);
  for (const auto& [program, port] : {std::pair{kNfsProgram, server.tcp->port()},
                                      {kMountProgram, server.tcp->port()},
                                      {100021u, uint16_t{0}}}) {
    auto reply =
        words_of(client.exchange(raw_call({1, 0, 2, 100000, 2, 3, 0, 0, 0, 0, program, 3, 6, 0})));
    EXPECT_EQ(reply, (Words{1, 1, 0, 0, 0, 0, port}));
  }
}

/// A server with faults and one file of known bytes.
class FaultyServer {
 public:
  explicit FaultyServer(const std::vector<std::string>& faults, uint64_t delay_ns = 0) {
    ServerSettings settings;
    settings.faults = faults;
    settings.tcp.delay_ns = delay_ns;
    settings.tcp.late_ns = 30'000'000;
    server = std::make_unique<TestServer>(settings, true);
    client = std::make_unique<TestClient>(*server);
    files = std::make_unique<Files>(*client);
    root = files->mount("/export");
    file = files->create(root, "f");
    files->write(file, 0, "0123456789");
  }
  std::vector<std::byte> read_call(uint32_t count) {
    READ3args args = {fh(file), 0, count};
    return client->encode_call(kNfsProgram, kNfsVersion, NFS3_READ, zdr_READ3args, args);
  }

  std::unique_ptr<TestServer> server;
  std::unique_ptr<TestClient> client;
  std::unique_ptr<Files> files;
  Handle root;
  Handle file;
};

TEST(MemdTcp, ReassemblesCallsInManyFragmentsAndByteByByte) {
  FaultyServer faulty({});
  const RecordSocket socket(faulty.server->tcp->port());
  const auto call = faulty.read_call(10);
  socket.send_bytes(frame_record(call, true));
  const auto first = socket.receive_record();
  ASSERT_EQ(first.size(), 24 + 4 + 4 + 84 + 12 + 12u);
  EXPECT_EQ(std::memcmp(first.data() + 128, "0123456789\0\0", 12), 0);
  const auto record = frame_record(call, false);
  for (const std::byte& byte : record) socket.send_bytes({&byte, 1});
  EXPECT_EQ(socket.receive_record(), first);
}

TEST(MemdTcp, AnswersManyCallsOfOneSegmentInOrder) {
  FaultyServer faulty({});
  const RecordSocket socket(faulty.server->tcp->port());
  std::vector<std::byte> batch;
  const uint32_t calls = 3000;
  uint32_t first_xid = 0;
  for (uint32_t i = 0; i < calls; ++i) {
    const auto record = frame_record(faulty.read_call(10), false);
    if (i == 0) first_xid = faulty.client->xid;
    batch.insert(batch.end(), record.begin(), record.end());
  }
  std::thread sender([&] { socket.send_bytes(batch); });
  for (uint32_t i = 0; i < calls; ++i) {
    const auto reply = socket.receive_record();
    ASSERT_GE(reply.size(), 128u);
    EXPECT_EQ(load_be32(reply.data()), first_xid + i);
  }
  sender.join();
}

TEST(MemdTcp, AClientThatDoesNotReadIsHeldBackAndLosesNothing) {
  FaultyServer faulty({});
  const std::string big(kTransferMax, 'z');
  faulty.files->write(faulty.file, 0, big);
  const RecordSocket socket(faulty.server->tcp->port());
  const uint32_t calls = 200;  // 200 MiB of replies against a queue of a few
  std::vector<std::byte> batch;
  for (uint32_t i = 0; i < calls; ++i) {
    const auto record = frame_record(faulty.read_call(kTransferMax), false);
    batch.insert(batch.end(), record.begin(), record.end());
  }
  socket.send_bytes(batch);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  for (uint32_t i = 0; i < calls; ++i) {
    const auto reply = socket.receive_record();
    ASSERT_EQ(reply.size(), 128 + kTransferMax);
    ASSERT_EQ(std::memcmp(reply.data() + 128, big.data(), kTransferMax), 0);
  }
}

TEST(MemdTcp, ClosesOnRecordsThatAreTooLongAndOnGarbage) {
  FaultyServer faulty({});
  {
    const RecordSocket socket(faulty.server->tcp->port());
    socket.send_bytes(raw_call({0xffffffff, 1, 2}));
    EXPECT_TRUE(socket.receive_record().empty());
  }
  {
    const RecordSocket socket(faulty.server->tcp->port());
    // Fragments are counted together.
    std::vector<std::byte> fragment(4 + 700000);
    store_be32(fragment.data(), 700000);
    send(socket.fd(), fragment.data(), fragment.size(), MSG_NOSIGNAL);
    send(socket.fd(), fragment.data(), fragment.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(socket.receive_record().empty());
  }
  EXPECT_EQ(faulty.files->read(faulty.file, 0, 10), "0123456789") << "others are served on";
}

TEST(MemdTcp, SeveralLoopsServeSeveralConnections) {
  ServerSettings settings;
  settings.tcp.threads = 3;
  TestServer server(settings, true);
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&server, t] {
      TestClient client(server);
      Files files(client);
      const Handle root = files.mount("/export");
      const Handle own = files.mkdir(root, numbered("d", t));
      for (int i = 0; i < 100; ++i) {
        const std::string name = numbered("f", i);
        const Handle file = files.create(own, name);
        const std::string data(1000 + static_cast<size_t>(i) * 100, static_cast<char>('a' + t));
        files.write(file, 70000, data);
        EXPECT_EQ(files.read(file, 70000, 100000), data);
        if (i % 2 == 0) {
          EXPECT_EQ(files.rename(own, name, root, numbered(name.c_str(), t)), NFS3_OK);
        }
        if (i % 3 == 0 && i % 2 != 0) {
          EXPECT_EQ(files.remove(own, name), NFS3_OK);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(MemdFaults, RefusesWhatItDoesNotKnow) {
  FaultPlan plan;
  EXPECT_FALSE(plan.add("nonsense"));
  EXPECT_FALSE(plan.add("drop:0"));
  EXPECT_FALSE(plan.add("drop:x"));
  EXPECT_FALSE(plan.add("drop:1:NOPROC"));
  EXPECT_FALSE(plan.add("short-read:1:WRITE"));
  EXPECT_FALSE(plan.add("drop:1:READ:1:2"));
  EXPECT_FALSE(plan.any());
  EXPECT_TRUE(plan.add("drop:3:READ+WRITE:2"));
  std::string struck;
  for (int i = 0; i < 12; ++i) struck += plan.fires(Fault::kDrop, NFS3_READ) ? 'x' : '.';
  EXPECT_EQ(struck, "..x..x......");
  EXPECT_FALSE(plan.fires(Fault::kDrop, NFS3_COMMIT));
}

TEST(MemdFaults, ProtocolFaultsSpoilTheResult) {
  FaultyServer faulty({"short-read", "short-write:2", "commit-error", "jukebox:1:GETATTR"});
  bool eof = true;
  EXPECT_EQ(faulty.files->read(faulty.file, 0, 8, nullptr, &eof), "0123");
  EXPECT_FALSE(eof);
  EXPECT_EQ(faulty.files->write(faulty.file, 0, "abcdef"), 3u);
  nfsstat3 status;
  faulty.files->commit(faulty.file, 0, 0, &status);
  EXPECT_EQ(status, NFS3ERR_IO);
  faulty.files->getattr(faulty.file, &status);
  EXPECT_EQ(status, NFS3ERR_JUKEBOX);
  EXPECT_EQ(faulty.files->getattr(faulty.file, &status).size, 10u);
  EXPECT_EQ(status, NFS3_OK);
}

TEST(MemdFaults, ZeroWriteLongReadAndWrongVerifier) {
  FaultyServer faulty({"zero-write:2", "long-read", "wrong-verifier"});
  std::string first, second;
  EXPECT_EQ(faulty.files->write(faulty.file, 0, "x", UNSTABLE, nullptr, &first), 0u);
  EXPECT_EQ(faulty.files->write(faulty.file, 0, "x", UNSTABLE, nullptr, &second), 1u);
  EXPECT_NE(first, second);
  EXPECT_EQ(faulty.files->read(faulty.file, 0, 4).size(), 8u);
}

TEST(MemdFaults, AuthErrorAndMismatch) {
  FaultyServer auth({"auth-error:1:READ"});
  const auto denied = words_of(auth.client->exchange(auth.read_call(1)));
  EXPECT_EQ(denied, (Words{auth.client->xid, 1, 1, 1, 1}));
  FaultyServer mismatch({"prog-mismatch:1:READ"});
  const auto version = words_of(mismatch.client->exchange(mismatch.read_call(1)));
  EXPECT_EQ(version, (Words{mismatch.client->xid, 1, 0, 0, 0, 2, 4, 4}));
}

TEST(MemdFaults, UnreservedPortsAreDenied) {
  ServerSettings settings;
  settings.faults = {"deny-unreserved"};
  TestServer server(settings, true);
  TestClient client(server);
  Files files(client);
  uint32_t status;
  files.mount("/export", &status);
  EXPECT_EQ(status, uint32_t{MNT3ERR_ACCES});
  const auto reply = words_of(client.exchange(raw_call({1, 0, 2, 100003, 3, 1, 0, 0, 0, 0, 0})));
  EXPECT_EQ(reply, (Words{1, 1, 1, 1, 5}));
}

TEST(MemdFaults, FragmentsTrickleAndDuplicatesKeepTheBytes) {
  FaultyServer plain({});
  const auto expected = plain.client->exchange(plain.read_call(10));
  for (const char* fault : {"fragment:1:READ", "trickle:1:READ"}) {
    FaultyServer faulty({fault});
    const RecordSocket socket(faulty.server->tcp->port());
    socket.send_record(faulty.read_call(10));
    uint32_t fragments = 0;
    const auto reply = socket.receive_record(&fragments);
    ASSERT_EQ(reply.size(), expected.size()) << fault;
    EXPECT_EQ(std::memcmp(reply.data() + 128, "0123456789\0\0", 12), 0);
    if (fault[0] == 'f') {
      EXPECT_GT(fragments, 3u);
    }
  }
  FaultyServer twice({"dup-reply:1:READ"});
  const RecordSocket socket(twice.server->tcp->port());
  socket.send_record(twice.read_call(10));
  const auto first = socket.receive_record();
  EXPECT_EQ(first.size(), expected.size());
  EXPECT_EQ(socket.receive_record(), first);
}

TEST(MemdFaults, BadXidGarbageAndHugeRecord) {
  FaultyServer faulty({"bad-xid:2:READ", "garbage:3:READ", "huge-record:5:READ"});
  const RecordSocket socket(faulty.server->tcp->port());
  const auto good = [&](uint32_t) {
    socket.send_record(faulty.read_call(10));
    return socket.receive_record();
  };
  const auto first = good(1);
  EXPECT_EQ(load_be32(first.data()), faulty.client->xid);
  const auto second = good(2);
  EXPECT_NE(load_be32(second.data()), faulty.client->xid);
  const auto third = good(3);
  EXPECT_EQ(load_be32(third.data()), faulty.client->xid);
  EXPECT_NE(std::memcmp(third.data() + 4, first.data() + 4, first.size() - 4), 0);
  good(4);
  socket.send_record(faulty.read_call(10));
  std::byte marker[4];
  ASSERT_TRUE(socket.receive_bytes(marker));
  EXPECT_EQ(load_be32(marker), UINT32_MAX);
}

TEST(MemdFaults, CloseAndDrop) {
  {
    FaultyServer faulty({"close:1:READ"});
    const RecordSocket socket(faulty.server->tcp->port());
    socket.send_record(faulty.read_call(10));
    std::byte head[40];
    EXPECT_TRUE(socket.receive_bytes(head)) << "half of the reply comes";
    std::byte rest[200];
    EXPECT_FALSE(socket.receive_bytes(rest));
  }
  {
    FaultyServer faulty({"close-before:1:READ"});
    const RecordSocket socket(faulty.server->tcp->port());
    socket.send_record(faulty.read_call(10));
    EXPECT_TRUE(socket.receive_record().empty());
  }
  FaultyServer faulty({"drop:2:READ"});
  const RecordSocket socket(faulty.server->tcp->port());
  for (int i = 0; i < 3; ++i) socket.send_record(faulty.read_call(10));
  EXPECT_EQ(load_be32(socket.receive_record().data()), faulty.client->xid - 2);
  EXPECT_EQ(load_be32(socket.receive_record().data()), faulty.client->xid);
}

TEST(MemdFaults, ReorderedRepliesAreAllThere) {
  FaultyServer faulty({"reorder:1:READ"});
  const RecordSocket socket(faulty.server->tcp->port());
  std::vector<std::byte> batch;
  for (int i = 0; i < 8; ++i) {
    const auto record = frame_record(faulty.read_call(10), false);
    batch.insert(batch.end(), record.begin(), record.end());
  }
  socket.send_bytes(batch);
  Words xids;
  for (int i = 0; i < 8; ++i) xids.push_back(load_be32(socket.receive_record().data()));
  EXPECT_FALSE(std::is_sorted(xids.begin(), xids.end()));
  std::sort(xids.begin(), xids.end());
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(xids[i], faulty.client->xid - 7 + i);
}

TEST(MemdFaults, DelayedAndLateRepliesDoNotHoldUpOthers) {
  FaultyServer faulty({"late:2:READ"}, 5'000'000);
  const RecordSocket socket(faulty.server->tcp->port());
  const uint64_t begin_ns = now_ns();
  socket.send_record(faulty.read_call(10));
  socket.send_record(faulty.read_call(10));
  const uint32_t late = faulty.client->xid;
  socket.send_record(faulty.read_call(10));
  Words order;
  for (int i = 0; i < 3; ++i) order.push_back(load_be32(socket.receive_record().data()));
  EXPECT_EQ(order, (Words{late - 1, late + 1, late}));
  EXPECT_GE(now_ns() - begin_ns, 35'000'000u);
}

/// Fails the test with libnfs's words.
#define NFS_OK(expression)                                              \
  do {                                                                  \
    const int result_ = (expression);                                   \
    ASSERT_GE(result_, 0) << #expression << ": " << nfs_get_error(nfs); \
  } while (false)

TEST(MemdLibnfs, MountsReadsWritesAndLists) {
  TestServer server({}, true);
  std::unique_ptr<nfs_context, decltype(&nfs_destroy_context)> context(nfs_init_context(),
                                                                       nfs_destroy_context);
  nfs_context* const nfs = context.get();
  const std::string port = std::to_string(server.tcp->port());
  const std::string url = "nfs://127.0.0.1/export?version=3&nfsport=" + port + "&mountport=" + port;
  nfs_url* parsed = nfs_parse_url_dir(nfs, url.c_str());
  ASSERT_NE(parsed, nullptr) << nfs_get_error(nfs);
  NFS_OK(nfs_mount(nfs, parsed->server, parsed->path));
  nfs_destroy_url(parsed);

  NFS_OK(nfs_mkdir(nfs, "/dir"));
  nfsfh* file = nullptr;
  NFS_OK(nfs_open2(nfs, "/dir/file", O_CREAT | O_RDWR, 0644, &file));
  std::string data(300000, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 31 + i / 1000);
  EXPECT_EQ(nfs_pwrite(nfs, file, 12345, data.size(), data.data()), int(data.size()));
  NFS_OK(nfs_fsync(nfs, file));
  std::string back(data.size(), '\0');
  EXPECT_EQ(nfs_pread(nfs, file, 12345, back.size(), back.data()), int(back.size()));
  EXPECT_EQ(back, data);
  NFS_OK(nfs_ftruncate(nfs, file, 20000));
  nfs_stat_64 stat = {};
  NFS_OK(nfs_fstat64(nfs, file, &stat));
  EXPECT_EQ(stat.nfs_size, 20000u);
  NFS_OK(nfs_close(nfs, file));
  NFS_OK(nfs_symlink(nfs, "file", "/dir/link"));
  NFS_OK(nfs_rename(nfs, "/dir/file", "/dir/renamed"));

  nfsdir* dir = nullptr;
  NFS_OK(nfs_opendir(nfs, "/dir", &dir));
  std::vector<std::string> names;
  while (const nfsdirent* entry = nfs_readdir(nfs, dir)) names.emplace_back(entry->name);
  nfs_closedir(nfs, dir);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{".", "..", "link", "renamed"}));
  NFS_OK(nfs_unlink(nfs, "/dir/renamed"));
  NFS_OK(nfs_unlink(nfs, "/dir/link"));
  NFS_OK(nfs_rmdir(nfs, "/dir"));
  NFS_OK(nfs_umount(nfs));
}

}  // namespace
}  // namespace nfsrdma::memd
