// SPDX-License-Identifier: GPL-2.0-or-later
// Write stability (RFC 1813 sections 3.3.7, 3.3.21 and 4.8): kept data, COMMIT, server restarts.
#include <cerrno>

#include "session_peer.h"

namespace nfsrdma::testing {
namespace {

using SessionCommit = SessionTest;

constexpr uint32_t kStale = 70, kIoStatus = 5;
const std::string kEio = std::to_string(EIO);

TEST_F(SessionCommit, AWriteThatCommitsAfterwardsCompletesThen) {
  SessionConfig config = this->config();
  config.wtmax = 4;
  open(config);
  write(1, 100, "01234567", kUnstable, true);
  const WireCall a = next(kWrite), b = next(kWrite);
  EXPECT_EQ(a.stable, kUnstable);
  answer_write(b, 4, kUnstable, 5);
  EXPECT_EQ(on_wire(), 0u);
  answer_write(a, 4, kUnstable, 5);
  const WireCall commit = next(kCommit);
  EXPECT_EQ(commit.offset, 100u);
  EXPECT_EQ(commit.count, 8u);
  EXPECT_EQ(completions(), "");
  answer_commit(commit, 5);
  EXPECT_EQ(completions(), "1:8 ");
}

TEST_F(SessionCommit, AChangedVerifierWritesTheWholeRangeAgain) {
  SessionConfig config = this->config();
  config.wtmax = 4;
  open(config);
  write(1, 0, "01234567", kUnstable, true);
  answer_write(next(kWrite), 4, kUnstable, 5);
  answer_write(next(kWrite), 4, kUnstable, 5);
  answer_commit(next(kCommit), 6);
  EXPECT_EQ(completions(), "");
  const WireCall a = next(kWrite), b = next(kWrite);
  EXPECT_EQ(a.text() + b.text(), "01234567");
  answer_write(a, 4, kUnstable, 6);
  answer_write(b, 4, kUnstable, 7);  // restarted between: no COMMIT can save it
  const WireCall c = next(kWrite), d = next(kWrite);
  answer_write(c, 4, kUnstable, 7);
  answer_write(d, 4, kUnstable, 7);
  answer_commit(next(kCommit), 7);
  EXPECT_EQ(completions(), "1:8 ");
  EXPECT_EQ(statistics_->verifier_changes, 2u);
  EXPECT_EQ(statistics_->resent_writes, 2u);
  EXPECT_EQ(statistics_->resent_bytes, 16u);
}

TEST_F(SessionCommit, AServerThatRestartsForEverIsGivenUp) {
  open(config());
  write(1, 0, "0123", kUnstable, true);
  uint64_t verifier = 1;
  int rounds = 0;
  while (on_wire() != 0 && rounds < 100) {
    answer_write(next(kWrite), 4, kUnstable, verifier);
    answer_commit(next(kCommit), ++verifier);
    ++rounds;
  }
  EXPECT_LT(rounds, 20);
  EXPECT_EQ(completions(), "1:0/" + kEio + " ");
}

TEST_F(SessionCommit, WhatTheServerWroteStableNeedsNoCommit) {
  open(config());
  write(1, 0, "0123", kUnstable, true);
  answer_write(next(kWrite), 4, kFileSync, 5);
  EXPECT_EQ(completions(), "1:4 ");
  EXPECT_EQ(on_wire(), 0u);
}

TEST_F(SessionCommit, AKeptWriteCompletesAtOnceAndItsBufferIsFree) {
  open(kept());
  std::string data = "0123";
  write(1, 0, data);
  const WireCall call = next(kWrite);
  data = "XXXX";
  EXPECT_EQ(call.text(), "0123");
  answer_write(call, 4, kUnstable, 5);
  EXPECT_EQ(completions(), "1:4 ");
  sync(2);
  const WireCall commit = next(kCommit);
  EXPECT_EQ(commit.offset, 0u);
  EXPECT_EQ(commit.count, 0u) << "the whole file";
  EXPECT_EQ(completions(), "");
  answer_commit(commit, 5);
  EXPECT_EQ(completions(), "2:0 ");
  EXPECT_EQ(session_->uncommitted(), 0u);
  EXPECT_EQ(on_wire(), 0u);
}

TEST_F(SessionCommit, AfterARestartCurrentBytesOnlyAreSentAgain) {
  open(kept());
  write(1, 0, "aaaaaaaa");
  answer_write(next(kWrite), 8, kUnstable, 5);
  sync(2);
  const WireCall commit = next(kCommit);
  write(3, 2, "NNN");  // newer, to the new instance
  answer_write(next(kWrite), 3, kUnstable, 6);
  EXPECT_EQ(completions(), "1:8 3:3 ");
  answer_commit(commit, 6);
  const WireCall left = next(kWrite), right = next(kWrite);
  EXPECT_EQ(left.offset, 0u);
  EXPECT_EQ(left.text(), "aa");
  EXPECT_EQ(right.offset, 5u);
  EXPECT_EQ(right.text(), "aaa");
  EXPECT_EQ(on_wire(), 0u);
  answer_write(right, 3, kUnstable, 6);
  EXPECT_EQ(completions(), "") << "the fsync waits for the COMMIT behind the resends";
  answer_write(left, 2, kUnstable, 6);
  const WireCall second = next(kCommit);
  EXPECT_EQ(completions(), "");
  answer_commit(second, 6);
  EXPECT_EQ(completions(), "2:0 ");
  EXPECT_EQ(session_->uncommitted(), 0u);
  EXPECT_EQ(statistics_->resent_writes, 2u);
  EXPECT_EQ(statistics_->verifier_changes, 1u);
}

TEST_F(SessionCommit, AStableWriteReplacesKeptBytes) {
  open(kept());
  write(1, 0, "aaaaaaaa");
  answer_write(next(kWrite), 8, kUnstable, 5);
  write(2, 2, "N", kFileSync);
  write(4, 3, "NN", kUnstable, true);
  for (const uint32_t length : {1u, 2u}) {
    const WireCall call = next(kWrite);
    EXPECT_EQ(call.stable, kFileSync);
    answer_write(call, length, kFileSync, 5);
  }
  EXPECT_EQ(completions(), "1:8 2:1 4:2 ");
  sync(3);
  answer_commit(next(kCommit), 6);
  const WireCall left = next(kWrite), right = next(kWrite);
  EXPECT_EQ(left.offset, 0u);
  EXPECT_EQ(left.text(), "aa");
  EXPECT_EQ(right.offset, 5u);
  EXPECT_EQ(right.text(), "aaa");
  answer_write(left, 2, kUnstable, 6);
  answer_write(right, 3, kUnstable, 6);
  answer_commit(next(kCommit), 6);
  EXPECT_EQ(completions(), "3:0 ");
  EXPECT_EQ(session_->uncommitted(), 0u);
}

TEST_F(SessionCommit, ASecondRestartDuringTheResendIsSeenToo) {
  open(kept());
  write(1, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 5);
  sync(2);
  answer_commit(next(kCommit), 6);
  answer_write(next(kWrite), 4, kUnstable, 6);
  answer_commit(next(kCommit), 7);
  const WireCall third = next(kWrite);
  EXPECT_EQ(third.text(), "aaaa");
  answer_write(third, 4, kUnstable, 7);
  answer_commit(next(kCommit), 7);
  EXPECT_EQ(completions(), "1:4 2:0 ");
}

TEST_F(SessionCommit, AResendThatFailsReachesTheFsync) {
  open(kept());
  write(1, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 5);
  sync(2);
  answer_commit(next(kCommit), 6);
  answer_status(next(kWrite), 28);
  answer_commit(next(kCommit), 6);
  EXPECT_EQ(completions(), "1:4 2:0/" + std::to_string(ENOSPC) + " ");
  EXPECT_EQ(statistics_->lost_writes, 1u);
}

TEST_F(SessionCommit, OverlappingKeptWritesGoOneAfterTheOther) {
  open(kept());
  write(1, 0, "aaaa");
  write(2, 2, "bbbb");
  write(3, 6, "cc");
  const WireCall first = next(kWrite), third = next(kWrite);
  EXPECT_EQ(first.text(), "aaaa");
  EXPECT_EQ(third.text(), "cc");
  EXPECT_EQ(on_wire(), 0u);
  answer_write(first, 4, kUnstable, 1);
  const WireCall second = next(kWrite);
  EXPECT_EQ(second.text(), "bbbb");
  answer_write(second, 4, kUnstable, 1);
  answer_write(third, 2, kUnstable, 1);
  EXPECT_EQ(completions(), "1:4 2:4 3:2 ");
}

TEST_F(SessionCommit, ANewWriteWaitsForTheResendOfItsRange) {
  open(kept());
  write(1, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 5);
  sync(2);
  answer_commit(next(kCommit), 6);
  const WireCall resend = next(kWrite);
  write(3, 1, "b");
  EXPECT_EQ(on_wire(), 0u);
  answer_write(resend, 4, kUnstable, 6);
  const WireCall commit = next(kCommit), newer = next(kWrite);
  EXPECT_EQ(newer.text(), "b");
  answer_write(newer, 1, kUnstable, 6);
  answer_commit(commit, 6);
  EXPECT_EQ(completions(), "1:4 3:1 2:0 ");
}

TEST_F(SessionCommit, AReadOfKeptDataGivesTheNewestBytes) {
  open(kept());
  write(1, 2, "NNN");
  answer_write(next(kWrite), 3, kUnstable, 5);
  std::vector<std::byte> buffer(8);
  read(2, 0, buffer);
  answer_read(next(kRead), "oooooooo");  // restarted: what the server had before
  EXPECT_EQ(completions(), "1:3 2:8 ");
  EXPECT_EQ(text_of(buffer), "ooNNNooo");
}

TEST_F(SessionCommit, AReadOfKeptDataBeyondALostEndOfFile) {
  open(kept());
  write(1, 4, "NNN");
  answer_write(next(kWrite), 3, kUnstable, 5);
  std::vector<std::byte> buffer(12, std::byte{'x'});
  read(2, 0, buffer);
  answer_read(next(kRead), "oo", true);  // restarted: the file is short again
  EXPECT_EQ(completions(), "1:3 2:7 ");
  EXPECT_EQ(text_of(buffer), std::string("oo\0\0NNNxxxxx", 12));
}

TEST_F(SessionCommit, AReadSentBeforeALostCommitIsAskedAgain) {
  open(kept());
  write(1, 0, "NNNN");
  answer_write(next(kWrite), 4, kUnstable, 5);
  std::vector<std::byte> buffer(4);
  read(2, 0, buffer);
  const WireCall early = next(kRead);
  sync(3);
  answer_commit(next(kCommit), 6);
  answer_write(next(kWrite), 4, kUnstable, 6);
  answer_commit(next(kCommit), 6);
  EXPECT_EQ(completions(), "1:4 3:0 ");
  answer_read(early, "oooo");  // read by the new instance, before the resend
  EXPECT_EQ(completions(), "");
  answer_read(next(kRead), "NNNN");
  EXPECT_EQ(completions(), "2:4 ");
  EXPECT_EQ(text_of(buffer), "NNNN");
}

TEST_F(SessionCommit, WhatCanGoOnDoesSoBeforeASleepInTheReceiveCall) {
  open(kept(16));
  write(1, 0, "0123456");
  answer_write(next(kWrite), 7, kUnstable, 5);
  EXPECT_EQ(completions(), "1:7 ");
  write(2, 20, "01234567");
  write(3, 40, "ab");  // no room: the first one is to be committed
  uint32_t sleeps = 0;
  held_[0]->asleep = [&] {
    if (++sleeps > 2) return;
    const WireCall call = wire_.back();
    wire_.pop_back();
    EXPECT_EQ(call.procedure, sleeps == 1 ? kCommit : kWrite);
    if (call.procedure == kCommit)
      answer_commit(call, 5);
    else
      answer_write(call, call.count, kUnstable, 5);
  };
  EXPECT_EQ(session_->wait(1, now_ns() + 1'000'000'000), 1u);
  EXPECT_EQ(sleeps, 2u);
  EXPECT_EQ(session_->wait(1, 0), 1u) << "it is ready: nobody sleeps for it";
  EXPECT_EQ(session_->wait(0, kNever), 1u) << "nothing is asked for: nobody sleeps";
  EXPECT_EQ(sleeps, 2u);
  EXPECT_EQ(completions(), "3:2 ");
}

TEST_F(SessionCommit, AFullPoolBringsACommitAndTheWriteWaits) {
  open(kept(200));
  const std::string as(90, 'a'), bs(90, 'b'), cs(90, 'c');
  write(1, 0, as);
  write(2, 100, bs);
  write(3, 200, cs);
  const WireCall a = next(kWrite), b = next(kWrite);
  EXPECT_EQ(on_wire(), 0u) << "no room for the third";
  answer_write(a, 90, kUnstable, 1);
  const WireCall commit = next(kCommit);
  answer_write(b, 90, kUnstable, 1);
  EXPECT_EQ(on_wire(), 0u);
  answer_commit(commit, 1);  // covers the first
  const WireCall c = next(kWrite);
  EXPECT_EQ(c.text(), cs);
  answer_write(c, 90, kUnstable, 1);
  EXPECT_EQ(completions(), "1:90 2:90 3:90 ");
}

TEST_F(SessionCommit, CommitBytesBringACommit) {
  SessionConfig config = kept(1000);
  config.commit_bytes = 100;
  open(config);
  const std::string data(60, 'a');
  write(1, 0, data);
  answer_write(next(kWrite), 60, kUnstable, 1);
  EXPECT_EQ(on_wire(), 0u);
  write(2, 60, data);
  answer_write(next(kWrite), 60, kUnstable, 1);
  answer_commit(next(kCommit), 1);
  EXPECT_EQ(session_->uncommitted(), 0u);
  EXPECT_EQ(on_wire(), 0u);
}

TEST_F(SessionCommit, AgeBringsACommit) {
  SessionConfig config = kept(1000);
  config.commit_ms = 80;
  open(config);
  write(1, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 1);
  const uint64_t begin = now_ns();
  EXPECT_EQ(on_wire(), 0u);
  wait_on_wire(1);
  EXPECT_GE(now_ns() - begin, 75'000'000u);
  answer_commit(next(kCommit), 1);
  settle(100);
  EXPECT_EQ(on_wire(), 0u) << "nothing is left to commit";
}

TEST_F(SessionCommit, WithoutKeptDataALossFailsTheFsyncOnce) {
  open(config());
  write(1, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 5);
  sync(2);
  const WireCall commit = next(kCommit);
  write(3, 8, "bbbb");  // to the instance that answers the COMMIT
  answer_write(next(kWrite), 4, kUnstable, 6);
  answer_commit(commit, 6);
  EXPECT_EQ(completions(), "1:4 3:4 2:0/" + kEio + " ");
  EXPECT_NE(session_->take_error_text().find("lost 1 unstable writes"), std::string::npos);
  EXPECT_EQ(statistics_->lost_writes, 1u);
  sync(4);
  answer_commit(next(kCommit), 6);
  EXPECT_EQ(completions(), "4:0 ") << "nothing of the second was lost";
  EXPECT_EQ(statistics_->lost_writes, 1u);
}

TEST_F(SessionCommit, WithoutKeptDataTwoVerifiersAreALoss) {
  open(config());
  write(1, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 5);
  write(2, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 6);
  sync(3);
  answer_commit(next(kCommit), 6);
  EXPECT_EQ(completions(), "1:4 2:4 3:0/" + kEio + " ");
}

TEST_F(SessionCommit, TheErrorOfACommitReachesTheFsync) {
  open(kept());
  write(1, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 5);
  sync(2);
  sync(3);  // behind it: a COMMIT of its own
  answer_status(next(kCommit), kIoStatus);
  EXPECT_EQ(completions(), "1:4 2:0/" + kEio + " ");
  answer_commit(next(kCommit), 5);
  EXPECT_EQ(completions(), "3:0 ");
}

TEST_F(SessionCommit, TheErrorOfACommitThatNobodyWaitedForReachesTheNextFsync) {
  SessionConfig config = kept(1000);
  config.commit_bytes = 4;
  open(config);
  write(1, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 5);
  answer_status(next(kCommit), kIoStatus);
  sync(2);
  answer_commit(next(kCommit), 5);
  EXPECT_EQ(completions(), "1:4 2:0/" + kEio + " ");
  sync(3);
  answer_commit(next(kCommit), 5);
  EXPECT_EQ(completions(), "3:0 ");
}

TEST_F(SessionCommit, OneCommitServesTheFsyncsThatWait) {
  open(kept());
  sync(1);
  const WireCall first = next(kCommit);
  sync(2);
  sync(3);
  EXPECT_EQ(on_wire(), 0u);
  answer_commit(first, 5);
  EXPECT_EQ(completions(), "1:0 ");
  answer_commit(next(kCommit), 5);
  EXPECT_EQ(completions(), "2:0 3:0 ");
}

TEST_F(SessionCommit, ClosingCommits) {
  open(kept());
  write(1, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 5);
  int commits = 0;
  held_[0]->answer = [&](const WireCall& call) {
    ASSERT_EQ(call.procedure, kCommit);
    ++commits;
    answer_commit(call, 5);
  };
  EXPECT_TRUE(session_->close_file(file_));
  EXPECT_EQ(commits, 1);
}

TEST_F(SessionCommit, ClosingTellsOfLostData) {
  open(kept());
  write(1, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 5);
  held_[0]->answer = [&](const WireCall& call) { answer_status(call, kIoStatus); };
  const auto closed = session_->close_file(file_);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, EIO);
  EXPECT_NE(closed.error().text.find("file1"), std::string::npos);
}

TEST_F(SessionCommit, ClosingAnUnlinkedFileSendsNoCommit) {
  open(kept());
  write(1, 0, "aaaa");
  answer_write(next(kWrite), 4, kUnstable, 5);
  session_->forget_unlinked("file1");
  held_[0]->answer = [&](const WireCall& call) {
    ADD_FAILURE() << "a call to a file that is gone";
    answer_status(call, kStale);
  };
  EXPECT_TRUE(session_->close_file(file_));
}

TEST_F(SessionCommit, AKeptWriteThatFailsKeepsNothing) {
  open(kept());
  write(1, 0, "aaaa");
  answer_status(next(kWrite), 28);
  EXPECT_EQ(completions(), "1:0/" + std::to_string(ENOSPC) + " ");
  EXPECT_EQ(session_->uncommitted(), 0u);
  std::vector<std::byte> buffer(4);
  read(2, 0, buffer);
  answer_read(next(kRead), "oooo");
  EXPECT_EQ(completions(), "2:4 ");
  EXPECT_EQ(text_of(buffer), "oooo");
}

TEST_F(SessionCommit, AKeptWriteInTwoPartsOfTwoInstancesIsSentAgain) {
  open(kept());
  write(1, 0, "aabb");
  answer_write(next(kWrite), 2, kUnstable, 5);
  answer_write(next(kWrite), 2, kUnstable, 6);
  EXPECT_EQ(completions(), "1:4 ");
  sync(2);
  const WireCall resend = next(kWrite);
  EXPECT_EQ(resend.text(), "aabb");
  answer_write(resend, 4, kUnstable, 6);
  answer_commit(next(kCommit), 6);
  EXPECT_EQ(completions(), "2:0 ");
}

TEST_F(SessionCommit, TheTimeOfAnFsyncIsThatOfItsCommit) {
  open(kept());
  sync(1);
  EXPECT_TRUE(issued_.empty());
  const WireCall commit = next(kCommit);
  EXPECT_EQ(issued_, std::vector<void*>{user(1)});
  answer_commit(commit, 5);
  EXPECT_EQ(completions(), "1:0 ");
  EXPECT_EQ(statistics_->of(StatProcedure::kCommit).ops, 1u);
  EXPECT_EQ(statistics_->of(StatProcedure::kCommit).exe.count(), 1u);
}

}  // namespace
}  // namespace nfsrdma::testing
