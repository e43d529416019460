// SPDX-License-Identifier: GPL-2.0-or-later
#include "nfs3_control.h"

#include <gtest/gtest.h>
#include <nfsc/libnfs-raw-nfs.h>

#include <cerrno>
#include <deque>
#include <random>

#include "nfs3_status.h"
#include "rpc_script.h"
#include "sync_caller.h"
#include "zdr_codec.h"

namespace nfsrdma {
namespace {

using testing::accepted;
using testing::CallWords;
using testing::entry;
using testing::FakeTransport;
using testing::Script;
using testing::to_hex;
using testing::XdrText;

FileHandle handle(std::string_view text) {
  return *FileHandle::from(std::as_bytes(std::span(text)));
}

/// A peer that gives its replies in order, the last one again and again.
class Nfs3ControlTest : public ::testing::Test {
 protected:
  Nfs3ControlTest()
      : transport_([this](ConstBytes call) { return answer(call); }),
        caller_(transport_, caller_config()),
        nfs_(caller_, control_config()) {}

  static SyncCallerConfig caller_config() {
    SyncCallerConfig config;
    config.server = "host:2049";
    config.credential = Credential::none();
    return config;
  }
  static Nfs3ControlConfig control_config() {
    Nfs3ControlConfig config;
    config.server = "host:2049";
    config.uid = 1000;
    config.gid = 100;
    config.jukebox_tries = 4;
    config.jukebox_first_ms = 1;
    config.jukebox_longest_ms = 2;
    return config;
  }

  Script answer(ConstBytes call) {
    const XdrText reply = replies_.empty() ? XdrText() : replies_.front();
    if (replies_.size() > 1) replies_.pop_front();
    Script script = accepted(call, reply);
    script.retransmissions = retransmissions_;
    return script;
  }
  void reply(XdrText text) { replies_ = {std::move(text)}; }
  void then(XdrText text) { replies_.push_back(std::move(text)); }

  CallWords last() { return testing::read_call(transport_.calls().back()); }
  std::string last_arguments(NfsProcedure procedure) {
    const CallWords words = last();
    EXPECT_EQ(words.program, 100003u);
    EXPECT_EQ(words.version, 3u);
    EXPECT_EQ(words.procedure, static_cast<uint32_t>(procedure));
    return to_hex(words.arguments);
  }
  size_t calls() { return transport_.calls().size(); }

