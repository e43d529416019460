// SPDX-License-Identifier: GPL-2.0-or-later
#include "mount_client.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "nfs3_status.h"
#include "reply_shape.h"
#include "rpc_script.h"
#include "sync_caller.h"

namespace nfsrdma {
namespace {

using testing::accepted;
using testing::FakeTransport;
using testing::XdrText;

class MountClientTest : public ::testing::Test {
 protected:
  MountClientTest()
      : transport_([this](ConstBytes call) { return accepted(call, reply_); }),
        caller_(transport_, config()),
        client_(caller_, "host:20048") {}

  static SyncCallerConfig config() {
    SyncCallerConfig config;
    config.server = "host:20048";
    config.credential = Credential::none();
    return config;
  }
  std::string arguments() {
    const auto words = testing::read_call(transport_.calls().back());
    return std::to_string(words.program) + " " + std::to_string(words.version) + " " +
           std::to_string(words.procedure) + " " + testing::to_hex(words.arguments);
  }

  XdrText reply_;
  FakeTransport transport_;
  SyncCaller caller_;
  MountClient client_;
};

TEST_F(MountClientTest, Mnt) {
  reply_.u32(0).opaque("0123456789abcdefg").u32(2).u32(390003).u32(1);
  auto handle = client_.mnt("/data");
  ASSERT_TRUE(handle) << handle.error().text;
  EXPECT_EQ(testing::to_hex(handle->span()), "3031323334353637383961626364656667");
  EXPECT_EQ(arguments(), "100005 3 1 000000052f64617461000000");
}

TEST_F(MountClientTest, HandlesOfAllLengths) {
  for (const size_t length : {0, 1, 63, 64}) {
    reply_ = XdrText().u32(0).opaque(std::string(length, 'h')).u32(0);
    auto handle = client_.mnt("/data");
    ASSERT_TRUE(handle) << length;
    EXPECT_EQ(handle->length, length);
  }
  reply_ = XdrText().u32(0).opaque(std::string(65, 'h')).u32(0);
  EXPECT_EQ(client_.mnt("/data").error().code, EPROTO);
}

TEST_F(MountClientTest, FlavorsWithoutAuthSysAreNamed) {
  reply_.u32(0).opaque("handle").u32(2).u32(390003).u32(390004);
  auto handle = client_.mnt("/data");
  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code, EPROTONOSUPPORT);
  EXPECT_NE(handle.error().text.find("krb5, krb5i"), std::string::npos) << handle.error().text;
  EXPECT_NE(handle.error().text.find("sec=sys"), std::string::npos);
}

TEST_F(MountClientTest, EveryRefusal) {
  for (const uint32_t status : {1, 2, 5, 13, 20, 22, 63, 10004, 10006, 4711}) {
    reply_ = XdrText().u32(status);
    auto handle = client_.mnt("/data/x");
    ASSERT_FALSE(handle);
    EXPECT_EQ(handle.error().code, mount3_errno(status));
    EXPECT_NE(handle.error().text.find(mount3_words(status)), std::string::npos);
    EXPECT_NE(handle.error().text.find("/data/x"), std::string::npos);
    EXPECT_NE(handle.error().text.find("host:20048"), std::string::npos);
  }
}

TEST_F(MountClientTest, Umnt) {
  EXPECT_TRUE(client_.umnt("/d"));
  EXPECT_EQ(arguments(), "100005 3 3 000000022f640000");
  EXPECT_EQ(client_.umnt("/" + std::string(1024, 'd')).error().code, ENAMETOOLONG);
}

TEST_F(MountClientTest, Exports) {
  reply_.u32(1).opaque("/data").u32(1).opaque("10.0.0.0/8").u32(1).opaque("*.lab").u32(0);
  reply_.u32(1).opaque("/open").u32(0);
  reply_.u32(0);
  auto exports = client_.exports();
  ASSERT_TRUE(exports) << exports.error().text;
  ASSERT_EQ(exports->size(), 2u);
  EXPECT_EQ((*exports)[0].path, "/data");
  EXPECT_EQ((*exports)[0].groups, (std::vector<std::string>{"10.0.0.0/8", "*.lab"}));
  EXPECT_EQ((*exports)[1].path, "/open");
  EXPECT_TRUE((*exports)[1].groups.empty());
  EXPECT_EQ(arguments(), "100005 3 5 ");
}

TEST_F(MountClientTest, ExportListsAreBounded) {
  for (uint32_t i = 0; i <= kListMax; i++) reply_.u32(1).opaque("/").u32(0);
  reply_.u32(0);
  EXPECT_EQ(client_.exports().error().code, EPROTO);
}

TEST_F(MountClientTest, TruncationsAreErrors) {
  XdrText whole;
  whole.u32(1).opaque("/data").u32(1).opaque("client").u32(0).u32(0);
  ASSERT_TRUE(has_shape(whole.bytes(), "{s{s}}"));
  for (size_t length = 0; length < whole.bytes().size(); length += 4) {
    reply_ = XdrText();
    for (size_t at = 0; at < length; at += 4) reply_.u32(load_be32(whole.bytes().data() + at));
    EXPECT_EQ(client_.exports().error().code, EPROTO) << length;
  }
}

}  // namespace
}  // namespace nfsrdma
