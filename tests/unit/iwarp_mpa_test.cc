// SPDX-License-Identifier: GPL-2.0-or-later
// Vectors worked out by hand from RFC 5044 figure 8 and RFC 6581 figures 1 to 3.
#include "mpa.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

using namespace nfsrdma;
using namespace nfsrdma::iwarp;

namespace {

std::vector<std::byte> bytes_of(const std::string& key, std::initializer_list<int> rest) {
  std::vector<std::byte> all;
  for (char c : key) all.push_back(static_cast<std::byte>(c));
  for (int value : rest) all.push_back(static_cast<std::byte>(value));
  return all;
}

// The request that Linux nfsd on siw was seen to accept.
const auto kKnownRequest =
    bytes_of("MPA ID Req Frame", {0x10, 0x02, 0x00, 0x0c, 0x00, 0x10, 0x00, 0x10, 0xf6, 0xab, 0x0e,
                                  0x18, 0x01, 0x00, 0x03, 0x03});

const std::byte kPrivate[] = {std::byte{0xf6}, std::byte{0xab}, std::byte{0x0e}, std::byte{0x18},
                              std::byte{0x01}, std::byte{0x00}, std::byte{0x03}, std::byte{0x03}};

std::vector<std::byte> encode(const MpaFrame& frame) {
  std::vector<std::byte> to(600);
  to.resize(encode_mpa_frame(frame, to));
  return to;
}

TEST(Mpa, RequestAsLinuxTakesIt) {
  MpaFrame frame;
  frame.enhanced = true;
  frame.ird = frame.ord = 16;
  frame.private_data = kPrivate;
  EXPECT_EQ(encode(frame), kKnownRequest);
}

TEST(Mpa, RequestDecoded) {
  const auto length = mpa_frame_length(kKnownRequest, false);
  ASSERT_TRUE(length);
  EXPECT_EQ(*length, 32u);
  const auto frame = decode_mpa_frame(kKnownRequest);
  ASSERT_TRUE(frame);
  EXPECT_FALSE(frame->reply);
  EXPECT_FALSE(frame->crc);
  EXPECT_FALSE(frame->markers);
  EXPECT_FALSE(frame->reject);
  EXPECT_TRUE(frame->enhanced);
  EXPECT_EQ(frame->revision, 2);
  EXPECT_EQ(frame->ird, 16u);
  EXPECT_EQ(frame->ord, 16u);
  EXPECT_FALSE(frame->peer_to_peer);
  EXPECT_EQ(frame->rtr, 0);
  EXPECT_TRUE(std::equal(frame->private_data.begin(), frame->private_data.end(),
                         std::begin(kPrivate), std::end(kPrivate)));
}

TEST(Mpa, EveryFlagHasItsBit) {
  const auto key = std::string("MPA ID Rep Frame");
  MpaFrame frame;
  frame.reply = true;
  frame.markers = true;
  EXPECT_EQ(encode(frame), bytes_of(key, {0x80, 0x02, 0, 0}));
  frame = {};
  frame.reply = frame.crc = true;
  EXPECT_EQ(encode(frame), bytes_of(key, {0x40, 0x02, 0, 0}));
  frame = {};
  frame.reply = frame.reject = true;
  frame.revision = 1;
  EXPECT_EQ(encode(frame), bytes_of(key, {0x20, 0x01, 0, 0}));
  frame = {};
  frame.reply = frame.enhanced = true;
  frame.ird = 0x3fff;
  frame.ord = 1;
  EXPECT_EQ(encode(frame), bytes_of(key, {0x10, 0x02, 0, 4, 0x3f, 0xff, 0x00, 0x01}));
  frame.peer_to_peer = true;
  EXPECT_EQ(encode(frame), bytes_of(key, {0x10, 0x02, 0, 4, 0xbf, 0xff, 0x00, 0x01}));
  frame.rtr = kRtrSend;
  EXPECT_EQ(encode(frame), bytes_of(key, {0x10, 0x02, 0, 4, 0xff, 0xff, 0x00, 0x01}));
  frame.rtr = kRtrWrite;
  EXPECT_EQ(encode(frame), bytes_of(key, {0x10, 0x02, 0, 4, 0xbf, 0xff, 0x80, 0x01}));
  frame.rtr = kRtrRead;
  EXPECT_EQ(encode(frame), bytes_of(key, {0x10, 0x02, 0, 4, 0xbf, 0xff, 0x40, 0x01}));
}

TEST(Mpa, DecodesWhatItEncodes) {
  for (int bits = 0; bits < 256; ++bits) {
    MpaFrame frame;
    frame.reply = (bits & 1) != 0;
    frame.markers = (bits & 2) != 0;
    frame.crc = (bits & 4) != 0;
    frame.reject = (bits & 8) != 0;
    frame.enhanced = true;
    frame.peer_to_peer = (bits & 16) != 0;
    frame.rtr = static_cast<uint8_t>(bits >> 5);
    frame.ird = 5;
    frame.ord = 0x3000;
    const auto wire = encode(frame);
    const auto back = decode_mpa_frame(wire);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->reply, frame.reply);
    EXPECT_EQ(back->markers, frame.markers);
    EXPECT_EQ(back->crc, frame.crc);
    EXPECT_EQ(back->reject, frame.reject);
    EXPECT_EQ(back->peer_to_peer, frame.peer_to_peer);
    EXPECT_EQ(back->rtr, frame.rtr);
    EXPECT_EQ(back->ird, 5u);
    EXPECT_EQ(back->ord, 0x3000u);
  }
}