  std::deque<XdrText> replies_;
  uint32_t retransmissions_ = 0;
  FakeTransport transport_;
  SyncCaller caller_;
  Nfs3Control nfs_;
};

template <typename T>
void expect_error(const Result<T>& result, int code, std::initializer_list<const char*> words) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << result.error().text;
  for (const char* word : words) {
    EXPECT_NE(result.error().text.find(word), std::string::npos)
        << word << ": " << result.error().text;
  }
  EXPECT_EQ(result.error().text.find('\n'), std::string::npos);
}

TEST_F(Nfs3ControlTest, Null) {
  EXPECT_TRUE(nfs_.null());
  EXPECT_EQ(last_arguments(NfsProcedure::kNull), "");
}

TEST_F(Nfs3ControlTest, Getattr) {
  reply(XdrText().u32(0).fattr3(1, 0x123456789a));
  auto got = nfs_.getattr(handle("abcde"), "file");
  ASSERT_TRUE(got) << got.error().text;
  EXPECT_EQ(last_arguments(NfsProcedure::kGetattr),
            "00000005"
            "6162636465000000");
  EXPECT_EQ(got->type, FileType::kRegular);
  EXPECT_EQ(got->mode, 0644u);
  EXPECT_EQ(got->nlink, 1u);
  EXPECT_EQ(got->uid, 1000u);
  EXPECT_EQ(got->gid, 1001u);
  EXPECT_EQ(got->size, 0x123456789au);
  EXPECT_EQ(got->used, 0x123456789au + 4096);
  EXPECT_EQ(got->rdev_major, 8u);
  EXPECT_EQ(got->rdev_minor, 9u);
  EXPECT_EQ(got->fsid, 0xf51du);
  EXPECT_EQ(got->fileid, 0x123456789abcdef0u);
  EXPECT_EQ(got->atime, (Time{11, 12}));
  EXPECT_EQ(got->mtime, (Time{21, 22}));
  EXPECT_EQ(got->ctime, (Time{31, 32}));
}

TEST_F(Nfs3ControlTest, Setattr) {
  reply(XdrText().u32(0).no_wcc());
  SetAttributes set;
  set.size = 0x10000000000;
  ASSERT_TRUE(nfs_.setattr(handle("h"), set, "file"));
  EXPECT_EQ(last_arguments(NfsProcedure::kSetattr),
            "00000001"
            "68000000"  // handle
            "00000000"
            "00000000"
            "00000000"  // mode, uid, gid: left
            "00000001"
            "0000010000000000"  // size
            "00000000"
            "00000000"    // atime, mtime: left
            "00000000");  // no guard
  set = {};
  set.mode = 0600;
  set.mtime = Time{5, 6};
  ASSERT_TRUE(nfs_.setattr(handle("h"), set, "file"));
  EXPECT_EQ(last_arguments(NfsProcedure::kSetattr),
            "00000001"
            "68000000"
            "00000001"
            "00000180"
            "00000000"
            "00000000"
            "00000000"
            "00000000"
            "00000002"
            "00000005"
            "00000006"
            "00000000");
  set.mtime_of_server = true;
  ASSERT_TRUE(nfs_.setattr(handle("h"), set, "file"));
  EXPECT_EQ(last_arguments(NfsProcedure::kSetattr),
            "00000001"
            "68000000"
            "00000001"
            "00000180"
            "00000000"
            "00000000"
            "00000000"
            "00000000"
            "00000001"
            "00000000");
}

TEST_F(Nfs3ControlTest, Lookup) {
  reply(XdrText().u32(0).opaque("found").post_op_attr(2, 4096).u32(0));
  auto node = nfs_.lookup(handle("dir"), "a b");
  ASSERT_TRUE(node) << node.error().text;
  EXPECT_EQ(last_arguments(NfsProcedure::kLookup),
            "00000003"
            "64697200"
            "00000003"
            "61206200");
  EXPECT_EQ(node->handle, handle("found"));
  ASSERT_TRUE(node->attributes);
  EXPECT_EQ(node->attributes->type, FileType::kDirectory);
  reply(XdrText().u32(0).opaque("found").u32(0).post_op_attr(2, 1));
  node = nfs_.lookup(handle("dir"), "a");
  ASSERT_TRUE(node);
  EXPECT_FALSE(node->attributes);
}

TEST_F(Nfs3ControlTest, NamesOf255BytesAndNotMore) {
  reply(XdrText().u32(0).opaque("found").u32(0).u32(0));
  std::string name;
  while (name.size() < 254) name += "\xc3\xa4";
  name += "x";
  ASSERT_TRUE(nfs_.lookup(handle(std::string(64, 'h')), name));
  XdrText expected;
  expected.opaque(std::string(64, 'h')).opaque(name);
  EXPECT_EQ(last_arguments(NfsProcedure::kLookup), to_hex(expected.bytes()));
  ASSERT_FALSE(nfs_.rename(handle(std::string(64, 'h')), name, handle(std::string(64, 'i')), name));
  expected.opaque(std::string(64, 'i')).opaque(name);
  EXPECT_EQ(last_arguments(NfsProcedure::kRename), to_hex(expected.bytes()));

  const size_t before = calls();
  expect_error(nfs_.lookup(handle("d"), name + "y"), ENAMETOOLONG, {"256", "255"});
  expect_error(nfs_.create(handle("d"), name + "y", CreateMode::kUnchecked, {}), ENAMETOOLONG, {});
  expect_error(nfs_.mkdir(handle("d"), "", 0755), EINVAL, {"not a name"});
  expect_error(nfs_.remove(handle("d"), ".."), EINVAL, {"not a name"});
  expect_error(nfs_.rmdir(handle("d"), "."), EINVAL, {"not a name"});
  expect_error(nfs_.rename(handle("d"), "a", handle("d"), "b/c"), EINVAL, {"slash"});
  expect_error(nfs_.lookup(handle("d"), std::string("a\0b", 3)), EINVAL, {"NUL"});
  EXPECT_EQ(calls(), before);
}

TEST_F(Nfs3ControlTest, Access) {
  reply(XdrText().u32(0).u32(0).u32(0xff));
  auto granted = nfs_.access(handle("h"), kAccessRead | kAccessModify, "file");
  ASSERT_TRUE(granted);
  EXPECT_EQ(*granted, 0x05u);
  EXPECT_EQ(last_arguments(NfsProcedure::kAccess),
            "00000001"
            "68000000"
            "00000005");
}

TEST_F(Nfs3ControlTest, Create) {
  reply(XdrText().u32(0).u32(1).opaque("new").post_op_attr(1, 0).no_wcc());
  SetAttributes set;
  set.mode = 0644;
  auto node = nfs_.create(handle("d"), "f", CreateMode::kUnchecked, set);
  ASSERT_TRUE(node) << node.error().text;
  EXPECT_EQ(node->handle, handle("new"));
  const std::string where =
      "00000001"
      "64000000"
      "00000001"
      "66000000";
  const std::string attributes =
      "00000001"
      "000001a4"
      "00000000"
      "00000000"
      "00000000"
      "00000000"
      "00000000";
  EXPECT_EQ(last_arguments(NfsProcedure::kCreate), where + "00000000" + attributes);
  ASSERT_TRUE(nfs_.create(handle("d"), "f", CreateMode::kGuarded, set));
  EXPECT_EQ(last_arguments(NfsProcedure::kCreate), where + "00000001" + attributes);
}

TEST_F(Nfs3ControlTest, CreateExclusiveSetsAttributesAfterwards) {
  reply(XdrText().u32(0).u32(1).opaque("new").u32(0).no_wcc());
  then(XdrText().u32(0).no_wcc());
  SetAttributes set;
  set.mode = 0644;
  ASSERT_TRUE(nfs_.create(handle("d"), "f", CreateMode::kExclusive, set));
  ASSERT_EQ(calls(), 2u);
  const CallWords create = testing::read_call(transport_.calls()[0]);
  EXPECT_EQ(create.procedure, 8u);
  ASSERT_EQ(create.arguments.size(), 28u);
  EXPECT_EQ(to_hex(ConstBytes(create.arguments).first(20)),
            "00000001"
            "64000000"
            "00000001"
            "66000000"
            "00000002");
  EXPECT_EQ(last_arguments(NfsProcedure::kSetattr).substr(0, 32),
            "00000003"
            "6e657700"
            "00000001"
            "000001a4");
  // Another file, another verifier.
  reply(XdrText().u32(0).u32(1).opaque("new").u32(0).no_wcc());
  then(XdrText().u32(0).no_wcc());
  ASSERT_TRUE(nfs_.create(handle("d"), "f", CreateMode::kExclusive, set));
  EXPECT_NE(to_hex(testing::read_call(transport_.calls()[2]).arguments), to_hex(create.arguments));
}

TEST_F(Nfs3ControlTest, CreateWithoutHandleLooksUp) {
  reply(XdrText().u32(0).u32(0).u32(0).no_wcc());
  then(XdrText().u32(0).opaque("found").u32(0).u32(0));
  auto node = nfs_.create(handle("d"), "f", CreateMode::kUnchecked, {});
  ASSERT_TRUE(node) << node.error().text;
  EXPECT_EQ(node->handle, handle("found"));
  EXPECT_EQ(last().procedure, 3u);
}

TEST_F(Nfs3ControlTest, MkdirRemoveRmdirRename) {
  reply(XdrText().u32(0).u32(1).opaque("new").post_op_attr(2, 0).no_wcc());
  ASSERT_TRUE(nfs_.mkdir(handle("d"), "s", 0755));
  EXPECT_EQ(last_arguments(NfsProcedure::kMkdir),
            "00000001"
            "64000000"
            "00000001"
            "73000000"
            "00000001"
            "000001ed"
            "00000000"
            "00000000"
            "00000000"
            "00000000"
            "00000000");
  reply(XdrText().u32(0).no_wcc());
  ASSERT_TRUE(nfs_.remove(handle("d"), "f"));
  EXPECT_EQ(last_arguments(NfsProcedure::kRemove),
            "00000001"
            "64000000"
            "00000001"
            "66000000");
  ASSERT_TRUE(nfs_.rmdir(handle("d"), "s"));
  EXPECT_EQ(last_arguments(NfsProcedure::kRmdir),
            "00000001"
            "64000000"
            "00000001"
            "73000000");
  reply(XdrText().u32(0).no_wcc().no_wcc());
  ASSERT_TRUE(nfs_.rename(handle("d"), "f", handle("e"), "g"));
  EXPECT_EQ(last_arguments(NfsProcedure::kRename),
            "00000001"
            "64000000"
            "00000001"
            "66000000"
            "00000001"
            "65000000"
            "00000001"
            "67000000");
}

TEST_F(Nfs3ControlTest, ArgumentsDecodeWithLibnfs) {
  reply(XdrText().u32(0).no_wcc().no_wcc());
  std::mt19937 random(1813);
  for (int i = 0; i < 300; i++) {
    std::string one(random() % 65, ' '), other(random() % 65, ' ');
    for (char& byte : one) byte = static_cast<char>(random());
    for (char& byte : other) byte = static_cast<char>(random());
    const std::string from(1 + random() % 255, 'f'), to(1 + random() % 255, 't');
    ASSERT_TRUE(nfs_.rename(handle(one), from, handle(other), to));
    const CallWords words = last();
    const ZdrResults<RENAME3args> decoded(words.arguments, zdr_RENAME3args);
    ASSERT_TRUE(decoded.ok());
    const RENAME3args& args = decoded.value();
    EXPECT_EQ(std::string(args.from.dir.data.data_val, args.from.dir.data.data_len), one);
    EXPECT_EQ(std::string(args.to.dir.data.data_val, args.to.dir.data.data_len), other);
    EXPECT_EQ(args.from.name, from);
    EXPECT_EQ(args.to.name, to);
  }
}

TEST_F(Nfs3ControlTest, Fsinfo) {
  reply(XdrText()
            .u32(0)
            .post_op_attr(2, 0)
            .u32(1)
            .u32(2)
            .u32(3)
            .u32(4)
            .u32(5)
            .u32(6)
            .u32(7)
            .u64(1ull << 43)
            .u32(8)
            .u32(9)
            .u32(0x1b));
  auto info = nfs_.fsinfo(handle("h"), "/");
  ASSERT_TRUE(info) << info.error().text;
  EXPECT_EQ(last_arguments(NfsProcedure::kFsinfo),
            "00000001"
            "68000000");
  EXPECT_EQ(info->rtmax, 1u);
  EXPECT_EQ(info->rtpref, 2u);
  EXPECT_EQ(info->rtmult, 3u);
  EXPECT_EQ(info->wtmax, 4u);
  EXPECT_EQ(info->wtpref, 5u);
  EXPECT_EQ(info->wtmult, 6u);
  EXPECT_EQ(info->dtpref, 7u);
  EXPECT_EQ(info->maxfilesize, 1ull << 43);
  EXPECT_EQ(info->time_delta, (Time{8, 9}));
  EXPECT_EQ(info->properties, 0x1bu);
  reply(XdrText().u32(0).u32(0).u32(0).u32(2).u32(3).u32(4).u32(5).u32(6).u32(7).u64(8).u64(9).u32(
      0));
  expect_error(nfs_.fsinfo(handle("h"), "/"), EPROTO, {"rtmax"});
}

TEST_F(Nfs3ControlTest, FsstatAndPathconf) {
  reply(XdrText().u32(0).u32(0).u64(1).u64(2).u64(3).u64(4).u64(5).u64(6).u32(7));
  auto stat = nfs_.fsstat(handle("h"), "/");
  ASSERT_TRUE(stat) << stat.error().text;
  EXPECT_EQ(stat->tbytes, 1u);
  EXPECT_EQ(stat->fbytes, 2u);
  EXPECT_EQ(stat->abytes, 3u);
  EXPECT_EQ(stat->tfiles, 4u);
  EXPECT_EQ(stat->ffiles, 5u);
  EXPECT_EQ(stat->afiles, 6u);
  EXPECT_EQ(stat->invarsec, 7u);
  reply(XdrText().u32(0).u32(0).u32(32000).u32(255).u32(1).u32(0).u32(0).u32(1));
  auto conf = nfs_.pathconf(handle("h"), "/");
  ASSERT_TRUE(conf) << conf.error().text;
  EXPECT_EQ(conf->linkmax, 32000u);
  EXPECT_EQ(conf->name_max, 255u);
  EXPECT_TRUE(conf->no_trunc);
  EXPECT_FALSE(conf->chown_restricted);
  EXPECT_FALSE(conf->case_insensitive);
  EXPECT_TRUE(conf->case_preserving);
}

TEST_F(Nfs3ControlTest, ReaddirplusGoesOnWithCookieAndVerifier) {
  const XdrText head = XdrText().u32(0).u32(0).u64(0x1122334455667788);
  reply(entry(entry(head, ".", 1), "a", 2).u32(0).u32(0));
  then(entry(head, "b", 7).u32(0).u32(1));
  auto entries = nfs_.readdirplus(handle("d"), 10, "dir");
  ASSERT_TRUE(entries) << entries.error().text;
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_EQ((*entries)[0].fileid, 102u);
  EXPECT_EQ((*entries)[0].attributes->size, 2u);
  EXPECT_EQ((*entries)[0].handle, handle("ha"));
  EXPECT_EQ((*entries)[1].name, "b");
  EXPECT_EQ(to_hex(testing::read_call(transport_.calls()[0]).arguments),
            "00000001"
            "64000000"
            "0000000000000000"
            "0000000000000000"
            "00002000"
            "00008000");
  EXPECT_EQ(last_arguments(NfsProcedure::kReaddirplus),
            "00000001"
            "64000000"
            "0000000000000002"
            "1122334455667788"
            "00002000"
            "00008000");
}

TEST_F(Nfs3ControlTest, ReaddirplusStartsAgainWhenTheVerifierChanged) {
  const XdrText head = XdrText().u32(0).u32(0).u64(1);
  reply(entry(head, "a", 1).u32(0).u32(0));
  then(XdrText().u32(10003).u32(0));
  then(entry(entry(head, "a", 1), "b", 2).u32(0).u32(1));
  auto entries = nfs_.readdirplus(handle("d"), 10, "dir");
  ASSERT_TRUE(entries) << entries.error().text;
  EXPECT_EQ(entries->size(), 2u);
  reply(entry(head, "a", 1).u32(0).u32(0));
  then(XdrText().u32(10003).u32(0));
  expect_error(nfs_.readdirplus(handle("d"), 10, "dir"), EBADF, {"BAD_COOKIE"});
}

TEST_F(Nfs3ControlTest, ReaddirplusIsBounded) {
  const XdrText head = XdrText().u32(0).u32(0).u64(1);
  reply(entry(head, "a", 1).u32(0).u32(0));  // the same page for ever
  expect_error(nfs_.readdirplus(handle("d"), 20, "dir"), E2BIG, {"more than 20"});
  EXPECT_LE(calls(), 23u);
  reply(XdrText(head).u32(0).u32(0));  // neither entry nor end
  expect_error(nfs_.readdirplus(handle("d"), 20, "dir"), EPROTO, {"neither"});
  reply(entry(head, ".", 1).u32(0).u32(0));
  expect_error(nfs_.readdirplus(handle("d"), 20, "dir"), E2BIG, {});
}

TEST_F(Nfs3ControlTest, EveryStatusHasErrnoAndWords) {
  for (uint32_t status = 1; status < 10010; status++) {
    if (nfs3_name(status).empty() || status == 10008) continue;
    reply(XdrText().u32(status).u32(0).u32(0));
    expect_error(nfs_.getattr(handle("h"), "dir/file"), nfs3_errno(status),
                 {"NFS GETATTR", "\"dir/file\"", "host:2049", nfs3_name(status).data()});
  }
  reply(XdrText().u32(4711));
  expect_error(nfs_.getattr(handle("h"), "file"), EPROTO, {"status 4711"});
}

TEST_F(Nfs3ControlTest, RightsNameUidAndWhatToChange) {
  for (const uint32_t status : {1, 13}) {
    reply(XdrText().u32(status).no_wcc());
    expect_error(nfs_.create(handle("d"), "f", CreateMode::kUnchecked, {}), nfs3_errno(status),
                 {"uid 1000", "gid 100", "auth_uid=", "reserved_port=yes", "insecure"});
  }
  Nfs3ControlConfig config = control_config();
  config.uid = 0;
  Nfs3Control as_root(caller_, config);
  expect_error(as_root.mkdir(handle("d"), "f", 0755), EACCES, {"uid 0", "no_root_squash"});
  reply(XdrText().u32(30).no_wcc());
  expect_error(nfs_.mkdir(handle("d"), "f", 0755), EROFS, {"read-only", "rw"});
  reply(XdrText().u32(28).no_wcc());
  expect_error(nfs_.mkdir(handle("d"), "f", 0755), ENOSPC, {"room"});
}

TEST_F(Nfs3ControlTest, JukeboxIsWaitedForWithNewCalls) {
  reply(XdrText().u32(10008).u32(0));
  then(XdrText().u32(10008).u32(0));
  then(XdrText().u32(0).fattr3(1, 5));
  ASSERT_TRUE(nfs_.getattr(handle("h"), "file"));
  ASSERT_EQ(calls(), 3u);
  EXPECT_NE(load_be32(transport_.calls()[0].data()), load_be32(transport_.calls()[1].data()));
  reply(XdrText().u32(10008).u32(0));
  expect_error(nfs_.getattr(handle("h"), "file"), EAGAIN, {"NFS3ERR_JUKEBOX", "after 4 calls"});
  EXPECT_EQ(calls(), 7u);
}

TEST_F(Nfs3ControlTest, NoentAfterARetransmissionIsSuccess) {
  reply(XdrText().u32(2).no_wcc());
  expect_error(nfs_.remove(handle("d"), "f"), ENOENT, {"NFS3ERR_NOENT"});
  expect_error(nfs_.rmdir(handle("d"), "f"), ENOENT, {"NFS RMDIR"});
  retransmissions_ = 1;
  EXPECT_TRUE(nfs_.remove(handle("d"), "f"));
  EXPECT_TRUE(nfs_.rmdir(handle("d"), "f"));
  reply(XdrText().u32(13).no_wcc());
  expect_error(nfs_.remove(handle("d"), "f"), EACCES, {});
}

TEST_F(Nfs3ControlTest, RenameAfterARetransmission) {
  retransmissions_ = 1;
  reply(XdrText().u32(2).no_wcc().no_wcc());
  then(XdrText().u32(0).opaque("found").u32(0).u32(0));
  EXPECT_TRUE(nfs_.rename(handle("d"), "f", handle("d"), "g"));
  reply(XdrText().u32(2).no_wcc().no_wcc());  // and LOOKUP says NOENT too
  expect_error(nfs_.rename(handle("d"), "f", handle("d"), "g"), ENOENT, {"NFS RENAME"});
}

TEST_F(Nfs3ControlTest, ExistAfterARetransmission) {
  const XdrText exists = XdrText().u32(17).no_wcc();
  const XdrText empty_file = XdrText().u32(0).opaque("found").post_op_attr(1, 0).u32(0);
  reply(exists);
  then(empty_file);
  expect_error(nfs_.create(handle("d"), "f", CreateMode::kGuarded, {}), EEXIST, {"NFS CREATE"});
  retransmissions_ = 1;
  reply(exists);
  then(empty_file);
  auto node = nfs_.create(handle("d"), "f", CreateMode::kGuarded, {});
  ASSERT_TRUE(node) << node.error().text;
  EXPECT_EQ(node->handle, handle("found"));
  // A file with data is not the one that was just made; nor is a directory.
  reply(exists);
  then(XdrText().u32(0).opaque("found").post_op_attr(1, 1).u32(0));
  expect_error(nfs_.create(handle("d"), "f", CreateMode::kGuarded, {}), EEXIST, {});
  reply(exists);
  then(XdrText().u32(0).opaque("found").post_op_attr(2, 0).u32(0));
  expect_error(nfs_.create(handle("d"), "f", CreateMode::kGuarded, {}), EEXIST, {});
  reply(exists);
  then(XdrText().u32(0).opaque("found").post_op_attr(2, 0).u32(0));
  EXPECT_TRUE(nfs_.mkdir(handle("d"), "f", 0755));
}

}  // namespace
}  // namespace nfsrdma
