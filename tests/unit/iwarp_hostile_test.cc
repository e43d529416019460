// SPDX-License-Identifier: GPL-2.0-or-later
// Peers that break the rules of DDP and RDMAP (RFC 5041 section 7, RFC 5040 section 7): each ends
// its connection with the right Terminate, and touches nothing.
#include <sys/ioctl.h>

#include "iwarp_hostile.h"

using namespace nfsrdma;
using namespace nfsrdma::test;
namespace term = nfsrdma::iwarp::term;

namespace {

class HostileWrite : public Hostile {};
class HostileSend : public Hostile {};
class HostileRead : public Hostile {};

// --- first, that the hand-made frames are good ones ---

TEST_P(Hostile, ARuleAbidingPeerIsServed) {
  // A Write in two segments, a Send, a Send with Invalidate, a Read of what was written.
  peer.send_fpdu(tagged(kWrite, false, write_key, 10, octets(100, 0xaa)));
  peer.send_fpdu(tagged(kWrite, true, write_key, 110, octets(33, 0xbb)));
  peer.send_fpdu(untagged(kSend, false, 0, 1, 0, octets(5, 1)));
  peer.send_fpdu(untagged(kSend, true, 0, 1, 5, octets(2, 2)));
  peer.send_fpdu(untagged(kSendSeInv, true, 0, 2, 0, octets(3, 3), write_key));
  peer.send_fpdu(read_request(1, 0x1234, 7, 143, read_key, 0));
  ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kReceive) == 2; }));
  EXPECT_EQ(victim.log[0].bytes, 7u);
  EXPECT_FALSE(victim.log[0].invalidated);
  EXPECT_EQ(victim.received(victim.log[0])[4], std::byte{1});
  EXPECT_EQ(victim.received(victim.log[0])[5], std::byte{2});
  EXPECT_TRUE(victim.log[1].invalidated);
  EXPECT_EQ(victim.log[1].key, write_key);
  for (size_t i = 0; i < 133; ++i) {
    ASSERT_EQ(victim.data.data()[kKeyAt + 10 + i], i < 100 ? std::byte{0xaa} : std::byte{0xbb});
  }
  std::optional<Octets> response;
  ASSERT_TRUE(until([&] { return (response = peer.next_ulpdu()).has_value(); }));
  ASSERT_EQ(response->size(), 14u + 143u);
  EXPECT_EQ((*response)[0], 0xc1);
  EXPECT_EQ((*response)[1], 0x42);
  EXPECT_EQ(get32(*response, 2), 0x1234u);
  EXPECT_EQ(get64(*response, 6), 7u);
  EXPECT_EQ(std::memcmp(response->data() + 14, victim.data.data() + kKeyAt, 143), 0);
}

TEST_P(Hostile, EmptyWriteNamesNoMemory) {
  peer.send_fpdu(tagged(kWrite, true, 0, 0, {}));
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, {}));
  ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kReceive) == 1; }));
}

// --- RDMA Write ---

TEST_P(HostileWrite, UnknownStag) {
  peer.send_fpdu(tagged(kWrite, true, write_key ^ 0x10000, 0, octets(8, 1)));
  expect_end("RDMA Write with an invalid STag", term::kTaggedStag);
}

TEST_P(HostileWrite, StagZero) {
  peer.send_fpdu(tagged(kWrite, true, 0, 0, octets(1, 1)));
  expect_end("invalid STag", term::kTaggedStag);
}

TEST_P(HostileWrite, OneByteBeyondTheEnd) {
  peer.send_fpdu(tagged(kWrite, true, write_key, kKeyBytes - 7, octets(8, 1)));
  expect_end("beyond the bounds", term::kTaggedBounds);
}

TEST_P(HostileWrite, OneByteBeyondTheEndOfALongFpdu) {
  peer.send_fpdu(tagged(kWrite, true, write_key, kKeyBytes - 49'999, octets(50'000, 1)));
  expect_end("beyond the bounds", term::kTaggedBounds);
}

TEST_P(HostileWrite, BeforeTheStart) {
  peer.send_fpdu(tagged(kWrite, true, write_key, UINT64_MAX, octets(1, 1)));
  expect_end("wraps", term::kTaggedWrap);
}

