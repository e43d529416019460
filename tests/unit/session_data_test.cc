// SPDX-License-Identifier: GPL-2.0-or-later
// READ and WRITE of a session: splitting, short results, JUKEBOX, errors, order, abandoning.
#include <cerrno>

#include "session_peer.h"

namespace nfsrdma::testing {
namespace {

using SessionData = SessionTest;

constexpr uint32_t kNospc = 28, kJukebox = 10008, kIo = 5;

TEST_F(SessionData, AReadAboveRtmaxIsSplitAndCompletesAsOne) {
  SessionConfig config = this->config();
  config.rtmax = 4;
  open(config);
  std::vector<std::byte> buffer(10);
  read(7, (1ull << 40) + 1, buffer);
  const WireCall a = next(kRead), b = next(kRead), c = next(kRead);
  EXPECT_EQ(a.offset, (1ull << 40) + 1);
  EXPECT_EQ(b.offset, (1ull << 40) + 5);
  EXPECT_EQ(c.offset, (1ull << 40) + 9);
  EXPECT_EQ(a.count, 4u);
  EXPECT_EQ(c.count, 2u);
  answer_read(c, "89");
  answer_read(a, "0123");
  EXPECT_EQ(completions(), "");
  answer_read(b, "4567");
  EXPECT_EQ(completions(), "7:10 ");
  EXPECT_EQ(text_of(buffer), "0123456789");
  EXPECT_EQ(issued_, std::vector<void*>{user(7)}) << "issue time is set once, when it is sent";
}

TEST_F(SessionData, AWriteAboveWtmaxIsSplit) {
  SessionConfig config = this->config();
  config.wtmax = 4;
  open(config);
  write(7, 100, "0123456789", kFileSync);
  EXPECT_TRUE(issued_.empty()) << "nothing was sent yet";
  const WireCall a = next(kWrite), b = next(kWrite), c = next(kWrite);
  EXPECT_EQ(a.text() + b.text() + c.text(), "0123456789");
  EXPECT_EQ(b.offset, 104u);
  EXPECT_EQ(c.offset, 108u);
  EXPECT_EQ(c.stable, kFileSync);
  for (const WireCall& call : {b, a, c}) answer_write(call, call.count, kFileSync, 1);
  EXPECT_EQ(completions(), "7:10 ");
  EXPECT_EQ(on_wire(), 0u) << "FILE_SYNC needs no COMMIT";
}

TEST_F(SessionData, AShortReadIsContinuedUntilTheEnd) {
  open(config());
  std::vector<std::byte> buffer(10, std::byte{'x'});
  read(1, 50, buffer);
  answer_read(next(kRead), "012");
  const WireCall rest = next(kRead);
  EXPECT_EQ(rest.offset, 53u);
  EXPECT_EQ(rest.count, 7u);
  answer_read(rest, "3456", true);
  EXPECT_EQ(completions(), "1:7 ") << "end of file";
  EXPECT_EQ(text_of(buffer), "0123456xxx");
}

TEST_F(SessionData, TheEndOfFileWithinASplitReadCountsFromTheStart) {
  SessionConfig config = this->config();
  config.rtmax = 4;
  open(config);
  std::vector<std::byte> buffer(12);
  read(1, 0, buffer);
  const WireCall a = next(kRead), b = next(kRead), c = next(kRead);
  answer_read(c, "", true);
  answer_read(b, "45", true);
  answer_read(a, "0123");
  EXPECT_EQ(completions(), "1:6 ");
}

TEST_F(SessionData, NoDataAndNoEndOfFileAreBounded) {
  open(config());
  std::vector<std::byte> buffer(4);
  read(1, 0, buffer);
  for (int i = 0; i < 3; i++) answer_read(next(kRead), "");
  EXPECT_EQ(completions(), "1:0/" + std::to_string(EIO) + " ");
  EXPECT_NE(session_->take_error_text().find("no end of file"), std::string::npos);
}

TEST_F(SessionData, AShortWriteIsContinued) {
  open(config());
  write(1, 10, "0123456789", kFileSync);
  answer_write(next(kWrite), 3, kFileSync, 1);
  const WireCall rest = next(kWrite);
  EXPECT_EQ(rest.offset, 13u);
  EXPECT_EQ(rest.text(), "3456789");
  answer_write(rest, 7, kFileSync, 1);
  EXPECT_EQ(completions(), "1:10 ");
}

TEST_F(SessionData, NoBytesAcceptedAreBounded) {
  open(config());
  write(1, 10, "0123456789", kFileSync);
  answer_write(next(kWrite), 0, kFileSync, 1);
  answer_write(next(kWrite), 2, kFileSync, 1);
  for (int i = 0; i < 3; i++) answer_write(next(kWrite), 0, kFileSync, 1);
  EXPECT_EQ(completions(), "1:0/" + std::to_string(EIO) + " ");
  EXPECT_NE(session_->take_error_text().find("accepts 0 bytes"), std::string::npos);
}

TEST_F(SessionData, CountsThatCannotBeAreRefused) {
  open(config());
  std::vector<std::byte> buffer(8);
  read(1, 0, buffer);
  Answer(next(kRead)).u32(0).u32(0).u32(8).u32(0).u32(4).send(4);
  EXPECT_EQ(completions(), "1:0/" + std::to_string(EPROTO) + " ");
  write(2, 0, "0123", kFileSync);
  answer_write(next(kWrite), 5, kFileSync, 1);
  EXPECT_EQ(completions(), "2:0/" + std::to_string(EPROTO) + " ");
  read(3, 0, buffer);
  Answer(next(kRead)).u32(0).u32(0).u32(8).send();
  EXPECT_EQ(completions(), "3:0/" + std::to_string(EPROTO) + " ");
}

TEST_F(SessionData, LessStabilityThanAskedForIsRefused) {
  open(config());
  write(1, 0, "0123", kFileSync);
  answer_write(next(kWrite), 4, kUnstable, 1);
  write(2, 0, "0123", StableHow::kDataSync);
  answer_write(next(kWrite), 4, kUnstable, 1);
  write(3, 0, "0123", StableHow::kDataSync);
  answer_write(next(kWrite), 4, kFileSync, 1);
  const std::string eproto = std::to_string(EPROTO);
  EXPECT_EQ(completions(), "1:0/" + eproto + " 2:0/" + eproto + " 3:4 ");
}

TEST_F(SessionData, StatusesBecomeErrnoWithWords) {
  open(config());
  write(1, 4096, "0123", kFileSync);
  answer_status(next(kWrite), kNospc);
  EXPECT_EQ(completions(), "1:0/" + std::to_string(ENOSPC) + " ");
  const std::string text = session_->take_error_text();
  EXPECT_NE(text.find("WRITE of 4 bytes to 'file1' at 4096: NFS3ERR_NOSPC"), std::string::npos)
      << text;
  EXPECT_EQ(session_->take_error_text(), "");
  std::vector<std::byte> buffer(4);
  read(2, 0, buffer);
  answer_status(next(kRead), kIo);
  EXPECT_EQ(completions(), "2:0/" + std::to_string(EIO) + " ");
  EXPECT_EQ(statistics_->of(StatProcedure::kRead).errors, 1u);
  EXPECT_EQ(statistics_->of(StatProcedure::kWrite).errors, 1u);
}

TEST_F(SessionData, ARpcErrorFailsTheIo) {
  open(config());
  std::vector<std::byte> buffer(4);
  read(1, 0, buffer);
  const WireCall call = next(kRead);
  const auto denied = XdrText().u32(call.xid).u32(1).u32(1).u32(1).u32(5).bytes();
  Reply reply;
  reply.head = denied;
  reply.received_ns = now_ns();
  call.transport->end(call, reply);
  EXPECT_EQ(completions(), "1:0/" + std::to_string(EACCES) + " ");
}

TEST_F(SessionData, JukeboxIsAskedAgainLaterWithANewXid) {
  open(config());
  std::vector<std::byte> buffer(4);
  read(1, 64, buffer);
  write(2, 0, "0123", kFileSync);
  const WireCall r = next(kRead), w = next(kWrite);
  const uint64_t begin = now_ns();
  answer_status(r, kJukebox);
  answer_status(w, kJukebox);
  wait_on_wire(2);
  EXPECT_GE(now_ns() - begin, 100'000'000u) << "not at once";
  const WireCall again = next(kRead), write_again = next(kWrite);
  EXPECT_NE(again.xid, r.xid) << "with the old xid the server would answer from its cache";
  EXPECT_NE(write_again.xid, w.xid);
  EXPECT_EQ(again.offset, 64u);
  answer_read(again, "data");
  EXPECT_EQ(write_again.text(), "0123");
  answer_write(write_again, 4, kFileSync, 1);
  EXPECT_EQ(completions(), "1:4 2:4 ");
  EXPECT_EQ(text_of(buffer), "data");
  EXPECT_EQ(statistics_->of(StatProcedure::kRead).retrans, 1u);
  EXPECT_EQ(statistics_->of(StatProcedure::kWrite).retrans, 1u);
}

TEST_F(SessionData, JukeboxIsBoundedWhenSoft) {
  SessionConfig config = this->config();
  config.timeo_ms = 100;
  config.retrans = 1;
  open(config);
  std::vector<std::byte> buffer(4);
  read(1, 0, buffer);
  answer_status(next(kRead), kJukebox);
  wait_on_wire(1);
  answer_status(next(kRead), kJukebox);
  const std::string done = completions();
  EXPECT_EQ(done.substr(0, 4), "1:0/");
  EXPECT_NE(session_->take_error_text().find("JUKEBOX"), std::string::npos);
}

TEST_F(SessionData, WhatFindsNoSlotWaitsInOrder) {
  open(config(32), 4);
  std::vector<std::byte> buffer(32);
  for (uint32_t i = 0; i < 32; i++) read(i, i, Bytes(buffer).subspan(i, 1));
  EXPECT_FALSE(session_->read(nullptr, file_, 0, Bytes(buffer).first(1))) << "depth is bounded";
  EXPECT_EQ(on_wire(), 4u);
  std::string order;
  for (uint32_t i = 0; i < 32; i++) {
    const WireCall call = next(kRead);
    EXPECT_EQ(call.offset, i);
    answer_read(call, "z");
    order += completions();
  }
  std::string expected;
  for (int i = 0; i < 32; i++) expected += std::to_string(i) + ":1 ";
  EXPECT_EQ(order, expected);
}

TEST_F(SessionData, ASplitIoThatFailsWhileItWaitsEndsOnce) {
  SessionConfig config = this->config();
  config.wtmax = 1;
  open(config, 2);
  write(1, 0, "0123456789", kFileSync);
  write(2, 100, "x", kFileSync);
  const WireCall a = next(kWrite), b = next(kWrite);
  answer_status(a, kNospc);
  answer_write(b, 1, kFileSync, 1);
  const WireCall other = next(kWrite);
  EXPECT_EQ(other.offset, 100u) << "the rest of the first is not sent";
  answer_write(other, 1, kFileSync, 1);
  EXPECT_EQ(completions(), "1:0/" + std::to_string(ENOSPC) + " 2:1 ");
}

TEST_F(SessionData, ACompletionNotTakenHoldsItsPlace) {
  open(config(2));
  write(1, 0, "", kFileSync);
  write(2, 0, "", kFileSync);
  EXPECT_FALSE(session_->sync(user(3), file_));
  EXPECT_EQ(completions(), "1:0 2:0 ");
  write(4, 0, "", kFileSync);
  EXPECT_EQ(completions(), "4:0 ");
}

TEST_F(SessionData, CommitSendsWhenNothingIsOnItsWayOrEnoughGathered) {
  open(config(256), 128);
  std::vector<std::byte> buffer(256);
  read(0, 0, Bytes(buffer).first(1));
  session_->commit();
  EXPECT_EQ(wire_.size(), 1u);
  for (uint32_t i = 1; i < 32; i++) {
    read(i, i, Bytes(buffer).subspan(i, 1));
    session_->commit();
    EXPECT_EQ(wire_.size(), 1u) << i;
  }
  read(32, 32, Bytes(buffer).subspan(32, 1));
  session_->commit();
  EXPECT_EQ(wire_.size(), 33u);
  read(33, 33, Bytes(buffer).subspan(33, 1));
  session_->commit();
  EXPECT_EQ(wire_.size(), 33u);
  session_->wait(0, 0);
  EXPECT_EQ(wire_.size(), 34u) << "getevents sends what is left, with min=0 too";
}

TEST_F(SessionData, SeveralConnectionsTakeTurns) {
  open(config(), 4, 3);
  std::vector<std::byte> buffer(9);
  for (uint32_t i = 0; i < 9; i++) read(i, i, Bytes(buffer).subspan(i, 1));
  ASSERT_EQ(on_wire(), 9u);
  for (HeldTransport* held : held_) EXPECT_EQ(held->outstanding(), 3u);
  for (int i = 0; i < 9; i++) answer_read(next(kRead), "c");
  EXPECT_EQ(completions(), "0:1 3:1 6:1 1:1 4:1 7:1 2:1 5:1 8:1 ");
}

TEST_F(SessionData, AControlCallGoesOnDuringIo) {
  open(config(4), 4);
  std::vector<std::byte> buffer(4);
  for (uint32_t i = 0; i < 4; i++) read(i, i, Bytes(buffer).subspan(i, 1));
  held_[0]->answer = [](const WireCall& call) {
    if (call.procedure == kRead) return answer_read(call, "r");
    Answer(call).u32(0).u32(4711).send();
  };
  const auto handle = XdrText().opaque("1234").bytes();
  const auto results = session_->call(kNfsProgram, 3, 1, handle, 100);
  ASSERT_TRUE(results) << results.error().text;
  EXPECT_EQ(to_hex(*results), "0000000000001267");
  EXPECT_EQ(completions(), "0:1 1:1 2:1 3:1 ");
  EXPECT_FALSE(session_->call(kNfsProgram, 3, 1, handle, 4)) << "more than reply_max";
  EXPECT_FALSE(session_->call(kNfsProgram, 3, 1, std::vector<std::byte>(4096), 100));
  EXPECT_FALSE(session_->call(kMountProgram, 3, 1, handle, 100));
}

TEST_F(SessionData, AbandonEndsAllThatIsOutstanding) {
  SessionConfig config = this->config(16);
  config.uncommitted_max = 4096;
  open(config, 4);
  std::vector<std::byte> buffer(16);
  read(1, 0, Bytes(buffer).first(4));
  answer_status(next(kRead), kJukebox);  // put off
  write(2, 100, "kept");
  write(3, 102, "overlap");  // stalled
  sync(4);
  read(5, 4, Bytes(buffer).subspan(4, 4));
  read(6, 8, Bytes(buffer).subspan(8, 4));  // no slot
  sync(7);                                  // waits for the COMMIT on its way
  session_->wait(0, 0);
  session_->abandon(Error{EINTR, "enough"});
  std::string done = completions();
  for (const char* each : {"1:0/4 ", "2:0/4 ", "3:0/4 ", "4:0/4 ", "5:0/4 ", "6:0/4 ", "7:0/4 "})
    EXPECT_NE(done.find(each), std::string::npos) << each << "not in " << done;
  EXPECT_EQ(session_->outstanding(), 0u);
  EXPECT_EQ(on_wire(), 0u) << "nothing is sent any more";
  sync(8);
  EXPECT_EQ(completions(), "8:0/5 ");
  settle(120);
  EXPECT_EQ(on_wire(), 0u);
  EXPECT_TRUE(session_->close_file(file_)) << "nothing was acknowledged and lost";
}

}  // namespace
}  // namespace nfsrdma::testing
