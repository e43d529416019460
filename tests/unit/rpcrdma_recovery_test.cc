// SPDX-License-Identifier: GPL-2.0-or-later
// Time limits, reconnects, giving up: every call ends once, and its memory is out of the peer's
// reach when it does.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "rdma_rig.h"
#include "setup_gate.h"

namespace nfsrdma::testing {
namespace {

class RpcRdmaRecovery : public RdmaRig {
 protected:
  Bytes io(size_t offset, size_t length) { return Bytes(memory).subspan(offset, length); }
};

TEST_F(RpcRdmaRecovery, SilentCallGoesAgainOnAnotherConnectionOnly) {
  open();
  warm_up();
  call(1);
  call(2);
  call(3);
  transport->flush();
  std::vector<uint32_t> order;
  while (!peer->sent.empty()) order.push_back(take().header.xid);
  ASSERT_EQ(order.size(), 3u);
  // The second is answered; the others are silent, though the connection is alive.
  ASSERT_TRUE(answer_xid(order[1]));
  ASSERT_TRUE(run_until([&] { return !peer->sent.empty(); }));
  EXPECT_EQ(peer->connects, 2u);
  EXPECT_EQ(peer->closes, 1u);
  EXPECT_EQ(peer->sent.front().life, 2u) << "never twice on one connection";
  Seen seen = take();
  EXPECT_EQ(seen.header.xid, order[0]) << "in order, with its xid";
  EXPECT_TRUE(peer->sent.empty()) << "one credit";
  ASSERT_TRUE(answer(seen));
  ASSERT_TRUE(run_until([&] { return !peer->sent.empty(); }));
  seen = take();
  EXPECT_EQ(seen.header.xid, order[2]);
  ASSERT_TRUE(answer(seen));
  ASSERT_TRUE(run_until_ended(3));
  EXPECT_EQ(ends[1].retransmissions, 1u);
  EXPECT_EQ(sent_slots.size(), 3u) << "on_sent once a call";
  EXPECT_EQ(transport->counters().reconnects, 1u);
}

TEST_F(RpcRdmaRecovery, SoftGivesUpOnlyAfterTheConnectionIsClosed) {
  open();
  warm_up();
  call(5, 32, {}, io(0, 8192));
  transport->flush();
  const RdmaSegment offered = take().header.writes.front()[0];
  ASSERT_TRUE(run_until_ended(1));
  EXPECT_EQ(ends[0].error, ETIMEDOUT);
  EXPECT_NE(ends[0].text.find("retrans=2"), std::string::npos) << ends[0].text;
  EXPECT_FALSE(peer->peer_write(offered.handle, offered.offset, pattern(8, 1)));
  EXPECT_GE(peer->closes, 2u);
  EXPECT_EQ(transport->outstanding(), 0u);
}

// The call is on the wire when its time is up: nothing but the close keeps the server out.
TEST_F(RpcRdmaRecovery, SoftWithoutRetransClosesFirst) {
  config.retrans = 0;
  open();
  warm_up();
  call(5, 32, {}, io(0, 8192));
  transport->flush();
  const RdmaSegment offered = take().header.writes.front()[0];
  EXPECT_TRUE(peer->peer_write(offered.handle, offered.offset, pattern(8, 1)));
  ASSERT_TRUE(run_until_ended(1));
  EXPECT_EQ(ends[0].error, ETIMEDOUT);
  EXPECT_EQ(peer->closes, 1u);
  EXPECT_FALSE(peer->peer_write(offered.handle, offered.offset, pattern(8, 1)));
}

TEST_F(RpcRdmaRecovery, HardTriesForEver) {
  config.soft = false;
  open();
  warm_up();
  call(1);
  transport->flush();
  ASSERT_TRUE(run_until([&] { return !peer->sent.empty() && peer->sent.back().life >= 4; }, 5000));
  EXPECT_TRUE(ends.empty());
  while (peer->sent.size() > 1) peer->sent.pop_front();
  ASSERT_TRUE(answer(take()));
  ASSERT_TRUE(run_until_ended(1));
  EXPECT_EQ(ends[0].error, 0);
}

TEST_F(RpcRdmaRecovery, LateReplyOnTheNextConnectionIsDropped) {
  open();
  warm_up();
  call(1);
  call(2);
  transport->flush();
  take();
  const uint32_t second = take().header.xid;
  peer->disconnect({ECONNRESET, "gone"});
  ASSERT_TRUE(run_until([&] { return !peer->sent.empty(); }));
  // The second waits for a credit: it was not sent on this connection.
  ASSERT_TRUE(answer_xid(second));
  transport->progress();
  EXPECT_TRUE(ends.empty());
  EXPECT_EQ(transport->counters().bad_replies, 1u);
}

TEST_F(RpcRdmaRecovery, DisconnectBeforeTheSendCompletes) {
  open();
  peer->send_done_now = false;
  call(1);
  transport->flush();
  const uint32_t xid = take().header.xid;
  peer->disconnect({ECONNRESET, "gone"});
  ASSERT_TRUE(run_until([&] { return !peer->sent.empty(); }));
  peer->send_done_now = true;
  peer->complete_sends();
  const Seen again = take();
  EXPECT_EQ(again.header.xid, xid);
  ASSERT_TRUE(answer(again));
  ASSERT_TRUE(run_until_ended(1));
  EXPECT_EQ(ends[0].error, 0);
}

TEST_F(RpcRdmaRecovery, CompletionsOfAClosedConnectionSayNothing) {
  open();
  warm_up();
  call(1);
  call(2);
  transport->flush();
  const Seen first = take();
  const Seen second = take();
  // One batch: a message that breaks the connection, then a reply.
  ASSERT_TRUE(peer->peer_send(std::vector<std::byte>(3)));
  ASSERT_TRUE(answer(second));
  transport->progress();
  EXPECT_TRUE(ends.empty());
  EXPECT_EQ(transport->outstanding(), 2u);
}

TEST_F(RpcRdmaRecovery, AbandonEndsEverythingOnceAndClosesFirst) {
  open();
  warm_up(2);
  std::vector<std::byte> elsewhere(64);
  call(1, 16, {}, elsewhere);
  const uint32_t a = call(5, 32, {}, io(0, 8192));
  for (int i = 0; i < 3; ++i) call(1);
  transport->flush();
  const Seen seen = take();
  transport->abandon({ECANCELED, "enough"});
  EXPECT_EQ(ends.size(), 5u);
  for (const End& end : ends) EXPECT_EQ(end.error, ECANCELED);
  EXPECT_EQ(ends[0].slot, a) << "in order";
  EXPECT_EQ(transport->outstanding(), 0u);
  EXPECT_EQ(transport->unsent(), 0u);
  EXPECT_EQ(peer->closes, 1u);
  const RdmaSegment offered = seen.header.writes.front()[0];
  EXPECT_FALSE(peer->peer_write(offered.handle, offered.offset, pattern(8, 1)));
  // And it works again afterwards.
  ends.clear();
  peer->sent.clear();
  call(1);
  ASSERT_TRUE(run_until([&] { return !peer->sent.empty(); }));
  ASSERT_TRUE(answer(take()));
  ASSERT_TRUE(run_until_ended(1));
  EXPECT_EQ(ends[0].error, 0);
}

TEST_F(RpcRdmaRecovery, ReplyBuffersSurviveReconnects) {
  open();
  warm_up();
  for (int round = 0; round < 3; ++round) {
    ends.clear();
    for (int i = 0; i < 6; ++i) call(5, 32, {}, {}, 60000);
    transport->flush();
    EXPECT_GE(peer->sent.size(), 1u);
    peer->sent.clear();
    transport->abandon({ECANCELED, "enough"});
    EXPECT_EQ(ends.size(), 6u);
    call(1);
    ASSERT_TRUE(run_until([&] { return !peer->sent.empty(); }));
    ASSERT_TRUE(answer(take()));
    ASSERT_TRUE(run_until_ended(7));
  }
}

TEST_F(RpcRdmaRecovery, RefusedFirstConnectionIsAnErrorAtOnce) {
  auto made = std::make_unique<FakeFabric>(fabric_options);
  made->connect_error = {ECONNREFUSED, "127.0.0.1:20049 refused"};
  auto opened = RpcRdmaTransport::open(config, options, std::move(made));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ECONNREFUSED);
}

TEST_F(RpcRdmaRecovery, SetupThatTimesOutIsTriedAgainUntilTheDeadline) {
  auto made = std::make_unique<FakeFabric>(fabric_options);
  made->connect_error = {ETIMEDOUT, "no answer"};
  const uint64_t start = now_ns();
  auto opened = RpcRdmaTransport::open(config, options, std::move(made));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ETIMEDOUT);
  EXPECT_GE(now_ns() - start, 290'000'000u);
  EXPECT_NE(opened.error().text.find("gave up"), std::string::npos) << opened.error().text;
}