TEST_P(HostileWrite, FarBeyondTheEnd) {
  peer.send_fpdu(tagged(kWrite, true, write_key, 1ull << 63, octets(1, 1)));
  expect_end("beyond the bounds", term::kTaggedBounds);
}

TEST_P(HostileWrite, WithoutTheRight) {
  peer.send_fpdu(tagged(kWrite, true, read_key, 0, octets(8, 1)));
  expect_end("without the right", term::kAccess);
}

TEST_P(HostileWrite, IntoReceiveBuffers) {
  const RemoteMemory receives =
      victim.fabric->remote_memory(victim.receive_region, victim.receives.data());
  peer.send_fpdu(tagged(kWrite, true, receives.key, 0, octets(8, 1)));
  expect_end("without the right", term::kAccess);
  EXPECT_EQ(victim.receives.data()[0], std::byte{0});
}

TEST_P(HostileWrite, AfterTheKeyWasUnbound) {
  EXPECT_TRUE(victim.connection->unbind_key(write_key, 0));
  peer.send_fpdu(tagged(kWrite, true, write_key, 0, octets(8, 1)));
  expect_end("invalid STag", term::kTaggedStag);
}

TEST_P(HostileWrite, AfterItsOwnInvalidation) {
  peer.send_fpdu(untagged(kSendInv, true, 0, 1, 0, {}, write_key));
  peer.send_fpdu(tagged(kWrite, true, write_key, 0, octets(8, 1)));
  expect_end("invalid STag", term::kTaggedStag);
}

// The key dies while a long FPDU comes in: not one byte more is placed.
TEST_P(HostileWrite, WhileTheKeyIsUnbound) {
  const Octets all = peer.frame(tagged(kWrite, true, write_key, 0, octets(60'000, 0xee)));
  peer.send(Octets(all.begin(), all.begin() + 30'000));
  const std::byte* data = victim.data.data() + kKeyAt;
  ASSERT_TRUE(until([&] { return data[29'000] == std::byte{0xee}; }));
  EXPECT_TRUE(victim.connection->unbind_key(write_key, 0));
  victim.data.fill(77);
  peer.send(Octets(all.begin() + 30'000, all.end()));
  expect_end("invalid STag", term::kTaggedStag);
}

TEST_P(HostileWrite, EndlessSegments) {
  for (uint32_t at = 0; at <= kKeyBytes; at += 10'000) {
    peer.send_fpdu(tagged(kWrite, false, write_key, at, octets(10'000, 1)));
  }
  ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kDisconnected) == 1; }));
  for (size_t i = 0; i < kDataBytes; ++i) {  // the key's range may be written, nothing else
    const bool offered = i >= kKeyAt && i < kKeyAt + kKeyBytes;
    ASSERT_EQ(victim.data.data()[i], offered ? std::byte{1} : Arena::pattern(77, i)) << i;
  }
  victim.data.fill(77);
  expect_end("beyond the bounds", term::kTaggedBounds);
}

TEST_P(HostileWrite, EndlessEmptySegments) {
  peer.send_fpdu(tagged(kWrite, false, write_key, 0, {}));
  expect_end("empty tagged segment", term::kStreamCatastrophic);
}

TEST_P(HostileWrite, SegmentsThatJump) {
  peer.send_fpdu(tagged(kWrite, false, write_key, 0, octets(8, 1)));
  peer.send_fpdu(tagged(kWrite, true, write_key, 9, octets(8, 1)));
  ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kDisconnected) == 1; }));
  victim.data.fill(77, kKeyAt + 8);
  expect_end("do not follow each other", term::kTaggedBounds);
}

TEST_P(HostileWrite, SegmentsOfTwoStags) {
  const uint32_t other = bind(Access::kRemoteWrite);
  peer.send_fpdu(tagged(kWrite, false, write_key, 0, octets(8, 1)));
  peer.send_fpdu(tagged(kWrite, true, other, 8, octets(8, 1)));
  ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kDisconnected) == 1; }));
  victim.data.fill(77, kKeyAt + 8);
  expect_end("changed its STag", term::kTaggedStag);
}

TEST_P(HostileWrite, AfterCloseNothingIsPlaced) {
  victim.connection->close();
  peer.send_fpdu(tagged(kWrite, true, write_key, 0, octets(8, 1)));
  for (int i = 0; i < 100; ++i) victim.poll();
  EXPECT_TRUE(victim.log.empty());
  expect_untouched();
}

// --- Send ---

TEST_P(HostileSend, SequenceNumberZero) {
  peer.send_fpdu(untagged(kSend, true, 0, 0, 0, octets(8, 1)));
  expect_end("sequence number 0, 1 was expected", term::kMsn);
}

TEST_P(HostileSend, SequenceNumberSkipped) {
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, octets(8, 1)));
  peer.send_fpdu(untagged(kSend, true, 0, 3, 0, octets(8, 1)));
  expect_end("sequence number 3, 2 was expected", term::kMsn);
  EXPECT_EQ(victim.count(CompletionKind::kReceive), 1u);
}

