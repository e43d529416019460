// SPDX-License-Identifier: GPL-2.0-or-later
#include "rpc_message.h"

#include <gtest/gtest.h>
#include <nfsc/libnfs-zdr.h>

#include <cerrno>
#include <random>

#include "rpc_script.h"

namespace nfsrdma {
namespace {

using testing::hex;
using testing::to_hex;

std::string encoded(uint32_t procedure, const Credential& credential) {
  std::vector<std::byte> buffer(kCallHeaderMax);
  XdrWriter writer(buffer);
  encode_call_header(writer, 0x11223344, 100003, 3, procedure, credential);
  EXPECT_TRUE(writer.ok());
  return to_hex(writer.written());
}

Error error_of(std::string_view reply) {
  auto result = decode_reply_header(hex(reply));
  EXPECT_FALSE(result) << reply;
  return result ? Error{} : result.error();
}

TEST(RpcMessage, CallHeaderWithAuthNone) {
  EXPECT_EQ(encoded(1, Credential::none()),
            "11223344"
            "00000000"
            "00000002"
            "000186a3"
            "00000003"
            "00000001"
            "00000000"
            "00000000"
            "00000000"
            "00000000");
}

TEST(RpcMessage, CallHeaderWithAuthSys) {
  Credential credential;
  credential.uid = 1000;
  credential.gid = 100;
  credential.gids = {4, 27};
  credential.machine_name = "client";
  credential.stamp = 0xabcdef01;
  EXPECT_EQ(encoded(6, credential),
            "11223344"
            "00000000"
            "00000002"
            "000186a3"
            "00000003"
            "00000006"
            "00000001"
            "00000024"
            "abcdef01"
            "00000006"
            "636c6965"
            "6e740000"
            "000003e8"
            "00000064"
            "00000002"
            "00000004"
            "0000001b"
            "00000000"
            "00000000");
}

TEST(RpcMessage, CredentialIsCutToTheLimits) {
  Credential credential;
  credential.machine_name = std::string(300, 'm');
  for (uint32_t gid = 0; gid < 40; gid++) credential.gids.push_back(gid);
  std::vector<std::byte> buffer(kCallHeaderMax);
  XdrWriter writer(buffer);
  encode_call_header(writer, 1, 100003, 3, 0, credential);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer.size(), kCallHeaderMax);
  XdrReader reader(writer.written());
  reader.skip(7 * 4);
  XdrReader body(reader.opaque(kAuthBodyMax));
  body.u32();
  EXPECT_EQ(body.string(255), std::string(255, 'm'));
  body.skip(8);
  EXPECT_EQ(body.u32(), 16u);
  for (uint32_t gid = 0; gid < 16; gid++) EXPECT_EQ(body.u32(), gid);
  EXPECT_TRUE(body.ok());
  EXPECT_EQ(body.left(), 0u);
}

TEST(RpcMessage, CallHeaderThatDoesNotFitFails) {
  std::vector<std::byte> buffer(39);
  XdrWriter writer(buffer);
  encode_call_header(writer, 1, 100003, 3, 0, Credential::none());
  EXPECT_FALSE(writer.ok());
}

TEST(RpcMessage, OfProcessIsWithinLimits) {
  const Credential credential = Credential::of_process();
  EXPECT_EQ(credential.flavor, AuthFlavor::kSys);
  EXPECT_LE(credential.gids.size(), kGidsMax);
  EXPECT_FALSE(credential.machine_name.empty());
}

TEST(RpcMessage, PlainSuccess) {
  const auto reply = hex("11223344 00000001 00000000 00000000 00000000 00000000 0000002a");
  EXPECT_TRUE(is_plain_success(reply));
  auto offset = decode_reply_header(reply);
  ASSERT_TRUE(offset);
  EXPECT_EQ(*offset, 24u);
  // Each word but the xid matters.
  for (size_t word = 1; word < 6; word++) {
    auto other = reply;
    other[word * 4 + 3] ^= std::byte(2);
    EXPECT_FALSE(is_plain_success(other)) << word;
    other = reply;
    other[word * 4] ^= std::byte(0x80);
    EXPECT_FALSE(is_plain_success(other)) << word;
  }
  EXPECT_FALSE(is_plain_success(ConstBytes(reply).first(23)));
}

TEST(RpcMessage, SuccessWithAVerifier) {
  const auto reply = hex("00000001 00000001 00000000 00000002 00000005 0102030405000000 00000000");
  EXPECT_FALSE(is_plain_success(reply));
  auto offset = decode_reply_header(reply);
  ASSERT_TRUE(offset) << offset.error().text;
  EXPECT_EQ(*offset, 32u);
}

TEST(RpcMessage, EveryAcceptStat) {
  const std::string head = "00000001 00000001 00000000 00000000 00000000 ";
  EXPECT_EQ(error_of(head + "00000001").code, EOPNOTSUPP);
  EXPECT_NE(error_of(head + "00000001").text.find("PROG_UNAVAIL"), std::string::npos);
  const Error mismatch = error_of(head + "00000002 00000004 00000004");
  EXPECT_EQ(mismatch.code, EOPNOTSUPP);
  EXPECT_NE(mismatch.text.find("version 4"), std::string::npos) << mismatch.text;
  EXPECT_NE(error_of(head + "00000002 00000002 00000004").text.find("versions 2 to 4"),
            std::string::npos);
  EXPECT_EQ(error_of(head + "00000002 00000002").code, EPROTO);
  EXPECT_EQ(error_of(head + "00000003").code, EOPNOTSUPP);
  EXPECT_EQ(error_of(head + "00000004").code, EINVAL);
  EXPECT_EQ(error_of(head + "00000005").code, EREMOTEIO);
  EXPECT_EQ(error_of(head + "00000006").code, EPROTO);
}

TEST(RpcMessage, EveryRejection) {
  const std::string head = "00000001 00000001 00000001 ";
  EXPECT_EQ(error_of(head + "00000000 00000002 00000002").code, EOPNOTSUPP);
  EXPECT_NE(error_of(head + "00000000 00000002 00000002").text.find("RPC_MISMATCH"),
            std::string::npos);
  EXPECT_EQ(error_of(head + "00000002").code, EPROTO);
  EXPECT_EQ(error_of(head + "00000001").code, EPROTO);  // cut short
  const char* names[] = {"AUTH_OK",           "AUTH_BADCRED", "AUTH_REJECTEDCRED", "AUTH_BADVERF",
                         "AUTH_REJECTEDVERF", "AUTH_TOOWEAK", "AUTH_INVALIDRESP",  "AUTH_FAILED"};
  for (uint32_t stat = 0; stat < 8; stat++) {
    const Error error = error_of(head + "00000001 0000000" + std::to_string(stat));
    EXPECT_EQ(error.code, EACCES);
    EXPECT_NE(error.text.find(names[stat]), std::string::npos) << error.text;
  }
  EXPECT_NE(error_of(head + "00000001 00000063").text.find("auth_stat 99"), std::string::npos);
}

TEST(RpcMessage, WhatIsNoReply) {
  EXPECT_EQ(error_of("").code, EPROTO);
  EXPECT_EQ(error_of("00000001 00000000 00000002 000186a3").code, EPROTO);  // a call
  EXPECT_EQ(error_of("00000001 00000001 00000002 00000000").code, EPROTO);
  EXPECT_EQ(error_of("48545450 2f312e31 20343030").code, EPROTO);
  // A verifier longer than RFC 5531 allows, and one beyond the message.
  EXPECT_EQ(error_of("00000001 00000001 00000000 00000000 00000191 00000000").code, EPROTO);
  EXPECT_EQ(error_of("00000001 00000001 00000000 00000000 ffffffff 00000000").code, EPROTO);
}

TEST(RpcMessage, EveryTruncationIsAnError) {
  for (const char* text :
       {"00000001 00000001 00000000 00000002 00000005 0102030405000000 00000000",
        "00000001 00000001 00000000 00000000 00000000 00000002 00000004 00000004",
        "00000001 00000001 00000001 00000001 00000005"}) {
    const auto reply = hex(text);
    for (size_t length = 0; length < reply.size(); length++) {
      EXPECT_EQ(decode_reply_header(ConstBytes(reply).first(length)).error().code, EPROTO);
    }
  }
}

TEST(RpcMessage, RandomBytesNeverEscape) {
  std::mt19937 random(5531);
  for (int i = 0; i < 20000; i++) {
    std::vector<std::byte> reply(random() % 64);
    for (std::byte& byte : reply) byte = std::byte(random() % 3 == 0 ? random() : random() % 3);
    if (auto offset = decode_reply_header(reply)) {
      EXPECT_LE(*offset, reply.size());
    }
  }
}

TEST(RpcMessage, Names) {
  EXPECT_EQ(rpc_procedure_name(100003, 1), "NFS GETATTR");
  EXPECT_EQ(rpc_procedure_name(100003, 21), "NFS COMMIT");
  EXPECT_EQ(rpc_procedure_name(100003, 22), "NFS procedure 22");
  EXPECT_EQ(rpc_procedure_name(100005, 5), "MOUNT EXPORT");
  EXPECT_EQ(rpc_procedure_name(100000, 3), "portmap GETPORT");
  EXPECT_EQ(auth_flavor_name(390003), "krb5");
  EXPECT_EQ(auth_flavor_name(77), "flavor 77");
}

}  // namespace
}  // namespace nfsrdma
