// SPDX-License-Identifier: GPL-2.0-or-later
// Frames that no peer may send (RFC 5044, 5041, 5040), good frames spoilt at random, and streams
// that end where they must not.
#include <random>

#include "iwarp_hostile.h"

using namespace nfsrdma;
using namespace nfsrdma::test;
namespace term = nfsrdma::iwarp::term;

namespace {

class HostileFrame : public Hostile {};

TEST_P(HostileFrame, BadCrc) {
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, octets(9, 1)), true);
  if (!GetParam().crc) {
    // Without CRCs the field is not looked at.
    ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kReceive) == 1; }));
    return;
  }
  expect_end("CRC error", term::kCrc);
  EXPECT_EQ(victim.count(CompletionKind::kReceive), 0u);
}

TEST_P(HostileFrame, BadCrcOfALongFpdu) {
  peer.send_fpdu(tagged(kWrite, true, write_key, 0, octets(50'000, 1)), true);
  if (!GetParam().crc) {
    ASSERT_TRUE(until([&] { return victim.data.data()[kKeyAt + 49'999] == std::byte{1}; }));
    return;
  }
  ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kDisconnected) == 1; }));
  victim.data.fill(77, kKeyAt + 50'000);  // what was offered may have been written
  expect_end("CRC error in an FPDU", term::kCrc);
}

TEST_P(HostileFrame, OpcodesThatWeDoNotOffer) {
  peer.send_fpdu(untagged(static_cast<uint8_t>(8), true, 0, 1, 0, octets(8, 1)));
  expect_end("unexpected RDMAP opcode 8, untagged", term::kOpcode);
}

TEST_P(HostileFrame, AtomicOpcode) {
  peer.send_fpdu(untagged(static_cast<uint8_t>(10), true, 1, 1, 0, octets(52, 1)));
  expect_end("unexpected RDMAP opcode 10", term::kOpcode);
}

TEST_P(HostileFrame, TaggedSend) {
  peer.send_fpdu(tagged(kSend, true, write_key, 0, octets(8, 1)));
  expect_end("unexpected RDMAP opcode 3, tagged", term::kOpcode);
}

TEST_P(HostileFrame, UntaggedWrite) {
  peer.send_fpdu(untagged(kWrite, true, 0, 1, 0, octets(8, 1)));
  expect_end("unexpected RDMAP opcode 0, untagged", term::kOpcode);
}

TEST_P(HostileFrame, UntaggedReadResponse) {
  peer.send_fpdu(untagged(kReadResp, true, 0, 1, 0, octets(8, 1)));
  expect_end("unexpected RDMAP opcode 2, untagged", term::kOpcode);
}

TEST_P(HostileFrame, DdpVersionTagged) {
  peer.send_fpdu(tagged(kWrite, true, write_key, 0, octets(8, 1), {2, 1}));
  expect_end("DDP version 2", term::kTaggedVersion);
}

TEST_P(HostileFrame, DdpVersionUntagged) {
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, octets(8, 1), 0, {0, 1}));
  expect_end("DDP version 0", term::kUntaggedVersion);
}

TEST_P(HostileFrame, RdmapVersion) {
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, octets(8, 1), 0, {1, 3}));
  expect_end("RDMAP version 3", term::kRdmapVersion);
}

TEST_P(HostileFrame, UlpduOfLengthZero) {
  peer.send(peer.frame({}));
  expect_end("shorter than its header: ULPDU length 0", term::kUlpduLength);
}

TEST_P(HostileFrame, UlpduOneByteShortTagged) {
  Octets ulpdu = tagged(kWrite, true, write_key, 0, {});
  ulpdu.pop_back();
  peer.send_fpdu(ulpdu);
  expect_end("ULPDU length 13", term::kUlpduLength);
}

TEST_P(HostileFrame, UlpduOneByteShortUntagged) {
  Octets ulpdu = untagged(kSend, true, 0, 1, 0, {});
  ulpdu.pop_back();
  peer.send_fpdu(ulpdu);
  expect_end("ULPDU length 17", term::kUlpduLength);
}