TEST_P(HostileSend, SequenceNumberRepeated) {
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, octets(8, 1)));
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, octets(8, 1)));
  expect_end("sequence number 1, 2 was expected", term::kMsn);
}

TEST_P(HostileSend, FirstOffsetNotZero) {
  peer.send_fpdu(untagged(kSend, true, 0, 1, 4, octets(8, 1)));
  expect_end("message offset 4, 0 was expected", term::kMessageOffset);
}

TEST_P(HostileSend, OffsetBeyondTheBuffer) {
  peer.send_fpdu(untagged(kSend, false, 0, 1, 0, octets(8, 1)));
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0x7fffffff, octets(8, 1)));
  expect_end("message offset", term::kMessageOffset);
}

TEST_P(HostileSend, OffsetThatGoesBack) {
  peer.send_fpdu(untagged(kSend, false, 0, 1, 0, octets(8, 1)));
  peer.send_fpdu(untagged(kSend, true, 0, 1, 7, octets(8, 1)));
  expect_end("message offset 7, 8 was expected", term::kMessageOffset);
}

TEST_P(HostileSend, QueueThree) {
  peer.send_fpdu(untagged(kSend, true, 3, 1, 0, octets(8, 1)));
  expect_end("queue 3", term::kQueueNumber);
}

TEST_P(HostileSend, OnTheQueueOfReads) {
  peer.send_fpdu(untagged(kSend, true, 1, 1, 0, octets(8, 1)));
  expect_end("queue 1", term::kQueueNumber);
}

TEST_P(HostileSend, OneByteTooLong) {
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, octets(kReceiveSize + 1, 1)));
  expect_end("longer than the receive", term::kTooLong);
  EXPECT_EQ(victim.receives.data()[kReceiveSize], std::byte{0});
}

