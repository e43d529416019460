// SPDX-License-Identifier: GPL-2.0-or-later
// Replies, good, odd and hostile; when a call's memory is free; keys for each call.
#include "rdma_rig.h"

namespace nfsrdma::testing {
namespace {

class RpcRdmaReceive : public RdmaRig {
 protected:
  Bytes io(size_t offset, size_t length) { return Bytes(memory).subspan(offset, length); }
  std::vector<std::byte> at(size_t offset, size_t length) {
    const Bytes range = io(offset, length);
    return {range.begin(), range.end()};
  }
  // A call with a Write chunk of 8192 bytes, out.
  Seen read_out() {
    call(5, 32, {}, io(4096, 8192));
    transport->flush();
    return take();
  }
  // The connection ended, and the call that was answered ended with EPROTO.
  void expect_broken(const std::string& words) {
    ASSERT_TRUE(run_until_ended(1));
    EXPECT_EQ(ends[0].error, EPROTO);
    EXPECT_NE(ends[0].text.find(words), std::string::npos) << ends[0].text;
    EXPECT_EQ(peer->closes, 1u);
  }
};

TEST_F(RpcRdmaReceive, InlineReply) {
  open();
  const uint32_t slot = call(1);
  transport->flush();
  const Seen seen = take();
  ASSERT_TRUE(answer(seen));
  EXPECT_EQ(transport->progress(), 1u);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].slot, slot);
  EXPECT_EQ(ends[0].head, rpc_reply(seen.header.xid));
  EXPECT_EQ(transport->outstanding(), 0u);
}

TEST_F(RpcRdmaReceive, DataInTheWriteChunk) {
  open();
  const auto data = pattern(8192, 9);
  ASSERT_TRUE(answer_read(read_out(), data, 8192, 8192));
  transport->progress();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].bulk_length, 8192u);
  EXPECT_EQ(ends[0].head.size(), kReplyHead);
  EXPECT_EQ(at(4096, 8192), data);
}

// The length of the returned list rules, not the one that was offered, nor the reply's.
TEST_F(RpcRdmaReceive, ShorterReturnedChunkRules) {
  open();
  ASSERT_TRUE(answer_read(read_out(), pattern(100, 9), 8192, 100));
  transport->progress();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].bulk_length, 100u);
}

TEST_F(RpcRdmaReceive, PadInTheChunkIsNotData) {
  open();
  ASSERT_TRUE(answer_read(read_out(), pattern(104, 9), 101, 104));
  transport->progress();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].bulk_length, 101u);
}

TEST_F(RpcRdmaReceive, UnusedChunkAndDataInline) {
  open();
  const Seen seen = read_out();
  const auto data = pattern(77, 2);
  const RdmaSegment unused{1, 0, 2};
  const WriteChunk chunk(&unused, 1);
  for (const bool returned : {true, false}) {
    ends.clear();
    const Seen now = returned ? seen : read_out();
    RdmaHeaderOut header{.xid = now.header.xid, .credits = 8};
    if (returned) header.writes = {&chunk, 1};
    auto rpc = rpc_reply(now.header.xid, {0, 77});
    rpc.insert(rpc.end(), data.begin(), data.end());
    rpc.resize(rpc.size() + 3);
    ASSERT_TRUE(peer->peer_send(message(header, rpc)));
    transport->progress();
    ASSERT_EQ(ends.size(), 1u);
    EXPECT_EQ(ends[0].bulk_length, 77u);
    EXPECT_EQ(at(4096, 77), data);
  }
}

TEST_F(RpcRdmaReceive, SmallReadInline) {
  open();
  call(5, 32, {}, io(0, 512));
  transport->flush();
  const Seen seen = take();
  const auto data = pattern(512, 2);
  auto rpc = rpc_reply(seen.header.xid, {0, 512});
  rpc.insert(rpc.end(), data.begin(), data.end());
  ASSERT_TRUE(peer->peer_send(message({.xid = seen.header.xid, .credits = 1}, rpc)));
  transport->progress();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].bulk_length, 512u);
  EXPECT_EQ(at(0, 512), data);
}

