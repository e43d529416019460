// SPDX-License-Identifier: GPL-2.0-or-later
// Names and directories of the embedded server by RFC 1813, in-process and over TCP.
#include <algorithm>
#include <set>

#include "memd_client.h"

namespace nfsrdma::memd {
namespace {

class MemdNames : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { start({}); }
  void start(const ServerSettings& settings) {
    client.reset();
    server = std::make_unique<TestServer>(settings, GetParam());
    client = std::make_unique<TestClient>(*server);
    files = std::make_unique<Files>(*client);
    root = files->mount("/export");
  }

  struct Listing {
    std::vector<std::string> names;
    std::vector<uint64_t> cookies;
    std::string verifier = std::string(8, '\0');
    bool eof = false;
    nfsstat3 status = NFS3_OK;
  };

  /// One READDIRPLUS behind the last cookie of `listing`.
  void list_plus(Handle dir, Listing& listing, uint32_t maxcount) {
    READDIRPLUS3args args = {};
    args.dir = fh(dir);
    args.cookie = listing.cookies.empty() ? 0 : listing.cookies.back();
    std::memcpy(args.cookieverf, listing.verifier.data(), 8);
    args.dircount = maxcount;
    args.maxcount = maxcount;
    auto result = client->nfs(NFS3_READDIRPLUS, zdr_READDIRPLUS3args, args, zdr_READDIRPLUS3res);
    listing.status = result->value.status;
    if (listing.status != NFS3_OK) return;
    // The bound is on READDIRPLUS3resok: the RPC header and the status are not part of it.
    EXPECT_LE(result->bytes.size(), maxcount + kAcceptedHeaderLength);
    const auto& ok = result->value.READDIRPLUS3res_u.resok;
    listing.verifier.assign(ok.cookieverf, 8);
    listing.eof = ok.reply.eof != 0;
    for (const entryplus3* entry = ok.reply.entries; entry != nullptr; entry = entry->nextentry) {
      listing.names.emplace_back(entry->name);
      listing.cookies.push_back(entry->cookie);
      ASSERT_TRUE(entry->name_attributes.attributes_follow);
      ASSERT_TRUE(entry->name_handle.handle_follows);
      EXPECT_EQ(entry->name_attributes.post_op_attr_u.attributes.fileid, entry->fileid);
      const Handle handle = handle_of(entry->name_handle.post_op_fh3_u.handle);
      EXPECT_EQ(files->getattr(handle).fileid, entry->fileid) << entry->name;
    }
  }

  void list(Handle dir, Listing& listing, uint32_t count) {
    READDIR3args args = {};
    args.dir = fh(dir);
    args.cookie = listing.cookies.empty() ? 0 : listing.cookies.back();
    std::memcpy(args.cookieverf, listing.verifier.data(), 8);
    args.count = count;
    auto result = client->nfs(NFS3_READDIR, zdr_READDIR3args, args, zdr_READDIR3res);
    listing.status = result->value.status;
    if (listing.status != NFS3_OK) return;
    EXPECT_LE(result->bytes.size(), count + kAcceptedHeaderLength);
    const auto& ok = result->value.READDIR3res_u.resok;
    listing.verifier.assign(ok.cookieverf, 8);
    listing.eof = ok.reply.eof != 0;
    for (const entry3* entry = ok.reply.entries; entry != nullptr; entry = entry->nextentry) {
      listing.names.emplace_back(entry->name);
      listing.cookies.push_back(entry->cookie);
    }
  }