TEST_P(HostileSend, MuchTooLong) {
  peer.send_fpdu(untagged(kSend, true, 0, 1, 0, octets(65'000, 1)));
  expect_end("longer than the receive", term::kTooLong);
  EXPECT_EQ(victim.receives.data()[0], std::byte{0});
}

TEST_P(HostileSend, EndlessSegments) {
  for (uint32_t at = 0; at <= kReceiveSize; at += 256) {
    peer.send_fpdu(untagged(kSend, false, 0, 1, at, octets(256, 1)));
  }
  expect_end("longer than the receive", term::kTooLong);
  EXPECT_EQ(victim.receives.data()[kReceiveSize], std::byte{0});
  EXPECT_EQ(victim.count(CompletionKind::kReceive), 0u);
}

TEST_P(HostileSend, EndlessEmptySegments) {
  peer.send_fpdu(untagged(kSend, false, 0, 1, 0, {}));
  expect_end("empty segment", term::kStreamCatastrophic);
}

TEST_P(HostileSend, MoreThanReceivesPosted) {
  for (uint32_t i = 1; i <= kReceives + 1; ++i) {
    peer.send_fpdu(untagged(kSend, true, 0, i, 0, octets(8, 1)));
  }
  expect_end("no receive is posted", term::kNoBuffer);
  EXPECT_EQ(victim.count(CompletionKind::kReceive), kReceives);
}

TEST_P(HostileSend, OpcodeChangesBetweenSegments) {
  peer.send_fpdu(untagged(kSend, false, 0, 1, 0, octets(8, 1)));
  peer.send_fpdu(untagged(kSendInv, true, 0, 1, 8, octets(8, 1), write_key));
  expect_end("changed its opcode", term::kOpcode);
}

TEST_P(HostileSend, InvalidatesAWholeRegion) {
  peer.send_fpdu(untagged(kSendInv, true, 0, 1, 0, {}, victim.remote(0).key));
  expect_end("invalidates", term::kCannotInvalidate);
  EXPECT_EQ(victim.count(CompletionKind::kReceive), 0u);
}

TEST_P(HostileSend, InvalidatesTwice) {
  peer.send_fpdu(untagged(kSendInv, true, 0, 1, 0, {}, write_key));
  peer.send_fpdu(untagged(kSendSeInv, true, 0, 2, 0, {}, write_key));
  expect_end("invalidates", term::kCannotInvalidate);
  EXPECT_EQ(victim.count(CompletionKind::kReceive), 1u);
}

// --- Read Request, Read Response ---

TEST_P(HostileRead, UnknownStag) {
  peer.send_fpdu(read_request(1, 1, 0, 8, read_key ^ 0x10000, 0));
  expect_end("RDMA Read with an invalid STag", term::kReadStag);
}

TEST_P(HostileRead, OneByteBeyondTheEnd) {
  peer.send_fpdu(read_request(1, 1, 0, 8, read_key, kKeyBytes - 7));
  expect_end("beyond the bounds", term::kReadBounds);
}

TEST_P(HostileRead, FourGigabytes) {
  peer.send_fpdu(read_request(1, 1, 0, 0xffffffff, read_key, 0));
  expect_end("beyond the bounds", term::kReadBounds);
}

TEST_P(HostileRead, OffsetThatWraps) {
  peer.send_fpdu(read_request(1, 1, 0, 8, read_key, UINT64_MAX - 7));
  expect_end("wraps", term::kReadWrap);
}

TEST_P(HostileRead, WithoutTheRight) {
  peer.send_fpdu(read_request(1, 1, 0, 8, write_key, 0));
  expect_end("without the right", term::kAccess);
}

TEST_P(HostileRead, AfterTheKeyWasUnbound) {
  EXPECT_TRUE(victim.connection->unbind_key(read_key, 0));
  peer.send_fpdu(read_request(1, 1, 0, 8, read_key, 0));
  expect_end("invalid STag", term::kReadStag);
}

TEST_P(HostileRead, MoreThanOurIrd) {
  Octets all;
  for (uint32_t msn = 1; msn <= 17; ++msn) {
    const Octets one = peer.frame(read_request(msn, 1, 0, 90'000, read_key, 0));
    all.insert(all.end(), one.begin(), one.end());
  }
  peer.send(all);
  ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kDisconnected) == 1; }));
  expect_end("more Read Requests outstanding than our IRD", term::kNoBuffer);
}

TEST_P(HostileRead, SequenceNumberSkipped) {
  peer.send_fpdu(read_request(2, 1, 0, 8, read_key, 0));
  expect_end("sequence number 2 on queue 1, 1 was expected", term::kMsn);
}

TEST_P(HostileRead, RequestOnTheQueueOfSends) {
  Octets ulpdu = read_request(1, 1, 0, 8, read_key, 0);
  ulpdu[9] = 0;
  peer.send_fpdu(ulpdu);
  expect_end("opcode 1 on queue 0", term::kQueueNumber);
}

TEST_P(HostileRead, RequestWithAnOffset) {
  Octets ulpdu = read_request(1, 1, 0, 8, read_key, 0);
  ulpdu[17] = 4;
  peer.send_fpdu(ulpdu);
  expect_end("message offset 4", term::kMessageOffset);
}

TEST_P(HostileRead, RequestTooShort) {
  Octets ulpdu = read_request(1, 1, 0, 8, read_key, 0);
  ulpdu.pop_back();
  peer.send_fpdu(ulpdu);
  expect_end("27 bytes on queue 1 is too short", term::kStreamCatastrophic);
}

TEST_P(HostileRead, RequestTooLong) {
  Octets ulpdu = read_request(1, 1, 0, 8, read_key, 0);
  ulpdu.resize(40'000);
  peer.send_fpdu(ulpdu);
  expect_end("on queue 1", term::kTooLong);
}

TEST_P(HostileRead, RequestInSegments) {
  Octets ulpdu = read_request(1, 1, 0, 8, read_key, 0);
  ulpdu[0] = 0x01;
  peer.send_fpdu(ulpdu);
  expect_end("on queue 1", term::kStreamCatastrophic);
}

TEST_P(HostileRead, ResponseUnasked) {
  peer.send_fpdu(tagged(kReadResp, true, 0xc0000000, 0, octets(8, 1)));
  expect_end("no Read is outstanding", term::kOpcode);
}

// A peer that asks for much and reads nothing: bytes of the key's memory wait in the socket's
// queue.
class HostileUnbind : public Hostile {
 protected:
  HostileUnbind() {
    victim.ird = 128;
    peer.window = 16 * 1024;
  }
  void ask_and_read_nothing() {
    for (uint32_t msn = 1; msn <= 128; ++msn) {
      peer.send_fpdu(read_request(msn, 1, 0, kKeyBytes, read_key, 0));
    }
    pollfd wait{};
    ASSERT_TRUE(until(
        [&] { return victim.connection->prepare_wait(wait) && (wait.events & POLLOUT) != 0; }));
    for (int i = 0; i < 1000; ++i) victim.poll();
  }
  // Bytes that the victim has handed to the network: unacknowledged, or unread by the peer.
  int bytes_left() {
    pollfd socket{};
    victim.connection->prepare_wait(socket);
    int unacknowledged = 0;
    EXPECT_EQ(ioctl(socket.fd, TIOCOUTQ, &unacknowledged), 0);
    return unacknowledged + peer.unread();
  }
};

TEST_P(HostileUnbind, TheKeyIsDeadOnlyWhenItsBytesHaveLeft) {
  ask_and_read_nothing();
  if (HasFatalFailure()) return;
  const int left_before = bytes_left();
  EXPECT_FALSE(victim.connection->unbind_key(read_key, 42));
  EXPECT_TRUE(victim.connection->unbind_key(write_key, 43));  // no Read names this one
  for (int i = 0; i < 1000; ++i) victim.poll();
  // The kernel may make its buffers larger meanwhile; then some have left after all.
  if (bytes_left() == left_before) {
    EXPECT_EQ(victim.count(CompletionKind::kUnbound), 0u);
  }
  ASSERT_TRUE(until([&] {
    while (peer.next_ulpdu()) continue;
    return victim.count(CompletionKind::kDisconnected) == 1;
  }));
  ASSERT_EQ(victim.count(CompletionKind::kUnbound), 1u);
  EXPECT_EQ(victim.last(CompletionKind::kUnbound)->context, 42u);
  EXPECT_EQ(victim.log.back().kind, CompletionKind::kDisconnected);
  // Responses that were not begun are not sent.
  EXPECT_NE(victim.connection->error().text.find("no longer offered"), std::string::npos);
}

TEST_P(HostileUnbind, CloseDropsWhatHasNotLeft) {
  ask_and_read_nothing();
  if (HasFatalFailure()) return;
  EXPECT_FALSE(victim.connection->unbind_key(read_key, 42));
  victim.connection->close();
  for (int i = 0; i < 10; ++i) victim.poll();
  EXPECT_TRUE(victim.log.empty());
}

class HostileResponse : public Hostile {
 protected:
  // The victim reads 3000 bytes; `sink` is what it named.
  void SetUp() override {
    Hostile::SetUp();
    if (HasFatalFailure()) return;
    // A server sends only after it has received.
    peer.send_fpdu(tagged(kWrite, true, 0, 0, {}));
    ASSERT_TRUE(victim.connection->post_read(5, victim.span(kKeyAt, 3000), {0xabcd, 0x10}));
    victim.connection->ring();
    std::optional<Octets> request;
    ASSERT_TRUE(until([&] { return (request = peer.next_ulpdu()).has_value(); }));
    ASSERT_EQ(request->size(), 46u);
    EXPECT_EQ((*request)[0], 0x41);
    EXPECT_EQ((*request)[1], 0x41);
    EXPECT_EQ(get32(*request, 6), 1u);
    EXPECT_EQ(get32(*request, 10), 1u);
    sink = get32(*request, 18);
    sink_offset = get64(*request, 22);
    EXPECT_EQ(get32(*request, 30), 3000u);
    EXPECT_EQ(get32(*request, 34), 0xabcdu);
    EXPECT_EQ(get64(*request, 38), 0x10u);
  }
  uint32_t sink = 0;
  uint64_t sink_offset = 0;
};

TEST_P(HostileResponse, ARightOneIsTaken) {
  peer.send_fpdu(tagged(kReadResp, false, sink, sink_offset, octets(2000, 1)));
  peer.send_fpdu(tagged(kReadResp, true, sink, sink_offset + 2000, octets(1000, 2)));
  ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kReadDone) == 1; }));
  EXPECT_EQ(victim.log.back().context, 5u);
  EXPECT_EQ(victim.data.data()[kKeyAt + 1999], std::byte{1});
  EXPECT_EQ(victim.data.data()[kKeyAt + 2999], std::byte{2});
  EXPECT_EQ(victim.data.data()[kKeyAt + 3000], Arena::pattern(77, kKeyAt + 3000));
}

