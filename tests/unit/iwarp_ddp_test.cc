// SPDX-License-Identifier: GPL-2.0-or-later
// Vectors worked out by hand from RFC 5041 figures 3 to 5 and RFC 5040 figures 3, 4, 7 and 9.
#include "ddp.h"

#include <gtest/gtest.h>

#include <vector>

using namespace nfsrdma;
using namespace nfsrdma::iwarp;

namespace {

std::vector<std::byte> hex(std::initializer_list<int> values) {
  std::vector<std::byte> all;
  for (int value : values) all.push_back(static_cast<std::byte>(value));
  return all;
}

TEST(Ddp, TaggedHead) {
  std::vector<std::byte> wire(kTaggedHead);
  put_tagged(wire.data(), 14 + 4096, kOpWrite, true, 0x01020304, 0x1112131415161718);
  EXPECT_EQ(wire, hex({0x10, 0x0e, 0xc1, 0x40, 0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15,
                       0x16, 0x17, 0x18}));
  put_tagged(wire.data(), 14, kOpReadResponse, false, 0, 0);
  EXPECT_EQ(wire, hex({0x00, 0x0e, 0x81, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Ddp, UntaggedHead) {
  std::vector<std::byte> wire(kUntaggedHead);
  put_untagged(wire.data(), 18 + 40, kOpSendInvalidate, true, 0xaabbccdd, kQueueSend, 7, 0x100);
  EXPECT_EQ(wire, hex({0x00, 0x3a, 0x41, 0x44, 0xaa, 0xbb, 0xcc, 0xdd, 0,    0,
                       0,    0,    0,    0,    0,    7,    0,    0,    0x01, 0x00}));
  put_untagged(wire.data(), 18, kOpSend, false, 0, kQueueSend, 1, 0);
  EXPECT_EQ(wire, hex({0x00, 0x12, 0x01, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
}

TEST(Ddp, ReadRequest) {
  std::vector<std::byte> wire(kReadRequestBytes);
  put_read_request(wire.data(), {0x01020304, 0x0506070809aabbcc, 0x00100000, 0xa1a2a3a4, 0x10});
  EXPECT_EQ(wire, hex({0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0xaa,
                       0xbb, 0xcc, 0x00, 0x10, 0x00, 0x00, 0xa1, 0xa2, 0xa3, 0xa4,
                       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10}));
  const ReadRequest back = get_read_request(wire.data());
  EXPECT_EQ(back.sink_stag, 0x01020304u);
  EXPECT_EQ(back.sink_offset, 0x0506070809aabbccu);
  EXPECT_EQ(back.length, 0x00100000u);
  EXPECT_EQ(back.source_stag, 0xa1a2a3a4u);
  EXPECT_EQ(back.source_offset, 0x10u);
}

TEST(Ddp, HeadsDecoded) {
  const auto tagged = hex({0x10, 0x0e, 0xc1, 0x40, 0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14,
                           0x15, 0x16, 0x17, 0x18});
  DdpHeader header = get_control(tagged.data());
  get_rest(tagged.data(), header);
  EXPECT_EQ(header.ulpdu, 14 + 4096);
  EXPECT_TRUE(header.tagged);
  EXPECT_TRUE(header.last);
  EXPECT_EQ(header.ddp_version, 1);
  EXPECT_EQ(header.rdmap_version, 1);
  EXPECT_EQ(header.opcode, kOpWrite);
  EXPECT_EQ(header.stag, 0x01020304u);
  EXPECT_EQ(header.tagged_offset, 0x1112131415161718u);

  const auto untagged =
      hex({0xff, 0xff, 0x03, 0xcf, 1, 2, 3, 4, 0, 0, 0, 2, 0, 0, 1, 0, 0, 1, 0, 0});
  header = get_control(untagged.data());
  get_rest(untagged.data(), header);
  EXPECT_EQ(header.ulpdu, 65535);
  EXPECT_FALSE(header.tagged);
  EXPECT_FALSE(header.last);
  EXPECT_EQ(header.ddp_version, 3);
  EXPECT_EQ(header.rdmap_version, 3);
  EXPECT_EQ(header.opcode, 15);
  EXPECT_EQ(header.stag, 0x01020304u);
  EXPECT_EQ(header.queue, 2u);
  EXPECT_EQ(header.msn, 256u);
  EXPECT_EQ(header.message_offset, 65536u);
}

TEST(Ddp, TerminateOfDdpCarriesTheHeadToBlame) {
  std::vector<std::byte> head(kTaggedHead);
  put_tagged(head.data(), 14 + 8, kOpWrite, true, 5, 6);
  std::vector<std::byte> wire(100);
  wire.resize(put_terminate(wire.data(), term::kTaggedBounds, head));
  // layer 1, type 1, code 1; segment length valid and DDP head included.
  auto expected = hex({0x11, 0x01, 0xc0, 0x00});
  expected.insert(expected.end(), head.begin(), head.end());
  EXPECT_EQ(wire, expected);
  EXPECT_EQ(get_terminate(wire.data()), term::kTaggedBounds);
}

TEST(Ddp, TerminateOfAReadCarriesTheRequest) {
  std::vector<std::byte> head(kUntaggedHead + kReadRequestBytes);
  put_untagged(head.data(), 46, kOpReadRequest, true, 0, kQueueReadRequest, 1, 0);
  put_read_request(head.data() + kUntaggedHead, {1, 2, 3, 4, 5});
  std::vector<std::byte> wire(100);
  wire.resize(put_terminate(wire.data(), term::kAccess, head));
  auto expected = hex({0x01, 0x02, 0xe0, 0x00});
  expected.insert(expected.end(), head.begin(), head.end());
  EXPECT_EQ(wire, expected);
}

TEST(Ddp, TerminateOfMpaAndOfVersionsStandsAlone) {
  std::vector<std::byte> head(kTaggedHead);
  put_tagged(head.data(), 14, kOpWrite, true, 5, 6);
  for (TerminateCode code : {term::kCrc, term::kUlpduLength, term::kRdmapVersion,
                             term::kTaggedVersion, term::kUntaggedVersion}) {
    std::vector<std::byte> wire(100);
    wire.resize(put_terminate(wire.data(), code, head));
    ASSERT_EQ(wire.size(), 4u);
    EXPECT_EQ(get_terminate(wire.data()), code);
    EXPECT_EQ(wire[2], std::byte{0});
  }
}

TEST(Ddp, TerminateInWords) {
  EXPECT_EQ(to_string(term::kTaggedStag), "DDP, tagged buffer: invalid STag");
  EXPECT_EQ(to_string(term::kAccess), "RDMAP, remote protection: access rights violation");
  EXPECT_EQ(to_string(term::kCrc), "MPA: CRC error");
  EXPECT_EQ(to_string(TerminateCode{0, 0, 0}), "RDMAP, local catastrophic error");
  EXPECT_EQ(to_string(TerminateCode{1, 2, 0x42}), "DDP, untagged buffer, code 66");
  EXPECT_EQ(to_string(TerminateCode{9, 3, 1}), "layer 9, type 3, code 1");
  // As Linux siw says that no receive was posted.
  EXPECT_EQ(to_string(TerminateCode{2, 1, 2}), to_string(term::kNoBuffer));
}

TEST(Ddp, EveryCodeOfOursHasWords) {
  for (TerminateCode code : {term::kReadStag,
                             term::kReadBounds,
                             term::kAccess,
                             term::kReadWrap,
                             term::kCannotInvalidate,
                             term::kRdmapVersion,
                             term::kOpcode,
                             term::kStreamCatastrophic,
                             term::kTaggedStag,
                             term::kTaggedBounds,
                             term::kTaggedWrap,
                             term::kTaggedVersion,
                             term::kQueueNumber,
                             term::kNoBuffer,
                             term::kMsn,
                             term::kMessageOffset,
                             term::kTooLong,
                             term::kUntaggedVersion,
                             term::kCrc,
                             term::kUlpduLength,
                             term::kSetupFrame,
                             term::kInsufficientIrd,
                             term::kNoRtr}) {
    EXPECT_NE(to_string(code).find(": "), std::string::npos) << to_string(code);
  }
}

}  // namespace
