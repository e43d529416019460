// SPDX-License-Identifier: GPL-2.0-or-later
// Replies as a server and a network may send them: in fragments, in pieces, wrong.
#include <random>

#include "tcp_peer.h"

namespace nfsrdma::testing {
namespace {

using TcpReceive = TcpTransportTest;

TEST_F(TcpReceive, AReplyMayBeCutAtEveryByte) {
  open();
  const std::string data = pattern(37);
  const size_t whole = record(read_reply(0, data)).size();
  for (size_t cut = 1; cut < whole; cut++) {
    Wire buffer(data.size() + 8, std::byte{0xee});
    const uint32_t slot = start(Bytes(buffer).first(data.size()));
    transport_->flush();
    const Wire wire = record(read_reply(xid_[slot], data));
    send(part(wire, 0, cut));
    transport_->progress();
    transport_->progress();
    ASSERT_EQ(ended_.size(), cut - 1);
    send(part(wire, cut, whole));
    wait_ended(cut);
    expect_read(ended_.back(), slot, buffer, data);
  }
  EXPECT_EQ(transport_->counters().bad_replies, 0u);
}

TEST_F(TcpReceive, ARecordMayHaveFragmentsOfAnyLength) {
  open();
  const std::string data = pattern(21);
  const size_t length = read_reply(0, data).size();
  for (size_t cut = 0; cut <= length; cut++) {  // the first and the last fragment empty, too
    Wire buffer(data.size() + 8, std::byte{0xee});
    const uint32_t slot = start(Bytes(buffer).first(data.size()));
    transport_->flush();
    const Wire reply = read_reply(xid_[slot], data);
    send(fragment(part(reply, 0, cut), false) + fragment(part(reply, cut, length), true));
    wait_ended(cut + 1);
    expect_read(ended_.back(), slot, buffer, data);
  }
  expect_read_works();
  EXPECT_EQ(transport_->counters().reconnects, 0u);
}

TEST_F(TcpReceive, FragmentsOfOneByteComeOneByteAtATime) {
  open();
  const std::string data = pattern(5);
  Wire buffer(data.size() + 8, std::byte{0xee});
  const uint32_t slot = start(Bytes(buffer).first(data.size()));
  transport_->flush();
  const Wire reply = read_reply(xid_[slot], data);
  Wire wire;
  for (size_t i = 0; i < reply.size(); i++)
    wire = wire + fragment(part(reply, i, i + 1), i + 1 == reply.size());
  for (size_t i = 0; i < wire.size(); i++) {
    send(part(wire, i, i + 1));
    transport_->progress();
  }
  wait_ended(1);
  expect_read(ended_.back(), slot, buffer, data);
  expect_read_works();
}

TEST_F(TcpReceive, ManyRepliesOfAllSizesInAnyPieces) {
  open();
  std::mt19937 random(3);
  constexpr size_t kSizes[] = {1, 3, 512, 4096, 16 * 1024, 17000, 60000, 200'000, 700'001};
  for (int round = 0; round < 60; round++) {
    struct Read {
      uint32_t slot;
      Wire buffer;
      std::string data;
    };
    std::vector<Read> reads;
    for (int i = 0; i < 8; i++) {
      const std::string data = pattern(kSizes[random() % std::size(kSizes)], random());
      reads.push_back({0, Wire(data.size() + 8, std::byte{0xee}), data});
    }
    for (Read& read : reads) read.slot = start(Bytes(read.buffer).first(read.data.size()));
    transport_->flush();
    std::shuffle(reads.begin(), reads.end(), random);
    Wire wire;
    for (const Read& read : reads) {
      const Wire reply = read_reply(xid_[read.slot], read.data);
      if (random() % 3 != 0) {
        wire = wire + record(reply);
      } else {
        const size_t cut = random() % reply.size();
        wire = wire + fragment(part(reply, 0, cut), false) +
               fragment(part(reply, cut, reply.size()), true);
      }
    }
    ended_.clear();
    for (size_t at = 0; at < wire.size();) {
      const size_t most = random() % 4 == 0 ? 300'000 : 1 + random() % 20'000;
      const size_t until = std::min(wire.size(), at + most);
      send(part(wire, at, until));
      if (random() % 2 == 0) transport_->progress();
      at = until;
    }
    wait_ended(reads.size());
    for (size_t i = 0; i < reads.size(); i++)
      expect_read(ended_[i], reads[i].slot, reads[i].buffer, reads[i].data);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_EQ(transport_->counters().reconnects, 0u);
}

TEST_F(TcpReceive, LargeDataComeStraightIntoTheBufferInPieces) {
  open();
  const std::string data = pattern(1 << 20);
  Wire buffer(data.size() + 8, std::byte{0xee});
  const uint32_t slot = start(Bytes(buffer).first(data.size()));
  transport_->flush();
  // What stands behind the data is not of interest, but belongs to the record.
  const Wire wire = record(read_reply(xid_[slot], data) + Wire(12, std::byte{0xaa}));
  for (size_t at = 0; at < wire.size(); at += 30'011) {
    send(part(wire, at, std::min(wire.size(), at + 30'011)));
    transport_->progress();
    if (at > 60'000 && at < wire.size() - 60'000) {
      EXPECT_EQ(buffer[at - 50'000], std::byte(data[at - 50'000])) << at;
    }
  }
  wait_ended(1);
  expect_read(ended_[0], slot, buffer, data);
  expect_read_works();
}

TEST_F(TcpReceive, MoreDataThanAskedForFailTheCallOnly) {
  open();
  for (const size_t asked : {8ul, 4096ul, 100'000ul}) {
    for (const size_t more : {1ul, 4ul, 50'000ul}) {
      Wire buffer(asked + 8, std::byte{0xee});
      const size_t before = ended_.size();
      const uint32_t slot = start(Bytes(buffer).first(asked));
      transport_->flush();
      const Wire wire = record(read_reply(xid_[slot], pattern(asked + more)));
      send(part(wire, 0, std::min<size_t>(wire.size(), 700)));
      transport_->progress();
      if (wire.size() > 700) send(part(wire, 700, wire.size()));
      wait_ended(before + 1);
      EXPECT_EQ(ended_.back().error, EPROTO);
      EXPECT_NE(ended_.back().text.find(std::to_string(asked + more)), std::string::npos)
          << ended_.back().text;
      EXPECT_EQ(buffer, Wire(asked + 8, std::byte{0xee})) << "buffer touched";
      expect_read_works();
    }
  }
  EXPECT_EQ(transport_->counters().reconnects, 0u);
}

TEST_F(TcpReceive, ExactlyAsMuchAsAskedForIsTaken) {
  open();
  for (const size_t size : {1ul, 4096ul, 100'000ul}) expect_read_works(pattern(size));
}

TEST_F(TcpReceive, DataThatEndBeforeTheirLengthFailTheCallOnly) {
  open();
  for (const size_t size : {64ul, 100'000ul}) {
    Wire buffer(size + 8, std::byte{0xee});
    const size_t before = ended_.size();
    const uint32_t slot = start(Bytes(buffer).first(size));
    transport_->flush();
    const Wire reply = read_reply(xid_[slot], pattern(size));
    const Wire wire = record(part(reply, 0, reply.size() - 4));
    send(part(wire, 0, 60));
    transport_->progress();
    send(part(wire, 60, wire.size()));
    wait_ended(before + 1);
    EXPECT_EQ(ended_.back().error, EPROTO);
    EXPECT_EQ(Wire(buffer.end() - 8, buffer.end()), Wire(8, std::byte{0xee}));
    expect_read_works();
  }
  EXPECT_EQ(transport_->counters().reconnects, 0u);
}

TEST_F(TcpReceive, ARefusalHasNoDataAndIsAllHead) {
  open();
  Wire buffer(64 + 8, std::byte{0xee});
  const uint32_t slot = start(Bytes(buffer).first(64));
  transport_->flush();
  XdrText error;
  error.u32(xid_[slot]).u32(1).u32(0).u32(0).u32(0).u32(0).u32(5).u32(0);
  send(record(error.bytes()));
  wait_ended(1);
  EXPECT_EQ(ended_[0].error, 0);
  EXPECT_EQ(ended_[0].bulk_length, 0u);
  EXPECT_EQ(ended_[0].head, error.bytes());
  EXPECT_EQ(buffer, Wire(72, std::byte{0xee}));
}

TEST_F(TcpReceive, UnknownAndRepeatedRepliesAreDroppedAndCounted) {
  open();
  const std::string data = pattern(100'000);
  Wire buffer(data.size() + 8, std::byte{0xee});
  const uint32_t slot = start(Bytes(buffer).first(data.size()));
  transport_->flush();
  const uint32_t xid = xid_[slot];
  send(record(read_reply(xid + 1, "forged")));
  send(record(read_reply(xid ^ 0x40000000, data)));  // a large one is skipped as it comes
  send(record(read_reply(xid, data)));
  wait_ended(1);
  expect_read(ended_[0], slot, buffer, data);
  std::fill(buffer.begin(), buffer.end(), std::byte{0x11});
  send(record(read_reply(xid, data)));
  expect_read_works();
  EXPECT_EQ(transport_->counters().bad_replies, 3u);
  EXPECT_EQ(buffer, Wire(buffer.size(), std::byte{0x11})) << "a repeated reply was taken";
  EXPECT_EQ(transport_->counters().reconnects, 0u);
}

TEST_F(TcpReceive, ACallThatTimesOutWhileItsDataComeLeavesTheBufferAlone) {
  TransportConfig config = this->config();
  config.timeo_ms = 500;
  config.retrans = 0;
  open(config);
  const std::string data = pattern(200'000);
  Wire buffer(data.size() + 8, std::byte{0xee});
  const uint32_t slot = start(Bytes(buffer).first(data.size()));
  transport_->flush();
  const Wire wire = record(read_reply(xid_[slot], data));
  send(part(wire, 0, 50'000));
  wait_ended(1);
  EXPECT_EQ(ended_[0].error, ETIMEDOUT);
  EXPECT_EQ(buffer[20'000], std::byte(data[20'000])) << "half of it had come";
  std::fill(buffer.begin(), buffer.end(), std::byte{0x22});
  send(part(wire, 50'000, wire.size()));
  run_for(5);
  EXPECT_EQ(buffer, Wire(buffer.size(), std::byte{0x22})) << "buffer touched after the call ended";
  EXPECT_EQ(transport_->counters().reconnects, 0u);
  peer_.receive_some();
  Wire ignored;
  while (peer_.take_record(&ignored)) {
  }
  expect_read_works();
}

// Each costs the connection; the call is sent again on the next, and ends well.
class TcpGarbage : public TcpTransportTest {
 protected:
  void expect_reconnect_after(const Wire& garbage) {
    open();
    Wire buffer(12, std::byte{0xee});
    const uint32_t slot = start(Bytes(buffer).first(4));
    transport_->flush();
    const Wire first = next_record();
    send(garbage);
    accept_again();
    EXPECT_EQ(next_record(), first) << "the same record, with the same xid";
    send(record(read_reply(xid_[slot], "data")));
    wait_ended(1);
    expect_read(ended_[0], slot, buffer, "data");
    EXPECT_EQ(ended_[0].retransmissions, 1u);
    EXPECT_EQ(transport_->counters().reconnects, 1u);
  }
};

TEST_F(TcpGarbage, RecordTooLong) {
  expect_reconnect_after(XdrText().u32(0xffffffff).bytes());
}
TEST_F(TcpGarbage, FragmentTooLong) {
  expect_reconnect_after(XdrText().u32(0x7fffffff).bytes());
}
TEST_F(TcpGarbage, Text) {
  Wire http;
  for (const char c : std::string_view("HTTP/1.1 400 Bad Request\r\n\r\n"))
    http.push_back(std::byte(c));
  expect_reconnect_after(http);
}
TEST_F(TcpGarbage, RecordTooShort) {
  expect_reconnect_after(record(Wire(3, std::byte{1})));
}
TEST_F(TcpGarbage, EmptyRecord) {
  expect_reconnect_after(record({}));
}
TEST_F(TcpGarbage, EmptyFragmentsWithoutEnd) {
  Wire empty;
  for (int i = 0; i < 100; i++) empty = empty + fragment({}, false);
  expect_reconnect_after(empty);
}
TEST_F(TcpGarbage, FragmentsThatAddUpToTooMuch) {
  // Each within the cap, not their sum.
  const Wire half(5u << 20, std::byte{1});
  expect_reconnect_after(fragment(half, false) + XdrText().u32(5u << 20).bytes());
}

}  // namespace
}  // namespace nfsrdma::testing