TEST_P(HostileResponse, OneByteTooLong) {
  peer.send_fpdu(tagged(kReadResp, true, sink, sink_offset, octets(3001, 1)));
  expect_end("to a Read of 3000", term::kTaggedBounds);
}

TEST_P(HostileResponse, MuchTooLong) {
  peer.send_fpdu(tagged(kReadResp, true, sink, sink_offset, octets(60'000, 1)));
  expect_end("to a Read of 3000", term::kTaggedBounds);
}

TEST_P(HostileResponse, TooShort) {
  peer.send_fpdu(tagged(kReadResp, true, sink, sink_offset, octets(2999, 1)));
  expect_end("a Read Response of 2999 bytes to a Read of 3000", term::kTaggedBounds);
}

TEST_P(HostileResponse, WithAGap) {
  peer.send_fpdu(tagged(kReadResp, true, sink, sink_offset + 8, octets(2992, 1)));
  expect_end("to a Read of 3000", term::kTaggedBounds);
}

TEST_P(HostileResponse, OfAnotherStag) {
  peer.send_fpdu(tagged(kReadResp, true, write_key, 0, octets(3000, 1)));
  expect_end("another Read", term::kTaggedStag);
}

TEST_P(HostileResponse, SinkIsNoTargetOfAWrite) {
  peer.send_fpdu(tagged(kWrite, true, sink, sink_offset, octets(8, 1)));
  expect_end("invalid STag", term::kTaggedStag);
}

TEST_P(HostileResponse, Twice) {
  peer.send_fpdu(tagged(kReadResp, true, sink, sink_offset, octets(3000, 1)));
  peer.send_fpdu(tagged(kReadResp, true, sink, sink_offset, octets(3000, 1)));
  ASSERT_TRUE(until([&] { return victim.count(CompletionKind::kDisconnected) == 1; }));
  EXPECT_EQ(victim.count(CompletionKind::kReadDone), 1u);
  victim.data.fill(77);
  expect_end("no Read is outstanding", term::kOpcode);
}

TEST_P(HostileResponse, WriteWithinIt) {
  peer.send_fpdu(tagged(kReadResp, false, sink, sink_offset, octets(100, 1)));
  ASSERT_TRUE(until([&] { return victim.data.data()[kKeyAt + 99] == std::byte{1}; }));
  victim.data.fill(77);
  peer.send_fpdu(tagged(kWrite, true, write_key, 0, octets(8, 1)));
  expect_end("within another", term::kOpcode);
}

INSTANTIATE_TEST_SUITE_P(Roles, Hostile, roles(), role_name);
INSTANTIATE_TEST_SUITE_P(Roles, HostileWrite, roles(), role_name);
INSTANTIATE_TEST_SUITE_P(Roles, HostileSend, roles(), role_name);
INSTANTIATE_TEST_SUITE_P(Roles, HostileUnbind, roles(), role_name);
INSTANTIATE_TEST_SUITE_P(Roles, HostileRead, roles(), role_name);
INSTANTIATE_TEST_SUITE_P(Roles, HostileResponse, roles(), role_name);

}  // namespace