TEST_F(RpcRdmaReceive, ErrorReplyHasNoData) {
  open();
  const Seen seen = read_out();
  ASSERT_TRUE(peer->peer_send(
      message({.xid = seen.header.xid, .credits = 1}, rpc_reply(seen.header.xid, {70, 0, 0}))));
  transport->progress();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].bulk_length, 0u);
  EXPECT_EQ(ends[0].head.size(), 16u);
}

TEST_F(RpcRdmaReceive, InlineDataAboveWhatWasAskedTouchNothing) {
  open();
  warm_up();
  call(5, 32, {}, io(0, 512));
  transport->flush();
  const Seen seen = take();
  auto rpc = rpc_reply(seen.header.xid, {0, 513});
  rpc.resize(rpc.size() + 516, std::byte{0xee});
  ASSERT_TRUE(peer->peer_send(message({.xid = seen.header.xid, .credits = 1}, rpc)));
  transport->progress();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].error, EPROTO);
  EXPECT_EQ(at(0, 516), std::vector<std::byte>(516));
}

TEST_F(RpcRdmaReceive, DataThatEndBeforeTheirLength) {
  open();
  call(5, 32, {}, io(0, 512));
  transport->flush();
  const Seen seen = take();
  ASSERT_TRUE(peer->peer_send(
      message({.xid = seen.header.xid, .credits = 1}, rpc_reply(seen.header.xid, {0, 512, 1}))));
  transport->progress();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].error, EPROTO);
  EXPECT_EQ(at(0, 512), std::vector<std::byte>(512));
}

TEST_F(RpcRdmaReceive, ReplyChunkIsDecodedByItsOwnLength) {
  open();
  call(5, 32, {}, {}, 60000);
  transport->flush();
  const Seen seen = take();
  const RdmaSegment offered = seen.header.reply[0];
  auto rpc = rpc_reply(seen.header.xid, {0});
  const auto body = pattern(20000, 8);
  rpc.insert(rpc.end(), body.begin(), body.end());
  ASSERT_TRUE(peer->peer_write(offered.handle, offered.offset, rpc));
  const RdmaSegment used{offered.handle, static_cast<uint32_t>(rpc.size()), offered.offset};
  RdmaHeaderOut header{.xid = seen.header.xid, .credits = 4, .proc = RdmaProc::kNomsg};
  header.has_reply = true;
  header.reply = {&used, 1};
  ASSERT_TRUE(peer->peer_send(message(header)));
  transport->progress();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].error, 0);
  EXPECT_EQ(ends[0].head, rpc);
}

TEST_F(RpcRdmaReceive, UnknownAndRepeatedXidsAreDroppedAndCounted) {
  open();
  const uint32_t slot = call(1);
  transport->flush();
  const Seen seen = take();
  ASSERT_TRUE(answer_xid(seen.header.xid + 1));
  transport->progress();
  EXPECT_TRUE(ends.empty());
  ASSERT_TRUE(answer(seen));
  ASSERT_TRUE(answer(seen));
  transport->progress();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].slot, slot);
  EXPECT_EQ(transport->counters().bad_replies, 2u);
  EXPECT_EQ(peer->connects, 1u);
  EXPECT_EQ(peer->closes, 0u);
  EXPECT_EQ(peer->receives_posted(), peer->config().receive_count) << "buffers are given back";
}

TEST_F(RpcRdmaReceive, RdmaErrorsEndThatXidInWords) {
  open();
  warm_up();
  call(1);
  call(2);
  call(3);
  transport->flush();
  std::array<std::byte, 64> room;
  for (const RdmaErrcode code : {RdmaErrcode::kVers, RdmaErrcode::kChunk}) {
    XdrWriter writer(room);
    encode_rdma_error(writer, take().header.xid, 8, code, 2, 3);
    ASSERT_TRUE(peer->peer_send(writer.written()));
  }
  transport->progress();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].error, EPROTONOSUPPORT);
  EXPECT_NE(ends[0].text.find("ERR_VERS: it speaks 2 to 3"), std::string::npos) << ends[0].text;
  EXPECT_EQ(ends[1].error, EREMOTEIO);
  EXPECT_NE(ends[1].text.find("ERR_CHUNK"), std::string::npos) << ends[1].text;
  EXPECT_EQ(peer->closes, 0u);
  ASSERT_TRUE(answer(take()));
  transport->progress();
  EXPECT_EQ(ends[2].error, 0);
}

