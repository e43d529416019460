// SPDX-License-Identifier: GPL-2.0-or-later
// What calls look like on the wire (RFC 8166 sections 3.4 and 3.5), and credits (section 3.3).
#include "rdma_rig.h"

namespace nfsrdma::testing {
namespace {

class RpcRdmaSend : public RdmaRig {
 protected:
  Bytes io(size_t offset, size_t length) { return Bytes(memory).subspan(offset, length); }
};

TEST_F(RpcRdmaSend, SmallCallGoesInline) {
  open();
  const uint32_t slot = call(0xabcd);
  transport->flush();
  const Seen seen = take();
  EXPECT_EQ(seen.header.proc, RdmaProc::kMsg);
  EXPECT_EQ(seen.header.xid, transport->xid(slot));
  EXPECT_EQ(seen.header.credits, 8u);
  EXPECT_EQ(seen.header.reads.size() + seen.header.writes.size(), 0u);
  EXPECT_FALSE(seen.header.has_reply);
  ASSERT_EQ(seen.header.rpc.size(), 16u);
  EXPECT_EQ(load_be32(seen.header.rpc.data() + 8), 0xabcdu);
  EXPECT_EQ(sent_slots, std::vector<uint32_t>{slot});
}

TEST_F(RpcRdmaSend, OffersItsInlineSizeAndKeepsTheInvalidationFlagClear) {
  options.inline_size = 8192;
  fabric_options.remote_invalidation = true;
  open();
  const CmPrivateData said = decode_cm_private_data(peer->request_private_data);
  EXPECT_EQ(said.send_size, 8192u);
  EXPECT_EQ(said.receive_size, 8192u);
  EXPECT_FALSE(said.remote_invalidation) << "long-lived keys can't be invalidated";
}

TEST_F(RpcRdmaSend, WriteDataInlineWhereTheyFitWithTheirPad) {
  open();
  const auto data = pattern(1001, 3);
  std::copy(data.begin(), data.end(), memory.begin() + 7);
  call(5, 16, io(7, 1001));
  transport->flush();
  const Seen seen = take();
  EXPECT_EQ(seen.header.reads.size(), 0u);
  ASSERT_EQ(seen.header.rpc.size(), 16u + 1004u);
  EXPECT_EQ(std::memcmp(seen.header.rpc.data() + 16, data.data(), data.size()), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(seen.header.rpc[16 + 1001 + i], std::byte{0});
}

// The last size that fits 4096 bytes, and the first that does not.
TEST_F(RpcRdmaSend, InlineLimitIsExact) {
  open();
  warm_up();
  const uint32_t fits = 4096 - kRdmaHeaderMin - 16;
  call(5, 16, io(0, fits));
  call(5, 16, io(0, fits + 1));
  transport->flush();
  Seen seen = take();
  EXPECT_EQ(seen.bytes.size(), 4096u);
  EXPECT_EQ(seen.header.reads.size(), 0u);
  seen = take();
  EXPECT_EQ(seen.header.reads.size(), 1u);
}

TEST_F(RpcRdmaSend, PeerWithoutPrivateDataGets1024) {
  peer_says_private_data = false;
  open();
  warm_up();
  call(5, 16, io(0, 1024 - kRdmaHeaderMin - 16));
  call(5, 16, io(0, 1024 - kRdmaHeaderMin - 16 + 4));
  transport->flush();
  EXPECT_EQ(take().bytes.size(), 1024u);
  EXPECT_EQ(take().header.reads.size(), 1u);
}

TEST_F(RpcRdmaSend, WriteDataInAReadChunkAtTheirXdrPosition) {
  open();
  const auto data = pattern(8191, 4);
  std::copy(data.begin(), data.end(), memory.begin());
  call(5, 132, io(0, 8191));
  transport->flush();
  const Seen seen = take();
  EXPECT_EQ(seen.header.proc, RdmaProc::kMsg);
  ASSERT_EQ(seen.header.reads.size(), 1u);
  const ReadSegment read = seen.header.reads[0];
  EXPECT_EQ(read.position, 132u);
  EXPECT_EQ(read.target.length, 8191u);
  EXPECT_EQ(seen.header.rpc.size(), 132u) << "neither data nor pad stand inline";
  EXPECT_EQ(peer->peer_read(read.target.handle, read.target.offset, 8191), data);
}

TEST_F(RpcRdmaSend, ReadOffersAWriteChunkAndNoReplyChunk) {
  open();
  call(5, 32, {}, io(4096, 8192));
  transport->flush();
  const Seen seen = take();
  EXPECT_FALSE(seen.header.has_reply);
  ASSERT_EQ(seen.header.writes.size(), 1u);
  ASSERT_EQ(seen.header.writes.front().size(), 1u);
  EXPECT_EQ(seen.header.writes.front()[0].length, 8192u);
  EXPECT_EQ(seen.header.writes.front()[0].offset, reinterpret_cast<uint64_t>(&memory[4096]));
}

TEST_F(RpcRdmaSend, SmallReadNeedsNoChunk) {
  open();
  call(5, 32, {}, io(0, 512));
  transport->flush();
  EXPECT_EQ(take().header.writes.size(), 0u);
}

TEST_F(RpcRdmaSend, LargeReplyGetsAReplyChunk) {
  open();
  warm_up();
  call(5, 32, {}, {}, 4096 - kRdmaHeaderMin);
  call(5, 32, {}, {}, 4096 - kRdmaHeaderMin + 4);
  transport->flush();
  EXPECT_FALSE(take().header.has_reply);
  const Seen seen = take();
  ASSERT_TRUE(seen.header.has_reply);
  ASSERT_EQ(seen.header.reply.size(), 1u);
  EXPECT_EQ(seen.header.reply[0].length, 4096 - kRdmaHeaderMin + 4);
}

TEST_F(RpcRdmaSend, CallsWithReplyChunksWaitForABufferInOrder) {
  open();
  warm_up();
  for (int i = 0; i < 6; ++i) call(5, 32, {}, {}, 60000);
  transport->flush();
  EXPECT_EQ(peer->sent.size(), 4u);
  EXPECT_EQ(transport->unsent(), 2u);
  ASSERT_TRUE(answer(take()));
  transport->progress();
  EXPECT_EQ(peer->sent.size(), 4u);
  EXPECT_EQ(transport->unsent(), 1u);
}

TEST_F(RpcRdmaSend, LongCallInAPositionZeroReadChunk) {
  config.head_max = 6000;
  open();
  call(0x77, 5000);
  transport->flush();
  const Seen seen = take();
  EXPECT_EQ(seen.header.proc, RdmaProc::kNomsg);
  EXPECT_TRUE(seen.header.rpc.empty());
  ASSERT_EQ(seen.header.reads.size(), 1u);
  EXPECT_EQ(seen.header.reads[0].position, 0u);
  const RdmaSegment head = seen.header.reads[0].target;
  const auto bytes = peer->peer_read(head.handle, head.offset, head.length);
  ASSERT_EQ(bytes.size(), 5000u);
  EXPECT_EQ(load_be32(bytes.data()), seen.header.xid);
  EXPECT_EQ(load_be32(bytes.data() + 4996), 0x77u);
}

// Head, data and pad in one chunk: servers refuse a second Read chunk.
TEST_F(RpcRdmaSend, LongCallWithDataIsOneReadChunk) {
  config.head_max = 6000;
  open();
  const auto data = pattern(9001, 6);
  std::copy(data.begin(), data.end(), memory.begin());
  call(0x77, 5000, io(0, 9001));
  transport->flush();
  const Seen seen = take();
  EXPECT_EQ(seen.header.proc, RdmaProc::kNomsg);
  ASSERT_EQ(seen.header.reads.size(), 3u);
  std::vector<std::byte> whole;
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen.header.reads[i].position, 0u);
    const RdmaSegment part = seen.header.reads[i].target;
    const auto bytes = peer->peer_read(part.handle, part.offset, part.length);
    whole.insert(whole.end(), bytes.begin(), bytes.end());
  }
  ASSERT_EQ(whole.size(), 5000u + 9001u + 3u);
  EXPECT_EQ(load_be32(whole.data() + 4996), 9001u);
  EXPECT_EQ(std::memcmp(whole.data() + 5000, data.data(), data.size()), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(whole[14001 + i], std::byte{0});
}

TEST_F(RpcRdmaSend, MemoryOutsideAnyRegionFailsThatCallOnly) {
  open();
  warm_up();
  std::vector<std::byte> elsewhere(8192);
  const uint32_t bad = call(1, 16, {}, elsewhere);
  const uint32_t good = call(2);
  transport->flush();
  ASSERT_TRUE(answer(take()));
  ASSERT_TRUE(run_until_ended(2));
  EXPECT_EQ(ends[0].slot, bad);
  EXPECT_EQ(ends[0].error, EFAULT);
  EXPECT_NE(ends[0].text.find("8192 bytes"), std::string::npos) << ends[0].text;
  EXPECT_EQ(ends[1].slot, good);
  EXPECT_EQ(ends[1].error, 0);
  EXPECT_EQ(peer->connects, 1u);
}

TEST_F(RpcRdmaSend, BeginsWithOneCallThenFollowsTheGrant) {
  open();
  for (int i = 0; i < 6; ++i) call(1);
  transport->flush();
  EXPECT_EQ(peer->sent.size(), 1u) << "RFC 8166 section 3.3.3";
  EXPECT_EQ(transport->counters().credit_stalls, 5u);
  ASSERT_TRUE(answer(take(), 3));
  transport->progress();
  EXPECT_EQ(peer->sent.size(), 3u);
  ASSERT_TRUE(answer(take(), 2));
  transport->progress();
  EXPECT_EQ(peer->sent.size(), 2u) << "a smaller grant holds too";
  EXPECT_EQ(transport->counters().credit_stalls, 5u) << "a call stalls once";
  EXPECT_EQ(transport->counters().depth_max, 3u);
}

TEST_F(RpcRdmaSend, GrantOfZeroCountsAsOne) {
  open();
  for (int i = 0; i < 3; ++i) call(1);
  transport->flush();
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(peer->sent.size(), 1u);
    ASSERT_TRUE(answer(take(), 0));
    transport->progress();
    EXPECT_EQ(ends.size(), i);
  }
}

TEST_F(RpcRdmaSend, GrantAboveWhatWasPostedIsClamped) {
  config.slots = 64;
  options.credits = 4;
  open();
  EXPECT_GE(peer->receives_posted(), 4u) << "before the first Send";
  warm_up(0xffffffff);
  for (int i = 0; i < 20; ++i) call(1);
  transport->flush();
  EXPECT_EQ(peer->sent.size(), 4u);
  EXPECT_LE(peer->sent.size(), peer->receives_posted());
  EXPECT_EQ(take().header.credits, 4u) << "asked for";
}

TEST_F(RpcRdmaSend, GrantHoldsForOneConnectionOnly) {
  open();
  warm_up(8);
  for (int i = 0; i < 5; ++i) call(1);
  transport->flush();
  EXPECT_EQ(peer->sent.size(), 5u);
  peer->sent.clear();
  peer->disconnect({ECONNRESET, "gone"});
  ASSERT_TRUE(run_until([&] { return !peer->sent.empty(); }));
  EXPECT_EQ(peer->connects, 2u);
  transport->flush();
  EXPECT_EQ(peer->sent.size(), 1u) << "one credit again";
}

TEST_F(RpcRdmaSend, OneDoorbellForABatch) {
  open();
  warm_up();
  const uint64_t before = transport->counters().send_calls;
  for (int i = 0; i < 8; ++i) call(1);
  transport->flush();
  EXPECT_EQ(transport->counters().send_calls, before + 1);
}

// The fake checks that the queue is never overrun and that quiet Sends fit the copy.
TEST_F(RpcRdmaSend, CopiedSendsAreMostlyUnsignalled) {
  fabric_options.inline_max = 256;
  open();
  warm_up();
  uint32_t signalled = 0;
  for (int i = 0; i < 1000; ++i) {
    ends.clear();
    call(1);
    transport->flush();
    ASSERT_EQ(peer->sent.size(), 1u);
    if ((peer->sent.front().flags & kQuiet) == 0) ++signalled;
    ASSERT_TRUE(answer(take()));
    transport->progress();
    ASSERT_EQ(ends.size(), 1u);
  }
  EXPECT_GT(signalled, 1000u / 20);
  EXPECT_LT(signalled, 1000u / 10);
}

TEST_F(RpcRdmaSend, RefusedRegistrationIsAnErrorOfAddMemory) {
  open();
  fabric->refuse_registration = true;
  std::vector<std::byte> more(4096);
  auto added = transport->add_memory(more);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ENOMEM);
}

TEST_F(RpcRdmaSend, OptionsOutOfRangeAreRefused) {
  for (const uint32_t size : {0u, 1023u, 65537u}) {
    options.inline_size = size;
    auto opened =
        RpcRdmaTransport::open(config, options, std::make_unique<FakeFabric>(fabric_options));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, EINVAL);
  }
}

}  // namespace
}  // namespace nfsrdma::testing