TEST_P(HostileFrame, TerminateIsUnderstood) {
  Octets body{0x12, 0x02, 0, 0};
  peer.send_fpdu(untagged(kTerminate, true, 2, 1, 0, body));
  expect_disconnected(
      "Terminate: DDP, untagged buffer: no buffer for the message: more was sent than receives");
  ASSERT_TRUE(run_until([&] { return peer.receive(); }, [] {}));
  EXPECT_EQ(peer.buffered(), 0u);  // a Terminate is not answered
}

TEST_P(HostileFrame, TerminateOnAnotherQueue) {
  peer.send_fpdu(untagged(kTerminate, true, 0, 1, 0, {0, 0, 0, 0}));
  expect_end("opcode 7 on queue 0", term::kQueueNumber);
}

TEST_P(HostileFrame, TerminateTooShort) {
  peer.send_fpdu(untagged(kTerminate, true, 2, 1, 0, {0, 0}));
  expect_end("too short", term::kStreamCatastrophic);
}

TEST_P(HostileFrame, EndWithinAnFpdu) {
  const Octets all = peer.frame(untagged(kSend, true, 0, 1, 0, octets(100, 1)));
  peer.send(Octets(all.begin(), all.begin() + 50));
  peer.finish_sending();
  expect_disconnected("closed the connection within an FPDU");
}

TEST_P(HostileFrame, EndWithinALongFpdu) {
  const Octets all = peer.frame(tagged(kWrite, true, write_key, 0, octets(50'000, 1)));
  peer.send(Octets(all.begin(), all.begin() + 40'000));
  peer.finish_sending();
  expect_disconnected("closed the connection within an FPDU");
}

TEST_P(HostileFrame, EndBetweenFpdus) {
  peer.finish_sending();
  expect_disconnected("the peer closed the connection");
}

// Any field of any head changed at random, CRCs right: nothing outside what was offered changes.
TEST_P(HostileFrame, RandomHeads) {
  std::mt19937 random(GetParam().client ? 1 : 2);
  for (int round = 0; round < 60; ++round) {
    if (round != 0) {
      peer.reset();
      victim.connection.reset();
      victim.log.clear();
      Hostile::SetUp();
      ASSERT_FALSE(HasFatalFailure());
    }
    for (int frame = 0; frame < 8; ++frame) {
      Octets ulpdu;
      switch (random() % 4) {
        case 0:
          ulpdu = tagged(kWrite, random() % 2 != 0, write_key, random() % 5000,
                         octets(random() % 3000, 0xee));
          break;
        case 1:
          ulpdu = untagged(kSend, true, 0, static_cast<uint32_t>(frame) + 1, 0,
                           octets(random() % 5000, 0xee));
          break;
        case 2:
          ulpdu = read_request(1, 1, 0, random() % 5000, read_key, random() % 1000);
          break;
        default:
          ulpdu = tagged(kReadResp, true, write_key, 0, octets(random() % 100, 0xee));
      }
      const size_t heads = std::min<size_t>(ulpdu.size(), 46);
      for (uint32_t changes = random() % 3; changes != 0; --changes) {
        ulpdu[random() % heads] = static_cast<uint8_t>(random());
      }
      if (random() % 8 == 0) ulpdu.resize(random() % 60);
      peer.send_fpdu(ulpdu);
      for (int i = 0; i < 4; ++i) victim.poll();
      for (const Completion& c : victim.log) {
        if (c.kind == CompletionKind::kReceive) victim.connection->post_receive(c.buffer);
      }
      victim.log.clear();
    }
    const size_t end = kKeyAt + kKeyBytes;
    for (size_t i = 0; i < kKeyAt; ++i) {
      ASSERT_EQ(victim.data.data()[i], Arena::pattern(77, i));
    }
    for (size_t i = end; i < end + 10'000; ++i) {
      ASSERT_EQ(victim.data.data()[i], Arena::pattern(77, i));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Roles, HostileFrame, roles(), role_name);

}  // namespace