  std::unique_ptr<TestServer> server;
  std::unique_ptr<TestClient> client;
  std::unique_ptr<Files> files;
  Handle root;
};

INSTANTIATE_TEST_SUITE_P(Carriers, MemdNames, testing::Bool(),
                         [](const auto& over_tcp) { return over_tcp.param ? "Tcp" : "InProcess"; });

TEST_P(MemdNames, NamesUpTo255BytesOfAnyKind) {
  const std::string longest = std::string(253, 'n') + "\xc3\xa4";
  ASSERT_EQ(longest.size(), 255u);
  for (const std::string& name :
       {std::string("with space"), std::string("\xe2\x82\xac"), longest}) {
    const Handle made = files->create(root, name);
    EXPECT_EQ(files->lookup(root, name), made);
  }
  nfsstat3 status;
  files->create(root, std::string(256, 'n'), &status);
  EXPECT_EQ(status, NFS3ERR_NAMETOOLONG);
  files->lookup(root, std::string(256, 'n'), &status);
  EXPECT_EQ(status, NFS3ERR_NAMETOOLONG);
  EXPECT_EQ(files->remove(root, std::string(1000, 'n')), NFS3ERR_NAMETOOLONG);
  files->create(root, "a/b", &status);
  EXPECT_EQ(status, NFS3ERR_INVAL);
  files->create(root, "", &status);
  EXPECT_EQ(status, NFS3ERR_INVAL);
}

TEST_P(MemdNames, LookupKnowsDotAndDotdot) {
  const Handle dir = files->mkdir(root, "d");
  const Handle inner = files->mkdir(dir, "e");
  EXPECT_EQ(files->lookup(inner, "."), inner);
  EXPECT_EQ(files->lookup(inner, ".."), dir);
  EXPECT_EQ(files->lookup(root, ".."), root);
  nfsstat3 status;
  files->lookup(dir, "nothing", &status);
  EXPECT_EQ(status, NFS3ERR_NOENT);
  const Handle file = files->create(dir, "f");
  files->lookup(file, "x", &status);
  EXPECT_EQ(status, NFS3ERR_NOTDIR);
  files->create(file, "x", &status);
  EXPECT_EQ(status, NFS3ERR_NOTDIR);
}

TEST_P(MemdNames, CreateModes) {
  const Handle file = files->create(root, "f");
  files->write(file, 0, "data");
  nfsstat3 status;
  files->create(root, "f", &status, GUARDED);
  EXPECT_EQ(status, NFS3ERR_EXIST);
  EXPECT_EQ(files->create(root, "f", nullptr, UNCHECKED), file);
  EXPECT_EQ(files->getattr(file).size, 4u);
  std::string name = "f";
  Handle root_copy = root;
  CREATE3args args = {};
  args.where.dir = fh(root_copy);
  args.where.name = name.data();
  args.how.mode = UNCHECKED;
  args.how.createhow3_u.obj_attributes.size.set_it = 1;
  ASSERT_EQ(client->nfs(NFS3_CREATE, zdr_CREATE3args, args, zdr_CREATE3res)->value.status, NFS3_OK);
  EXPECT_EQ(files->getattr(file).size, 0u);
  files->mkdir(root, "d");
  files->create(root, "d", &status, UNCHECKED);
  EXPECT_EQ(status, NFS3ERR_EXIST);
}

TEST_P(MemdNames, ExclusiveCreateCanBeSentAgain) {
  std::string name = "x";
  Handle root_copy = root;
  CREATE3args args = {};
  args.where.dir = fh(root_copy);
  args.where.name = name.data();
  args.how.mode = EXCLUSIVE;
  std::memcpy(args.how.createhow3_u.verf, "verifier", 8);
  auto first = client->nfs(NFS3_CREATE, zdr_CREATE3args, args, zdr_CREATE3res);
  ASSERT_EQ(first->value.status, NFS3_OK);
  auto again = client->nfs(NFS3_CREATE, zdr_CREATE3args, args, zdr_CREATE3res);
  ASSERT_EQ(again->value.status, NFS3_OK);
  EXPECT_EQ(handle_of(first->value.CREATE3res_u.resok.obj.post_op_fh3_u.handle),
            handle_of(again->value.CREATE3res_u.resok.obj.post_op_fh3_u.handle));
  std::memcpy(args.how.createhow3_u.verf, "another1", 8);
  EXPECT_EQ(client->nfs(NFS3_CREATE, zdr_CREATE3args, args, zdr_CREATE3res)->value.status,
            NFS3ERR_EXIST);
}

TEST_P(MemdNames, RemoveAndRmdir) {
  const Handle dir = files->mkdir(root, "d");
  files->create(dir, "f");
  EXPECT_EQ(files->getattr(root).nlink, 3u);
  EXPECT_EQ(files->rmdir(root, "d"), NFS3ERR_NOTEMPTY);
  EXPECT_EQ(files->remove(root, "d"), NFS3ERR_ISDIR);
  EXPECT_EQ(files->rmdir(dir, "f"), NFS3ERR_NOTDIR);
  EXPECT_EQ(files->remove(dir, "nothing"), NFS3ERR_NOENT);
  EXPECT_EQ(files->rmdir(dir, "."), NFS3ERR_INVAL);
  EXPECT_EQ(files->rmdir(dir, ".."), NFS3ERR_EXIST);
  EXPECT_EQ(files->remove(dir, "f"), NFS3_OK);
  EXPECT_EQ(files->rmdir(root, "d"), NFS3_OK);
  EXPECT_EQ(files->getattr(root).nlink, 2u);
  nfsstat3 status;
  files->create(dir, "g", &status);
  EXPECT_EQ(status, NFS3ERR_STALE);
}

TEST_P(MemdNames, WccDataOfDirectories) {
  Handle dir = files->mkdir(root, "d");
  const fattr3 before = files->getattr(dir);
  std::string name = "f";
  CREATE3args args = {};
  args.where.dir = fh(dir);
  args.where.name = name.data();
  auto result = client->nfs(NFS3_CREATE, zdr_CREATE3args, args, zdr_CREATE3res);
  const wcc_data& wcc = result->value.CREATE3res_u.resok.dir_wcc;
  ASSERT_TRUE(wcc.before.attributes_follow && wcc.after.attributes_follow);
  EXPECT_EQ(
      std::memcmp(&wcc.before.pre_op_attr_u.attributes.ctime, &before.ctime, sizeof before.ctime),
      0);
  const fattr3 after = files->getattr(dir);
  EXPECT_EQ(std::memcmp(&wcc.after.post_op_attr_u.attributes, &after, sizeof after), 0);
  EXPECT_NE(std::memcmp(&after.mtime, &before.mtime, sizeof after.mtime), 0);
  // A refused call changes nothing and says so.
  args.how.mode = GUARDED;
  auto refused = client->nfs(NFS3_CREATE, zdr_CREATE3args, args, zdr_CREATE3res);
  ASSERT_EQ(refused->value.status, NFS3ERR_EXIST);
  const wcc_data& same = refused->value.CREATE3res_u.resfail.dir_wcc;
  ASSERT_TRUE(same.before.attributes_follow && same.after.attributes_follow);
  EXPECT_EQ(std::memcmp(&same.after.post_op_attr_u.attributes, &after, sizeof after), 0);
}

TEST_P(MemdNames, RenameOver) {
  const Handle dir = files->mkdir(root, "d");
  const Handle a = files->create(root, "a");
  const Handle b = files->create(dir, "b");
  EXPECT_EQ(files->rename(root, "a", dir, "b"), NFS3_OK);
  EXPECT_EQ(files->lookup(dir, "b"), a);
  nfsstat3 status;
  files->getattr(b, &status);
  EXPECT_EQ(status, NFS3ERR_STALE);
  files->lookup(root, "a", &status);
  EXPECT_EQ(status, NFS3ERR_NOENT);
  EXPECT_EQ(files->rename(dir, "b", dir, "c"), NFS3_OK);
  EXPECT_EQ(files->lookup(dir, "c"), a);
  files->lookup(dir, "b", &status);
  EXPECT_EQ(status, NFS3ERR_NOENT);
}

TEST_P(MemdNames, RenameOfDirectories) {
  const Handle d = files->mkdir(root, "d");
  const Handle e = files->mkdir(root, "e");
  const Handle inner = files->mkdir(d, "inner");
  files->create(e, "f");
  EXPECT_EQ(files->rename(root, "d", inner, "loop"), NFS3ERR_INVAL);
  EXPECT_EQ(files->rename(root, "d", d, "self"), NFS3ERR_INVAL);
  EXPECT_EQ(files->rename(root, "d", root, "e"), NFS3ERR_EXIST) << "not empty";
  EXPECT_EQ(files->rename(e, "f", root, "d"), NFS3ERR_EXIST) << "file over directory";
  EXPECT_EQ(files->rename(d, "inner", root, "moved"), NFS3_OK);
  EXPECT_EQ(files->lookup(inner, ".."), root);
  EXPECT_EQ(files->getattr(d).nlink, 2u);
  EXPECT_EQ(files->getattr(root).nlink, 5u);
  EXPECT_EQ(files->rename(root, "moved", root, "d"), NFS3_OK) << "over an empty directory";
  EXPECT_EQ(files->lookup(root, "d"), inner);
  EXPECT_EQ(files->getattr(root).nlink, 4u);
}

TEST_P(MemdNames, HardLinks) {
  const Handle file = files->create(root, "a");
  const Handle dir = files->mkdir(root, "d");
  files->write(file, 0, "data");
  EXPECT_EQ(files->link(file, dir, "b"), NFS3_OK);
  EXPECT_EQ(files->getattr(file).nlink, 2u);
  EXPECT_EQ(files->link(file, dir, "b"), NFS3ERR_EXIST);
  EXPECT_EQ(files->link(dir, root, "x"), NFS3ERR_INVAL);
  EXPECT_EQ(files->rename(root, "a", dir, "b"), NFS3_OK) << "two names of one file";
  EXPECT_EQ(files->lookup(root, "a"), file);
  EXPECT_EQ(files->remove(root, "a"), NFS3_OK);
  EXPECT_EQ(files->read(file, 0, 10), "data");
  EXPECT_EQ(files->getattr(file).nlink, 1u);
  EXPECT_EQ(files->remove(dir, "b"), NFS3_OK);
  nfsstat3 status;
  files->getattr(file, &status);
  EXPECT_EQ(status, NFS3ERR_STALE);
}

TEST_P(MemdNames, SymlinksAndSpecialFiles) {
  std::string name = "l";
  std::string target = "some/where";
  Handle dir = root;
  SYMLINK3args args = {};
  args.where.dir = fh(dir);
  args.where.name = name.data();
  args.symlink.symlink_data = target.data();
  auto made = client->nfs(NFS3_SYMLINK, zdr_SYMLINK3args, args, zdr_SYMLINK3res);
  ASSERT_EQ(made->value.status, NFS3_OK);
  Handle link = files->lookup(root, "l");
  READLINK3args read_args = {fh(link)};
  auto read = client->nfs(NFS3_READLINK, zdr_READLINK3args, read_args, zdr_READLINK3res);
  ASSERT_EQ(read->value.status, NFS3_OK);
  EXPECT_STREQ(read->value.READLINK3res_u.resok.data, "some/where");
  EXPECT_EQ(files->getattr(link).type, NF3LNK);
  EXPECT_EQ(files->getattr(link).size, target.size());

  name = "n";
  MKNOD3args node = {};
  node.where.dir = fh(dir);
  node.where.name = name.data();
  node.what.type = NF3CHR;
  node.what.mknoddata3_u.chr_device.spec = {5, 6};
  ASSERT_EQ(client->nfs(NFS3_MKNOD, zdr_MKNOD3args, node, zdr_MKNOD3res)->value.status, NFS3_OK);
  const fattr3 attributes = files->getattr(files->lookup(root, "n"));
  EXPECT_EQ(attributes.type, NF3CHR);
  EXPECT_EQ(attributes.rdev.specdata1, 5u);
  EXPECT_EQ(attributes.rdev.specdata2, 6u);
  nfsstat3 status;
  files->read(files->lookup(root, "n"), 0, 1, &status);
  EXPECT_EQ(status, NFS3ERR_INVAL);
  node.what.type = NF3DIR;
  name = "o";
  EXPECT_EQ(client->nfs(NFS3_MKNOD, zdr_MKNOD3args, node, zdr_MKNOD3res)->value.status,
            NFS3ERR_BADTYPE);
}

TEST_P(MemdNames, ManyEntriesOverManyCalls) {
  const Handle dir = files->mkdir(root, "d");
  std::set<std::string> expected = {".", ".."};
  for (int i = 0; i < 700; ++i) {
    const std::string name = numbered("file-", i).append(static_cast<size_t>(i % 40), 'x');
    files->create(dir, name);
    expected.insert(name);
  }
  for (const bool plus : {true, false}) {
    Listing listing;
    uint32_t calls = 0;
    while (!listing.eof && ++calls < 1000) {
      plus ? list_plus(dir, listing, 4096) : list(dir, listing, 1024);
      ASSERT_EQ(listing.status, NFS3_OK);
    }
    EXPECT_GT(calls, 10u);
    EXPECT_EQ(listing.names.size(), expected.size()) << "each name once";
    EXPECT_EQ(std::set<std::string>(listing.names.begin(), listing.names.end()), expected);
  }
}

TEST_P(MemdNames, CookiesSurviveRemovalsInBetween) {
  const Handle dir = files->mkdir(root, "d");
  for (int i = 0; i < 100; ++i) files->create(dir, numbered("f", i));
  Listing listing;
  list(dir, listing, 1024);
  ASSERT_FALSE(listing.eof);
  const std::vector<std::string> seen = listing.names;
  for (const std::string& name : seen) files->remove(dir, name);  // the last cookie's, too
  EXPECT_EQ(files->remove(dir, "f99"), NFS3_OK);
  files->create(dir, "late");
  while (!listing.eof && listing.status == NFS3_OK) list(dir, listing, 1024);
  ASSERT_EQ(listing.status, NFS3_OK);
  std::set<std::string> names(listing.names.begin(), listing.names.end());
  EXPECT_EQ(names.size(), listing.names.size());
  EXPECT_EQ(names.count("f99"), 0u);
  EXPECT_EQ(names.count("late"), 1u);
  for (int i = 0; i < 99; ++i) EXPECT_EQ(names.count(numbered("f", i)), 1u) << i;
}

TEST_P(MemdNames, ReaddirErrors) {
  Listing listing;
  list(root, listing, 64);
  EXPECT_EQ(listing.status, NFS3ERR_TOOSMALL);
  list_plus(root, listing, 64);
  EXPECT_EQ(listing.status, NFS3ERR_TOOSMALL);
  listing = {};
  listing.cookies.push_back(1);
  listing.verifier = "notours!";
  list(root, listing, 4096);
  EXPECT_EQ(listing.status, NFS3ERR_BAD_COOKIE);
  listing = {};
  list(files->create(root, "f"), listing, 4096);
  EXPECT_EQ(listing.status, NFS3ERR_NOTDIR);
}

TEST_P(MemdNames, FilesMaxEndsInNospc) {
  ServerSettings settings;
  settings.store.files_max = 3;
  start(settings);
  files->create(root, "a");
  files->mkdir(root, "b");
  nfsstat3 status;
  files->create(root, "c", &status);
  EXPECT_EQ(status, NFS3ERR_NOSPC);
  EXPECT_EQ(files->rmdir(root, "b"), NFS3_OK);
  files->create(root, "c");
}

TEST_P(MemdNames, ExportsAreFileSystemsOfTheirOwn) {
  ServerSettings settings;
  settings.store.exports = {"/export", "/export/inner", "/other"};
  start(settings);
  const Handle inner = files->mount("/export/inner");
  const Handle other = files->mount("/other");
  EXPECT_NE(files->getattr(root).fsid, files->getattr(other).fsid);
  const Handle file = files->create(root, "f");
  EXPECT_EQ(files->link(file, other, "f"), NFS3ERR_XDEV);
  EXPECT_EQ(files->rename(root, "f", inner, "f"), NFS3ERR_XDEV);
}

TEST_P(MemdNames, MountOfPaths) {
  const Handle dir = files->mkdir(root, "d");
  const Handle deep = files->mkdir(dir, "e");
  files->create(root, "f");
  EXPECT_EQ(files->mount("/export/d/e"), deep);
  EXPECT_EQ(files->mount("/export//d/"), dir);
  uint32_t status;
  files->mount("/export/nothing", &status);
  EXPECT_EQ(status, uint32_t{MNT3ERR_NOENT});
  files->mount("/exportd", &status);
  EXPECT_EQ(status, uint32_t{MNT3ERR_NOENT});
  files->mount("/export/f", &status);
  EXPECT_EQ(status, uint32_t{MNT3ERR_NOTDIR});
  ServerSettings settings;
  settings.service.mount_exports_only = true;
  start(settings);
  files->mount("/export/d", &status);
  EXPECT_EQ(status, uint32_t{MNT3ERR_ACCES});
}

}  // namespace
}  // namespace nfsrdma::memd
