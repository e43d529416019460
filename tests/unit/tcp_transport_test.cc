// SPDX-License-Identifier: GPL-2.0-or-later
// Sending, reconnects and timers of the TCP transport.
#include <random>

#include "tcp_peer.h"

namespace nfsrdma::testing {
namespace {

constexpr uint64_t kMs = 1'000'000;

using TcpTransportTests = TcpTransportTest;

// What somebody else gets who asks for the port.
int bind_elsewhere(uint16_t port) {
  const Socket other(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  return bind(other.fd(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 ? 0 : errno;
}

TEST_F(TcpTransportTests, SendsWhatGatheredInOneCall) {
  open();
  const std::string data = pattern(10);
  const ConstBytes out = std::as_bytes(std::span(data));
  const uint32_t a = start(), b = start({}, out), c = start();
  EXPECT_EQ(transport_->unsent(), 3u);
  EXPECT_EQ(transport_->counters().send_calls, 0u);
  transport_->flush();
  EXPECT_EQ(transport_->counters().send_calls, 1u);
  EXPECT_EQ(transport_->unsent(), 0u);
  EXPECT_EQ(transport_->outstanding(), 3u);
  EXPECT_EQ(transport_->counters().depth_max, 3u);
  EXPECT_EQ(sent_, (std::vector<uint32_t>{a, b, c}));
  const Wire expected =
      record(message(xid_[a])) + record(message(xid_[b], out)) + record(message(xid_[c]));
  ASSERT_TRUE(until([&] {
    peer_.receive_some();
    return peer_.received().size() >= expected.size();
  }));
  EXPECT_EQ(to_hex(peer_.received()), to_hex(expected));
}

TEST_F(TcpTransportTests, ASplitMarkerPutsTheSameBytesOnTheWire) {
  TransportConfig config = this->config();
  config.split_marker = true;
  open(config);
  const std::string data = pattern(3);
  const ConstBytes out = std::as_bytes(std::span(data));
  const uint32_t a = start(), b = start({}, out);
  transport_->flush();
  EXPECT_EQ(transport_->counters().send_calls, 4u);
  const Wire expected = record(message(xid_[a])) + record(message(xid_[b], out));
  ASSERT_TRUE(until([&] {
    peer_.receive_some();
    return peer_.received().size() >= expected.size();
  }));
  EXPECT_EQ(to_hex(peer_.received()), to_hex(expected));
  EXPECT_EQ(sent_, (std::vector<uint32_t>{a, b}));
}

TEST_F(TcpTransportTests, EveryPadAndEveryStopOfAPeerThatReadsSlowly) {
  for (const bool split : {false, true}) {
    TransportConfig config = this->config();
    config.split_marker = split;
    open(config);
    std::vector<std::string> data;
    std::vector<uint32_t> slots;
    for (uint32_t i = 0; i < 12; i++) data.push_back(pattern(400'000 + i, i));
    for (const std::string& each : data) slots.push_back(start({}, std::as_bytes(std::span(each))));
    transport_->flush();
    EXPECT_GT(transport_->unsent(), 0u) << "the peer does not read";
    for (size_t i = 0; i < slots.size(); i++)
      ASSERT_TRUE(next_record() == message(xid_[slots[i]], std::as_bytes(std::span(data[i])))) << i;
    for (const uint32_t slot : slots) send(record(XdrText().u32(xid_[slot]).bytes()));
    wait_ended(slots.size());
    ended_.clear();
  }
}

TEST_F(TcpTransportTests, ReconnectsFromTheSamePortAndSendsAgainInOrder) {
  open();
  // Slots in an order that is not that of submission.
  std::vector<uint32_t> warm;
  for (int i = 0; i < 5; i++) warm.push_back(start());
  transport_->flush();
  for (const size_t i : {3u, 0u, 4u, 1u, 2u}) {
    send(record(XdrText().u32(xid_[warm[i]]).bytes()));
    wait_ended(ended_.size() + 1);
  }
  for (int i = 0; i < 5; i++) next_record();
  std::vector<uint32_t> slots;
  std::vector<Wire> messages;
  for (int i = 0; i < 5; i++) {
    slots.push_back(start());
    messages.push_back(message(xid_[slots.back()]));
  }
  ASSERT_FALSE(std::is_sorted(slots.begin(), slots.end()));
  ASSERT_FALSE(std::is_sorted(slots.rbegin(), slots.rend()));
  transport_->flush();
  for (const Wire& each : messages) EXPECT_EQ(next_record(), each);
  send(record(XdrText().u32(xid_[slots[1]]).bytes()));
  wait_ended(6);
  sent_.clear();
  for (int round = 1; round <= 3; round++) {
    peer_.close_connection();
    accept_again();
    EXPECT_EQ(peer_.client_port(), port_) << "the server's reply cache looks at the port";
    for (const size_t i : {0u, 2u, 3u, 4u}) EXPECT_EQ(next_record(), messages[i]) << i;
    // A call made meanwhile goes behind.
    if (round != 1) continue;
    slots.push_back(start());
    messages.push_back(message(xid_[slots.back()]));
    transport_->flush();
    EXPECT_EQ(next_record(), messages.back());
    send(record(XdrText().u32(xid_[slots.back()]).bytes()));
    wait_ended(7);
    EXPECT_EQ(ended_.back().retransmissions, 0u);
    EXPECT_EQ(sent_, (std::vector<uint32_t>{slots.back()})) << "on_sent comes once a call";
  }
  for (const size_t i : {0u, 2u, 3u, 4u}) send(record(XdrText().u32(xid_[slots[i]]).bytes()));
  wait_ended(11);
  for (size_t i = 7; i < 11; i++) {
    EXPECT_EQ(ended_[i].error, 0);
    EXPECT_EQ(ended_[i].retransmissions, 3u);
  }
  EXPECT_EQ(transport_->counters().reconnects, 3u);
  EXPECT_EQ(transport_->counters().connects, 1u);
  EXPECT_EQ(transport_->outstanding(), 0u);
}

TEST_F(TcpTransportTests, ARecordHalfSentAtDisconnectIsSentWholeOnTheNextConnection) {
  open();
  const std::string data = pattern(8 << 20);
  const ConstBytes out = std::as_bytes(std::span(data));
  const uint32_t big = start({}, out), small = start();
  transport_->flush();
  EXPECT_EQ(transport_->unsent(), 2u) << "the peer does not read";
  peer_.close_connection();
  accept_again();
  EXPECT_TRUE(next_record() == message(xid_[big], out));
  EXPECT_EQ(next_record(), message(xid_[small]));
  send(record(XdrText().u32(xid_[big]).bytes()) + record(XdrText().u32(xid_[small]).bytes()));
  wait_ended(2);
  EXPECT_EQ(sent_, (std::vector<uint32_t>{big, small}));
}

TEST_F(TcpTransportTests, TheLocalPortIsKeptThroughALongOutage) {
  open();
  const uint32_t slot = start();
  transport_->flush();
  next_record();
  peer_.stop_listening();
  peer_.close_connection();
  run_for(2200);  // more tries than those after which a taken port would be given up
  EXPECT_EQ(bind_elsewhere(port_), EADDRINUSE) << "somebody else could have it";
  peer_.listen_again();
  accept_again();
  EXPECT_EQ(peer_.client_port(), port_);
  EXPECT_EQ(next_record(), message(xid_[slot]));
}

TEST_F(TcpTransportTests, AServerThatClosesAtOnceIsAskedEverLessOften) {
  open();
  start();
  transport_->flush();
  peer_.close_connection();
  uint32_t connections = 0;
  const uint64_t end = now_ns() + 1000 * kMs;
  while (now_ns() < end) {
    transport_->progress();
    if (peer_.accept_now()) {
      ++connections;
      peer_.close_connection();
    }
    usleep(500);
  }
  EXPECT_GE(connections, 3u);
  EXPECT_LE(connections, 6u) << "at once, then 50, 100, 200, 400 ms later";
}

TEST_F(TcpTransportTests, ASoftTimeoutSaysWhoDidNotAnswerAndHowLong) {
  TransportConfig config = this->config();
  config.timeo_ms = 100;
  config.retrans = 1;
  open(config);
  start();
  transport_->flush();
  const uint64_t begin = now_ns();
  wait_ended(1);
  const uint64_t waited = now_ns() - begin;
  EXPECT_GE(waited, 200 * kMs);
  EXPECT_LT(waited, 2000 * kMs);
  EXPECT_EQ(ended_[0].error, ETIMEDOUT);
  const std::string& text = ended_[0].text;
  EXPECT_NE(text.find("127.0.0.1:" + std::to_string(peer_.port())), std::string::npos) << text;
  EXPECT_NE(text.find("within 0."), std::string::npos) << text;
  EXPECT_NE(text.find("timeo=1, retrans=1"), std::string::npos) << text;
  EXPECT_EQ(transport_->outstanding(), 0u);
  EXPECT_EQ(transport_->next_timer_ns(), kNever);
}

TEST_F(TcpTransportTests, AHardCallIsTriedForEver) {
  TransportConfig config = this->config();
  config.timeo_ms = 50;
  config.retrans = 0;
  config.soft = false;
  open(config);
  const uint32_t slot = start();
  transport_->flush();
  const Wire first = next_record();
  for (int round = 0; round < 3; round++) {
    accept_again();  // a server that is silent altogether is left
    EXPECT_EQ(peer_.client_port(), port_);
    EXPECT_EQ(next_record(), first);
  }
  send(record(XdrText().u32(xid_[slot]).bytes()));
  wait_ended(1);
  EXPECT_EQ(ended_[0].error, 0);
  EXPECT_EQ(ended_[0].retransmissions, 3u);
}

TEST_F(TcpTransportTests, ADroppedCallIsSentAgainOnTheConnectionThatAnswersOthers) {
  TransportConfig config = this->config();
  config.timeo_ms = 150;
  open(config);
  const uint32_t dropped = start();
  const Wire first = message(xid_[dropped]);
  transport_->flush();
  EXPECT_EQ(next_record(), first);
  bool again = false;
  for (int i = 0; i < 200 && !again; i++) {
    const uint32_t other = start();
    transport_->flush();
    const Wire got = next_record();
    if (got == first) again = true;
    if (again) next_record();
    send(record(XdrText().u32(xid_[other]).bytes()));
    run_for(5);
  }
  ASSERT_TRUE(again);
  EXPECT_EQ(transport_->counters().reconnects, 0u);
  const size_t before = ended_.size();
  send(record(XdrText().u32(load_be32(first.data())).bytes()));
  wait_ended(before + 1);
  EXPECT_EQ(ended_.back().slot, dropped);
  EXPECT_EQ(ended_.back().retransmissions, 1u);
  send(record(XdrText().u32(load_be32(first.data())).bytes()));
  ASSERT_TRUE(until([&] { return transport_->counters().bad_replies == 1; }));
}

// A call is answered, or refused, while its second copy is half sent: the stream stands within a
// record that will never be whole, so the connection is given up and the others are sent again.
class TcpHalfResent : public TcpTransportTest {
 protected:
  void expect_others_whole(const Wire& results, int error) {
    TransportConfig config = this->config();
    config.timeo_ms = 2000;
    config.soft = false;
    open(config);
    const std::string data = pattern(8 << 20);
    const ConstBytes out = std::as_bytes(std::span(data));
    Wire in(12, std::byte{0xee});
    const uint32_t big = start(Bytes(in).first(4), out);
    transport_->flush();
    ASSERT_TRUE(next_record() == message(xid_[big], out));
    // Others are answered, until the first is sent again and sticks half-way.
    const uint64_t give_up = now_ns() + 20'000 * kMs;
    while (transport_->unsent() == 0 && now_ns() < give_up) {
      const uint32_t other = start();
      transport_->flush();
      if (transport_->unsent() != 0) break;
      next_record();
      send(record(XdrText().u32(xid_[other]).bytes()));
      run_for(2);
    }
    ASSERT_GT(transport_->unsent(), 0u);
    const uint32_t behind = start();
    const size_t before = ended_.size();
    const Wire reply = XdrText().u32(xid_[big]).bytes() + results;
    peer_.send_some(record(reply));
    then_ = [&](uint32_t slot) {
      if (slot == big) transport_->flush();
    };
    wait_ended(before + 1);
    EXPECT_EQ(ended_[before].error, error) << ended_[before].text;
    accept_again();
    Wire got = next_record();
    while (got != message(xid_[behind]) && got.size() == 32) got = next_record();
    EXPECT_EQ(to_hex(part(got, 0, std::min<size_t>(got.size(), 64))),
              to_hex(message(xid_[behind])));
  }
};

TEST_F(TcpHalfResent, Answered) {
  expect_others_whole({}, 0);
}
TEST_F(TcpHalfResent, Refused) {
  expect_others_whole(part(read_reply(0, "too many"), 4, read_reply(0, "too many").size()), EPROTO);
}

TEST_F(TcpTransportTests, AReconnectIsNotTakenForASilence) {
  TransportConfig config = this->config();
  config.timeo_ms = 40;
  config.soft = false;
  open(config);
  const uint32_t slot = start();
  transport_->flush();
  next_record();
  peer_.stop_listening();
  peer_.close_connection();
  run_for(400);
  peer_.listen_again();
  // Each progress() finds its timers due.
  ASSERT_TRUE(until([&] { return peer_.accept_now(); }, 10'000));
  EXPECT_TRUE(until(
      [&] {
        peer_.receive_some();
        return peer_.received().size() >= 36;
      },
      6'000));
  EXPECT_EQ(part(peer_.received(), 4, 36), message(xid_[slot]));
  EXPECT_EQ(transport_->counters().reconnects, 1u);
}

TEST_F(TcpTransportTests, AbandonEndsEveryCallAndTheConnection) {
  open();
  const std::string data = pattern(100'000);
  Wire buffer(data.size() + 8, std::byte{0xee});
  const uint32_t read = start(Bytes(buffer).first(data.size()));
  const uint32_t xid = xid_[read];
  start();
  transport_->flush();
  start();  // not sent
  send(part(record(read_reply(xid, data)), 0, 60'000));
  run_for(2);
  transport_->abandon(Error{EINTR, "enough"});
  ASSERT_EQ(ended_.size(), 3u);
  for (const Ended& each : ended_) {
    EXPECT_EQ(each.error, EINTR);
    EXPECT_EQ(each.text, "enough");
  }
  EXPECT_EQ(transport_->outstanding(), 0u);
  std::fill(buffer.begin(), buffer.end(), std::byte{0x33});
  run_for(5);
  EXPECT_EQ(buffer, Wire(buffer.size(), std::byte{0x33}));
  // A new call finds a new connection.
  const uint32_t slot = start();
  transport_->flush();
  accept_again();
  EXPECT_EQ(next_record(), message(xid_[slot]));
}

TEST_F(TcpTransportTests, ACallMayBeMadeFromTheReplyOfAnother) {
  open();
  int left = 20;
  then_ = [&](uint32_t) {
    if (left-- > 0) start();
  };
  start();
  transport_->flush();
  for (int i = 0; i < 20; i++) send(record(XdrText().u32(load_be32(next_record().data())).bytes()));
  wait_ended(20);
  EXPECT_EQ(transport_->counters().bad_replies, 0u);
}

TEST_F(TcpTransportTests, WaitsForWhatItNeeds) {
  open();
  pollfd wait{};
  ASSERT_TRUE(transport_->prepare_wait(wait));
  EXPECT_EQ(wait.events, POLLIN);
  EXPECT_EQ(poll(&wait, 1, 0), 0);
  EXPECT_EQ(transport_->next_timer_ns(), kNever);
  const std::string data = pattern(8 << 20);
  start({}, std::as_bytes(std::span(data)));
  transport_->flush();
  ASSERT_TRUE(transport_->prepare_wait(wait));
  EXPECT_EQ(wait.events, POLLIN | POLLOUT);
  transport_->progress();
  EXPECT_LE(transport_->next_timer_ns(), now_ns() + 1000 * kMs);
}

TEST_F(TcpTransportTests, SleepsInTheReceiveCall) {
  open();
  const uint32_t slot = start();
  transport_->flush();
  next_record();
  transport_->progress();
  EXPECT_FALSE(transport_->sleep_receiving(now_ns(), now_ns() + 30 * kMs)) << "it may be late";
  EXPECT_TRUE(transport_->sleep_receiving(now_ns(), kNever)) << "though nothing comes";
  transport_->progress();
  EXPECT_EQ(ended_.size(), 0u);
  send(record(XdrText().u32(xid_[slot]).u32(7).bytes()));
  const uint64_t calls = transport_->counters().recv_calls;
  ASSERT_TRUE(transport_->sleep_receiving(now_ns(), kNever));
  EXPECT_EQ(ended_.size(), 0u);
  transport_->progress();
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].head, XdrText().u32(xid_[slot]).u32(7).bytes());
  EXPECT_EQ(transport_->counters().recv_calls, calls + 1);
}

TEST_F(TcpTransportTests, NoSleepReceivingBeforeATimerOrWithSomethingToSend) {
  TransportConfig config = this->config();
  config.timeo_ms = 100;
  open(config);
  start();
  transport_->flush();
  transport_->progress();
  EXPECT_LE(transport_->next_timer_ns(), now_ns() + 40 * kMs);
  EXPECT_FALSE(transport_->sleep_receiving(now_ns(), kNever));
  open();
  const std::string data = pattern(8 << 20);
  start({}, std::as_bytes(std::span(data)));
  transport_->flush();
  transport_->progress();
  ASSERT_GT(transport_->unsent(), 0u);
  EXPECT_FALSE(transport_->sleep_receiving(now_ns(), kNever));
}

TEST_F(TcpTransportTests, AnEndOfTheConnectionWakesASleepInTheReceiveCall) {
  open();
  const uint32_t slot = start();
  transport_->flush();
  next_record();
  transport_->progress();
  peer_.close_connection();
  EXPECT_TRUE(transport_->sleep_receiving(now_ns(), kNever));
  EXPECT_FALSE(transport_->sleep_receiving(now_ns(), kNever)) << "there is no connection";
  accept_again();
  EXPECT_EQ(next_record(), message(xid_[slot]));
}

}  // namespace
}  // namespace nfsrdma::testing