TEST_F(RpcRdmaReceive, LongerReturnedWriteChunkBreaksTheConnection) {
  open();
  ASSERT_TRUE(answer_read(read_out(), {}, 8192, 8193));
  expect_broken("longer than was offered");
}

TEST_F(RpcRdmaReceive, WriteListThatWasNotOffered) {
  open();
  call(1);
  transport->flush();
  const Seen seen = take();
  const RdmaSegment segment{1, 0, 2};
  const WriteChunk chunk(&segment, 1);
  RdmaHeaderOut header{.xid = seen.header.xid, .credits = 8};
  header.writes = {&chunk, 1};
  ASSERT_TRUE(peer->peer_send(message(header, rpc_reply(seen.header.xid))));
  expect_broken("not offered");
}

TEST_F(RpcRdmaReceive, WriteListOfAnotherShape) {
  open();
  const Seen seen = read_out();
  const std::array<RdmaSegment, 2> segments{{{1, 4, 2}, {1, 4, 6}}};
  const WriteChunk chunk(segments);
  RdmaHeaderOut header{.xid = seen.header.xid, .credits = 8};
  header.writes = {&chunk, 1};
  ASSERT_TRUE(peer->peer_send(message(header, rpc_reply(seen.header.xid, {0, 8}))));
  expect_broken("another shape");
}

TEST_F(RpcRdmaReceive, NomsgWithoutReplyChunk) {
  open();
  call(1);
  transport->flush();
  RdmaHeaderOut header{.xid = take().header.xid, .credits = 8, .proc = RdmaProc::kNomsg};
  ASSERT_TRUE(peer->peer_send(message(header)));
  expect_broken("RDMA_NOMSG without a Reply chunk");
}

TEST_F(RpcRdmaReceive, LongerReplyChunk) {
  open();
  call(5, 32, {}, {}, 60000);
  transport->flush();
  const Seen seen = take();
  const RdmaSegment used{seen.header.reply[0].handle, 60001, seen.header.reply[0].offset};
  RdmaHeaderOut header{.xid = seen.header.xid, .credits = 4, .proc = RdmaProc::kNomsg};
  header.has_reply = true;
  header.reply = {&used, 1};
  ASSERT_TRUE(peer->peer_send(message(header)));
  expect_broken("Reply chunk longer");
}

TEST_F(RpcRdmaReceive, ReadListInAReply) {
  open();
  call(1);
  transport->flush();
  const Seen seen = take();
  const ReadSegment read{0, {1, 2, 3}};
  RdmaHeaderOut header{.xid = seen.header.xid, .credits = 8};
  header.reads = {&read, 1};
  ASSERT_TRUE(peer->peer_send(message(header, rpc_reply(seen.header.xid))));
  expect_broken("Read list");
}

TEST_F(RpcRdmaReceive, RpcXidOtherThanTheHeaders) {
  open();
  call(1);
  transport->flush();
  const Seen seen = take();
  ASSERT_TRUE(peer->peer_send(
      message({.xid = seen.header.xid, .credits = 8}, rpc_reply(seen.header.xid + 1))));
  expect_broken("RPC xid");
}

// Garbage in each word of the header, one after the other.
TEST_F(RpcRdmaReceive, GarbageInEachHeaderField) {
  for (uint32_t word = 1; word < 7; ++word) {
    SCOPED_TRACE(word);
    ends.clear();
    transport.reset();
    open();
    call(1);
    transport->flush();
    const Seen seen = take();
    auto bytes = message({.xid = seen.header.xid, .credits = 8}, rpc_reply(seen.header.xid));
    store_be32(bytes.data() + 4 * word, 0xdeadbeef);
    ASSERT_TRUE(peer->peer_send(bytes));
    ASSERT_TRUE(run_until_ended(1));
    if (word == 2) {  // credits: clamped
      EXPECT_EQ(ends[0].error, 0);
    } else {
      EXPECT_EQ(ends[0].error, EPROTO) << ends[0].text;
      EXPECT_EQ(peer->closes, 1u);
    }
  }
}