TEST_F(RpcRdmaRecovery, SetupEndsWhenItIsToldTo) {
  auto made = std::make_unique<FakeFabric>(fabric_options);
  made->connect_error = {ETIMEDOUT, "no answer"};
  volatile bool stop = false;
  config.connect_timeout_ms = 60'000;
  config.stop = &stop;
  std::thread user([&stop] {
    usleep(20'000);
    stop = true;
  });
  const uint64_t start = now_ns();
  auto opened = RpcRdmaTransport::open(config, options, std::move(made));
  user.join();
  EXPECT_LT(now_ns() - start, 10'000'000'000u);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, EINTR);
  EXPECT_NE(opened.error().text.find("told to end while connecting to 127.0.0.1:20049"),
            std::string::npos)
      << opened.error().text;
}

TEST_F(RpcRdmaRecovery, WrongPrivateDataStillConnects) {
  peer_data = {};
  peer_says_private_data = false;
  open();
  bool found = false;
  for (const auto& [name, value] : transport->info().negotiated) {
    if (name == "inline_send") found = value == "1024";
  }
  EXPECT_TRUE(found);
}

TEST(SetupGate, FourAtOncePerServer) {
  const uint64_t now = now_ns();
  std::vector<SetupLease> held;
  for (int i = 0; i < 4; ++i) {
    held.push_back(try_setup("gate-a:1", now, 1'000'000'000));
    EXPECT_TRUE(held.back().held());
  }
  EXPECT_FALSE(try_setup("gate-a:1", now, 1'000'000'000).held());
  EXPECT_TRUE(try_setup("gate-b:1", now, 1'000'000'000).held()) << "another server";
  held.pop_back();
  EXPECT_TRUE(try_setup("gate-a:1", now, 1'000'000'000).held());
}

TEST(SetupGate, LeaseRunsOutAndItsOldHolderTakesNothing) {
  const uint64_t now = now_ns();
  std::vector<SetupLease> old;
  for (int i = 0; i < 4; ++i) old.push_back(try_setup("gate-c:1", now, 1000));
  std::vector<SetupLease> fresh;
  for (int i = 0; i < 4; ++i) {
    fresh.push_back(try_setup("gate-c:1", now + 2000, 1'000'000'000));
    EXPECT_TRUE(fresh.back().held());
  }
  old.clear();
  EXPECT_FALSE(try_setup("gate-c:1", now + 3000, 1'000'000'000).held());
}

TEST(SetupGate, SharedWithChildrenEvenDeadOnes) {
  const uint64_t now = now_ns();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::vector<SetupLease> held;
    for (int i = 0; i < 4; ++i) held.push_back(try_setup("gate-d:1", now, 1'000'000'000));
    _exit(0);  // dies with all four
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(try_setup("gate-d:1", now, 1'000'000'000).held());
  EXPECT_TRUE(try_setup("gate-d:1", now + 1'000'000'001, 1'000'000'000).held());
}

}  // namespace
}  // namespace nfsrdma::testing
