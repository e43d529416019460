// SPDX-License-Identifier: GPL-2.0-or-later
// The transport header against vectors written by hand from RFC 8166 section 4, and private data
// against RFC 8797 section 4.
#include "rpcrdma_header.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "cm_private_data.h"
#include "rpc_script.h"

namespace nfsrdma {
namespace {

using testing::hex;
using testing::to_hex;

template <typename Encode>
std::string encoded(Encode encode) {
  std::array<std::byte, 512> room;
  XdrWriter writer(room);
  encode(writer);
  EXPECT_TRUE(writer.ok());
  return to_hex(writer.written());
}

std::string squeeze(std::string_view text) {
  return to_hex(hex(text));
}

std::string encoded_header(const RdmaHeaderOut& header) {
  const std::string text = encoded([&](XdrWriter& w) { encode_rdma_header(w, header); });
  EXPECT_EQ(text.size() / 2, rdma_header_bytes(header));
  return text;
}

TEST(RdmaHeader, MsgWithoutChunks) {
  RdmaHeaderOut out{.xid = 0x01020304, .credits = 64, .proc = RdmaProc::kMsg};
  const char* vector = "01020304 00000001 00000040 00000000  00000000 00000000 00000000";
  EXPECT_EQ(encoded_header(out), squeeze(vector));

  auto bytes = hex(std::string(vector) + "deadbeef");
  RdmaHeader in;
  ASSERT_EQ(decode_rdma_header(bytes, in), HeaderFault::kNone);
  EXPECT_EQ(in.xid, 0x01020304u);
  EXPECT_EQ(in.credits, 64u);
  EXPECT_EQ(in.proc, RdmaProc::kMsg);
  EXPECT_EQ(in.reads.size() + in.writes.size(), 0u);
  EXPECT_FALSE(in.has_reply);
  EXPECT_EQ(to_hex(in.rpc), "deadbeef");
}

constexpr const char* kRich =
    "0a0b0c0d 00000001 00000010 00000001"                   // xid, version, credits, RDMA_NOMSG
    "00000001 00000088 11111111 00001000 00007f0000001000"  // a Read chunk of two segments
    "00000001 00000088 22222222 00000003 00007f0000002000"
    "00000000"
    "00000001 00000002 33333333 00002000 0000000000003000"  // a Write chunk of two segments
    "                  44444444 00000004 ffffffffffffff00"
    "00000001 00000000"  // an empty Write chunk
    "00000000"
    "00000001 00000001 55555555 00010000 0000000000005000";  // a Reply chunk

TEST(RdmaHeader, AllListsWithSeveralSegments) {
  const std::array<ReadSegment, 2> reads{
      {{0x88, {0x11111111, 0x1000, 0x7f0000001000}}, {0x88, {0x22222222, 3, 0x7f0000002000}}}};
  const std::array<RdmaSegment, 2> first{
      {{0x33333333, 0x2000, 0x3000}, {0x44444444, 4, 0xffffffffffffff00}}};
  const std::array<WriteChunk, 2> writes{WriteChunk(first), WriteChunk()};
  const std::array<RdmaSegment, 1> reply{{{0x55555555, 0x10000, 0x5000}}};
  RdmaHeaderOut out{.xid = 0x0a0b0c0d, .credits = 16, .proc = RdmaProc::kNomsg};
  out.reads = reads;
  out.writes = writes;
  out.has_reply = true;
  out.reply = reply;
  EXPECT_EQ(encoded_header(out), squeeze(kRich));
}

TEST(RdmaHeader, DecodesAllLists) {
  const auto bytes = hex(kRich);
  RdmaHeader in;
  ASSERT_EQ(decode_rdma_header(bytes, in), HeaderFault::kNone);
  EXPECT_EQ(in.proc, RdmaProc::kNomsg);
  ASSERT_EQ(in.reads.size(), 2u);
  EXPECT_EQ(in.reads[1].position, 0x88u);
  EXPECT_EQ(in.reads[0].target, (RdmaSegment{0x11111111, 0x1000, 0x7f0000001000}));
  EXPECT_EQ(in.reads[1].target, (RdmaSegment{0x22222222, 3, 0x7f0000002000}));
  ASSERT_EQ(in.writes.size(), 2u);
  ASSERT_EQ(in.writes.front().size(), 2u);
  EXPECT_EQ(in.writes.front()[1], (RdmaSegment{0x44444444, 4, 0xffffffffffffff00}));
  EXPECT_EQ(in.writes.front().bytes(), 0x2004u);
  EXPECT_EQ(in.writes.rest().front().size(), 0u);
  ASSERT_TRUE(in.has_reply);
  ASSERT_EQ(in.reply.size(), 1u);
  EXPECT_EQ(in.reply[0], (RdmaSegment{0x55555555, 0x10000, 0x5000}));
  EXPECT_TRUE(in.rpc.empty());
}

// Every shorter message is refused, whatever it breaks off in; nothing is read beyond its end
// (each prefix has memory of its own, for AddressSanitizer).
TEST(RdmaHeader, EveryPrefixIsRefused) {
  const auto bytes = hex(kRich);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::vector<std::byte> prefix(bytes.begin(), bytes.begin() + static_cast<long>(length));
    RdmaHeader in;
    const HeaderFault fault = decode_rdma_header(prefix, in);
    EXPECT_EQ(fault, length < 16 ? HeaderFault::kShort : HeaderFault::kChunks) << length;
    EXPECT_EQ(in.reply.size(), 0u);
  }
}

TEST(RdmaHeader, Msgp) {
  RdmaHeaderOut out{.xid = 7, .credits = 1};
  const char* vector =
      "00000007 00000001 00000001 00000002  00000008 00001000  00000000 00000000 00000000";
  EXPECT_EQ(encoded([&](XdrWriter& w) { encode_rdma_msgp(w, out, 8, 4096); }), squeeze(vector));
  const auto bytes = hex(vector);
  RdmaHeader in;
  ASSERT_EQ(decode_rdma_header(bytes, in), HeaderFault::kNone);
  EXPECT_EQ(in.proc, RdmaProc::kMsgp);
  EXPECT_EQ(in.align, 8u);
  EXPECT_EQ(in.threshold, 4096u);
}

TEST(RdmaHeader, Done) {
  RdmaHeaderOut out{.xid = 9, .credits = 2, .proc = RdmaProc::kDone};
  EXPECT_EQ(encoded_header(out), squeeze("00000009 00000001 00000002 00000003"));
  const auto bytes = hex("00000009 00000001 00000002 00000003");
  RdmaHeader in;
  ASSERT_EQ(decode_rdma_header(bytes, in), HeaderFault::kNone);
  EXPECT_EQ(in.proc, RdmaProc::kDone);
}

TEST(RdmaHeader, ErrorOfVersion) {
  const char* vector = "000000ff 00000001 00000020 00000004  00000001 00000001 00000003";
  EXPECT_EQ(encoded([](XdrWriter& w) { encode_rdma_error(w, 0xff, 32, RdmaErrcode::kVers, 1, 3); }),
            squeeze(vector));
  const auto bytes = hex(vector);
  RdmaHeader in;
  ASSERT_EQ(decode_rdma_header(bytes, in), HeaderFault::kNone);
  EXPECT_EQ(in.errcode, RdmaErrcode::kVers);
  EXPECT_EQ(in.version_low, 1u);
  EXPECT_EQ(in.version_high, 3u);
}

TEST(RdmaHeader, ErrorOfChunk) {
  const char* vector = "000000ff 00000001 00000020 00000004  00000002";
  EXPECT_EQ(encoded([](XdrWriter& w) { encode_rdma_error(w, 0xff, 32, RdmaErrcode::kChunk); }),
            squeeze(vector));
  const auto bytes = hex(vector);
  RdmaHeader in;
  ASSERT_EQ(decode_rdma_header(bytes, in), HeaderFault::kNone);
  EXPECT_EQ(in.errcode, RdmaErrcode::kChunk);
}

struct Garbage {
  const char* what;
  const char* message;
  HeaderFault fault;
};

TEST(RdmaHeader, GarbageIsNamed) {
  const Garbage cases[] = {
      {"version 0", "00000001 00000000 00000001 00000000 00000000 00000000 00000000",
       HeaderFault::kVersion},
      {"version 2", "00000001 00000002 00000001 00000000 00000000 00000000 00000000",
       HeaderFault::kVersion},
      {"procedure 5", "00000001 00000001 00000001 00000005 00000000 00000000 00000000",
       HeaderFault::kProcedure},
      {"read list of 2", "00000001 00000001 00000001 00000000 00000002 00000000 00000000",
       HeaderFault::kChunks},
      {"write list of 7", "00000001 00000001 00000001 00000000 00000000 00000007 00000000",
       HeaderFault::kChunks},
      {"reply of -1", "00000001 00000001 00000001 00000000 00000000 00000000 ffffffff",
       HeaderFault::kChunks},
      {"2^32-1 segments", "00000001 00000001 00000001 00000000 00000000 00000001 ffffffff",
       HeaderFault::kChunks},
      {"2^28 segments", "00000001 00000001 00000001 00000000 00000000 00000000 00000001 10000000",
       HeaderFault::kChunks},
      {"error 0", "00000001 00000001 00000001 00000004 00000000", HeaderFault::kChunks},
      {"error 3", "00000001 00000001 00000001 00000004 00000003", HeaderFault::kChunks},
      {"half an ERR_VERS", "00000001 00000001 00000001 00000004 00000001 00000001",
       HeaderFault::kChunks},
  };
  for (const Garbage& garbage : cases) {
    const auto bytes = hex(garbage.message);
    RdmaHeader in;
    EXPECT_EQ(decode_rdma_header(bytes, in), garbage.fault) << garbage.what;
    EXPECT_EQ(in.xid, 1u) << garbage.what;
  }
}

TEST(RdmaHeader, EndlessReadListEndsWithTheMessage) {
  std::vector<std::byte> bytes = hex("00000001 00000001 00000001 00000000");
  const auto entry = hex("00000001 00000000 11111111 00001000 0000000000001000");
  while (bytes.size() + entry.size() <= 65536)
    bytes.insert(bytes.end(), entry.begin(), entry.end());
  RdmaHeader in;
  EXPECT_EQ(decode_rdma_header(bytes, in), HeaderFault::kChunks);
  EXPECT_EQ(in.reads.size(), 0u);
}

TEST(CmPrivateData, Vectors) {
  CmPrivateData data{.remote_invalidation = true, .send_size = 4096, .receive_size = 65536};
  EXPECT_EQ(to_hex(encode_cm_private_data(data)), squeeze("f6ab0e18 01 01 03 3f"));
  data = {.remote_invalidation = false, .send_size = 1024, .receive_size = 256 * 1024};
  EXPECT_EQ(to_hex(encode_cm_private_data(data)), squeeze("f6ab0e18 01 00 00 ff"));

  const auto padded = hex("f6ab0e18 01 ff 03 07 00000000 00000000");
  const CmPrivateData in = decode_cm_private_data(padded);
  EXPECT_EQ(
      in,
      (CmPrivateData{
          .remote_invalidation = true, .send_size = 4096, .receive_size = 8192, .present = true}));
}

TEST(CmPrivateData, SizesAreRoundedDownAndHeldInRange) {
  CmPrivateData data{.send_size = 5000, .receive_size = 10};
  EXPECT_EQ(to_hex(encode_cm_private_data(data)), squeeze("f6ab0e18 01 00 03 00"));
  data = {.send_size = 1u << 30, .receive_size = 2047};
  EXPECT_EQ(to_hex(encode_cm_private_data(data)), squeeze("f6ab0e18 01 00 ff 00"));
}

TEST(CmPrivateData, AnythingElseMeansTheDefaults) {
  for (const char* text :
       {"", "f6ab0e18 01 01 03", "f6ab0e19 01 01 03 03", "f6ab0e18 02 01 03 03"}) {
    const auto bytes = hex(text);
    EXPECT_EQ(decode_cm_private_data(bytes), CmPrivateData()) << text;
  }
  EXPECT_EQ(CmPrivateData().send_size, 1024u);
  EXPECT_EQ(CmPrivateData().receive_size, 1024u);
}

}  // namespace
}  // namespace nfsrdma