TEST(Mpa, LengthIsKnownOnlyWithTheWholeHead) {
  for (size_t have = 0; have < 20; ++have) {
    const auto length = mpa_frame_length(ConstBytes(kKnownRequest).first(have), false);
    ASSERT_TRUE(length);
    EXPECT_EQ(*length, 0u);
  }
}

TEST(Mpa, AnotherProtocolIsSeenAtItsFirstByte) {
  const auto http = bytes_of("HTTP/1.1 400 Bad", {});
  const auto length = mpa_frame_length(ConstBytes(http).first(1), true);
  ASSERT_FALSE(length);
  EXPECT_EQ(length.error().code, EPROTO);
}

TEST(Mpa, RequestIsNoReply) {
  EXPECT_TRUE(mpa_frame_length(ConstBytes(kKnownRequest).first(9), true));  // "MPA ID Re"
  EXPECT_FALSE(mpa_frame_length(ConstBytes(kKnownRequest).first(10), true));
  EXPECT_FALSE(mpa_frame_length(kKnownRequest, true));
}

TEST(Mpa, PrivateDataAreBounded) {
  const auto most = bytes_of("MPA ID Rep Frame", {0x10, 0x02, 0x02, 0x00});
  EXPECT_EQ(mpa_frame_length(most, true).value(), 20u + 512u);
  const auto more = bytes_of("MPA ID Rep Frame", {0x10, 0x02, 0x02, 0x01});
  EXPECT_FALSE(mpa_frame_length(more, true));
  std::vector<std::byte> large(513);
  MpaFrame frame;
  frame.private_data = large;
  EXPECT_TRUE(encode(frame).empty());
}

TEST(Mpa, EnhancedWithoutValues) {
  const auto reply = bytes_of("MPA ID Rep Frame", {0x10, 0x02, 0x00, 0x02, 0x00, 0x00});
  EXPECT_FALSE(decode_mpa_frame(reply));
  // siw's rejection keeps the bit and brings nothing.
  const auto rejection = bytes_of("MPA ID Rep Frame", {0x30, 0x02, 0x00, 0x00});
  const auto frame = decode_mpa_frame(rejection);
  ASSERT_TRUE(frame);
  EXPECT_TRUE(frame->reject);
}

TEST(Mpa, RevisionOneHasNoEnhancedBit) {
  const auto reply = bytes_of("MPA ID Rep Frame", {0x50, 0x01, 0x00, 0x00});
  const auto frame = decode_mpa_frame(reply);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->revision, 1);
  EXPECT_FALSE(frame->enhanced);
  EXPECT_TRUE(frame->crc);
}

TEST(Mpa, FpduLengthAndPad) {
  // 2 bytes of length, ULPDU, pad to 4, 4 bytes of CRC.
  EXPECT_EQ(fpdu_bytes(14), 20u);
  EXPECT_EQ(fpdu_pad(14), 0u);
  EXPECT_EQ(fpdu_bytes(15), 24u);
  EXPECT_EQ(fpdu_pad(15), 3u);
  EXPECT_EQ(fpdu_pad(16), 2u);
  EXPECT_EQ(fpdu_pad(17), 1u);
  EXPECT_EQ(fpdu_bytes(18), 24u);
  EXPECT_EQ(fpdu_bytes(65535), 65544u);
}

}  // namespace