TEST_F(RpcRdmaReceive, MessageTooShortForAHeaderEndsTheConnectionAndCallsGoAgain) {
  open();
  call(1);
  transport->flush();
  const uint32_t xid = take().header.xid;
  ASSERT_TRUE(peer->peer_send(std::vector<std::byte>(15)));
  ASSERT_TRUE(run_until([&] { return !peer->sent.empty(); }));
  EXPECT_EQ(peer->connects, 2u);
  const Seen again = take();
  EXPECT_EQ(again.header.xid, xid);
  ASSERT_TRUE(answer(again));
  ASSERT_TRUE(run_until_ended(1));
  EXPECT_EQ(ends[0].error, 0);
  EXPECT_EQ(ends[0].retransmissions, 1u);
}

TEST_F(RpcRdmaReceive, CallEndsOnlyAfterItsSendCompleted) {
  open();
  peer->send_done_now = false;
  call(1);
  transport->flush();
  ASSERT_TRUE(answer(take()));
  transport->progress();
  EXPECT_TRUE(ends.empty()) << "the Send's memory is still the fabric's";
  peer->complete_sends();
  transport->progress();
  EXPECT_EQ(ends.size(), 1u);
}

TEST_F(RpcRdmaReceive, ReplyBeforeTheCompletionIsKeptWhenTheConnectionEnds) {
  open();
  peer->send_done_now = false;
  const uint32_t slot = call(1);
  transport->flush();
  const Seen seen = take();
  ASSERT_TRUE(answer(seen));
  transport->progress();
  peer->disconnect({ECONNRESET, "gone"});
  transport->progress();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].slot, slot);
  EXPECT_EQ(ends[0].error, 0);
  EXPECT_EQ(ends[0].head, rpc_reply(seen.header.xid));
  EXPECT_EQ(peer->closes, 1u) << "and only after the connection was closed";
  EXPECT_EQ(transport->outstanding(), 0u);
}

class RpcRdmaKeys : public RpcRdmaReceive {
 protected:
  RpcRdmaKeys() {
    options.key_per_call = true;
    fabric_options.remote_invalidation = true;
  }
};

TEST_F(RpcRdmaKeys, EachChunkHasAKeyThatIsDeadWhenTheCallEnds) {
  open();
  EXPECT_TRUE(decode_cm_private_data(peer->request_private_data).remote_invalidation);
  const Seen seen = read_out();
  ASSERT_EQ(peer->bound.size(), 1u);
  const RdmaSegment offered = seen.header.writes.front()[0];
  EXPECT_EQ(offered.handle, peer->bound[0].key);
  EXPECT_FALSE(peer->peer_write(offered.handle, offered.offset - 1, pattern(1, 1)));
  EXPECT_FALSE(peer->peer_write(offered.handle, offered.offset + 8192, pattern(1, 1)));
  ASSERT_TRUE(answer_read(seen, pattern(8192, 1), 8192, 8192));
  transport->progress();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_TRUE(peer->bound.empty());
  EXPECT_FALSE(peer->peer_write(offered.handle, offered.offset, pattern(1, 1))) << "a late write";
}

TEST_F(RpcRdmaKeys, SendWithInvalidateNeedsNoUnbind) {
  open();
  const Seen seen = read_out();
  const RemoteKey key = peer->bound[0].key;
  ASSERT_TRUE(peer->peer_send(
      message({.xid = seen.header.xid, .credits = 8}, rpc_reply(seen.header.xid, {70})), key));
  transport->progress();  // the fake fails the test if a dead key is unbound
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].error, 0);
}

TEST_F(RpcRdmaKeys, InvalidationOfAnotherCallsKeyBreaksTheConnection) {
  open();
  warm_up();
  const Seen first = read_out();
  const Seen second = read_out();
  ASSERT_TRUE(peer->peer_send(
      message({.xid = second.header.xid, .credits = 8}, rpc_reply(second.header.xid, {70})),
      first.header.writes.front()[0].handle));
  expect_broken("invalidated a key");
}

TEST_F(RpcRdmaKeys, SlowUnbindHoldsTheCallBack) {
  fabric_options.slow_unbind = true;
  open();
  const Seen seen = read_out();
  ASSERT_TRUE(answer_read(seen, pattern(8, 1), 8, 8));
  transport->progress();
  EXPECT_TRUE(ends.empty()) << "the peer can still use the key";
  peer->complete_unbinds();
  transport->progress();
  EXPECT_EQ(ends.size(), 1u);
}

}  // namespace
}  // namespace nfsrdma::testing
