// SPDX-License-Identifier: GPL-2.0-or-later
// Replies of the control procedures, spoilt: never a crash, never taken for a good one.
#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "nfs3_control.h"
#include "rpc_script.h"
#include "sync_caller.h"

namespace nfsrdma {
namespace {

using testing::accepted;
using testing::CallWords;
using testing::entry;
using testing::FakeTransport;
using testing::Script;
using testing::XdrText;

FileHandle handle(std::string_view text) {
  return *FileHandle::from(std::as_bytes(std::span(text)));
}

/// Valid replies of every procedure, for the tests that spoil them.
struct Sample {
  const char* name;
  XdrText reply;
  std::function<bool(Nfs3Control&)> call;  ///< true: taken as a success
};
std::vector<Sample> samples() {
  const FileHandle dir = handle("directory");
  const XdrText made = XdrText()
                           .u32(0)
                           .u32(1)
                           .opaque("new handle")
                           .post_op_attr(1, 0)
                           .u32(1)
                           .u64(1)
                           .u64(2)
                           .u64(3)
                           .post_op_attr(2, 9);
  XdrText list = XdrText().u32(0).post_op_attr(2, 9).u64(0x1122334455667788);
  for (uint64_t i = 1; i < 5; i++) list = entry(list, std::string(i, 'n'), i);
  list.u32(0).u32(1);
  return {
      {"GETATTR", XdrText().u32(0).fattr3(1, 5),
       [=](Nfs3Control& nfs) { return nfs.getattr(dir, "x").has_value(); }},
      {"LOOKUP", XdrText().u32(0).opaque("found it").post_op_attr(1, 5).post_op_attr(2, 6),
       [=](Nfs3Control& nfs) { return nfs.lookup(dir, "x").has_value(); }},
      {"ACCESS", XdrText().u32(0).post_op_attr(1, 5).u32(1),
       [=](Nfs3Control& nfs) { return nfs.access(dir, 1, "x").has_value(); }},
      {"CREATE", made,
       [=](Nfs3Control& nfs) {
         return nfs.create(dir, "x", CreateMode::kGuarded, {}).has_value();
       }},
      {"MKDIR", made, [=](Nfs3Control& nfs) { return nfs.mkdir(dir, "x", 0755).has_value(); }},
      {"REMOVE", XdrText().u32(0).u32(1).u64(1).u64(2).u64(3).post_op_attr(2, 9),
       [=](Nfs3Control& nfs) { return nfs.remove(dir, "x").has_value(); }},
      {"RENAME", XdrText().u32(0).no_wcc().u32(1).u64(1).u64(2).u64(3).post_op_attr(2, 9),
       [=](Nfs3Control& nfs) { return nfs.rename(dir, "x", dir, "y").has_value(); }},
      {"SETATTR", XdrText().u32(0).u32(1).u64(1).u64(2).u64(3).post_op_attr(2, 9),
       [=](Nfs3Control& nfs) { return nfs.setattr(dir, {}, "x").has_value(); }},
      {"READDIRPLUS", list,
       [=](Nfs3Control& nfs) { return nfs.readdirplus(dir, 100, "x").has_value(); }},
      {"FSINFO",
       XdrText()
           .u32(0)
           .post_op_attr(2, 9)
           .u32(1)
           .u32(2)
           .u32(3)
           .u32(4)
           .u32(5)
           .u32(6)
           .u32(7)
           .u64(8)
           .u64(9)
           .u32(10),
       [=](Nfs3Control& nfs) { return nfs.fsinfo(dir, "x").has_value(); }},
      {"FSSTAT",
       XdrText().u32(0).post_op_attr(2, 9).u64(1).u64(2).u64(3).u64(4).u64(5).u64(6).u32(7),
       [=](Nfs3Control& nfs) { return nfs.fsstat(dir, "x").has_value(); }},
      {"PATHCONF", XdrText().u32(0).post_op_attr(2, 9).u32(1).u32(2).u32(1).u32(1).u32(0).u32(1),
       [=](Nfs3Control& nfs) { return nfs.pathconf(dir, "x").has_value(); }},
  };
}

/// Calls `sample` against a peer that answers with these bytes.
bool call_with(const Sample& sample, ConstBytes reply) {
  FakeTransport transport([&](ConstBytes call) {
    Script script = accepted(call, {});
    script.reply.insert(script.reply.end(), reply.begin(), reply.end());
    return script;
  });
  SyncCallerConfig caller_config;
  caller_config.server = "host:2049";
  caller_config.credential = Credential::none();
  SyncCaller caller(transport, caller_config);
  Nfs3ControlConfig config;
  config.jukebox_tries = 1;
  Nfs3Control nfs(caller, config);
  return sample.call(nfs);
}

TEST(Nfs3ControlReplies, EveryTruncationIsAnError) {
  for (const Sample& sample : samples()) {
    const auto& whole = sample.reply.bytes();
    EXPECT_TRUE(call_with(sample, whole)) << sample.name;
    for (size_t length = 0; length < whole.size(); length++) {
      EXPECT_FALSE(call_with(sample, ConstBytes(whole).first(length)))
          << sample.name << " of " << length << " bytes";
    }
  }
}

TEST(Nfs3ControlReplies, BitFlipsNeverEscape) {
  for (const Sample& sample : samples()) {
    std::vector<std::byte> reply = sample.reply.bytes();
    for (size_t bit = 0; bit < reply.size() * 8; bit++) {
      const std::byte mask{static_cast<uint8_t>(1u << (bit % 8))};
      reply[bit / 8] ^= mask;
      (void)call_with(sample, reply);
      reply[bit / 8] ^= mask;
    }
  }
}

TEST(Nfs3ControlReplies, RandomWordsNeverEscape) {
  std::mt19937 random(100003);
  constexpr uint32_t kEdges[] = {0,   1,          2,          3,          64,        65,
                                 255, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff};
  for (const Sample& sample : samples()) {
    for (int i = 0; i < 400; i++) {
      std::vector<std::byte> reply = sample.reply.bytes();
      for (uint32_t n = 1 + random() % 3; n > 0; n--) {
        const size_t word = random() % (reply.size() / 4);
        store_be32(&reply[word * 4], kEdges[random() % std::size(kEdges)]);
      }
      reply.resize(reply.size() - random() % 4 * 4);
      (void)call_with(sample, reply);
    }
  }
}

}  // namespace
}  // namespace nfsrdma
