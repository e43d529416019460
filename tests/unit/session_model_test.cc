// SPDX-License-Identifier: GPL-2.0-or-later
// A session against a server that answers in any order, in part, and restarts: every READ gives
// what was written last, and after an fsync the server holds it stable.
#include <algorithm>
#include <random>

#include "session_peer.h"

namespace nfsrdma::testing {
namespace {

// The parameter is the seed: which sequences it gives is all that differs.
class SessionModel : public SessionTest, public ::testing::WithParamInterface<uint64_t> {
 protected:
  static constexpr uint64_t kFile = 2000;

  struct Io {
    bool is_read = false;
    uint64_t offset = 0;
    std::vector<std::byte> data;  // to be written, or read into
    std::vector<std::byte> expected;
  };
  // Executed by the server, the reply still on its way.
  struct Done {
    WireCall call;
    std::vector<std::byte> data;
    bool eof = false;
    uint32_t count = 0;
    StableHow committed = kUnstable;
    uint64_t verifier = 0;
  };

  bool busy(uint64_t offset, uint64_t length) const {
    return std::ranges::any_of(ios_, [&](const auto& each) {
      return each != nullptr && each->offset < offset + length &&
             offset < each->offset + each->data.size();
    });
  }

  void start_io() {
    const uint64_t length = 1 + random_() % 150;
    const uint64_t offset = random_() % (kFile - length);
    // fio orders nothing between I/Os that overlap and are outstanding together.
    if (busy(offset, length)) return;
    const auto place = std::ranges::find_if(ios_, [](const auto& each) { return each == nullptr; });
    if (place == ios_.end()) return;
    auto io = std::make_unique<Io>();
    io->offset = offset;
    io->data.resize(length);
    io->is_read = random_() % 2 == 0;
    const auto index = static_cast<uintptr_t>(place - ios_.begin());
    if (io->is_read) {
      const uint64_t end = std::min(size_, offset + length);
      if (end > offset)
        io->expected.assign(truth_.begin() + static_cast<long>(offset),
                            truth_.begin() + static_cast<long>(end));
      ASSERT_TRUE(session_->read(user(index), file_, offset, io->data));
    } else {
      for (std::byte& byte : io->data) byte = std::byte(random_());
      std::ranges::copy(io->data, truth_.begin() + static_cast<long>(offset));
      ASSERT_TRUE(session_->write(user(index), file_, offset, io->data, kUnstable, false));
      size_written_ = std::max(size_written_, offset + length);
    }
    *place = std::move(io);
  }

  void start_sync() {
    if (syncing_) return;
    syncing_ = session_->sync(user(kSync), file_);
  }

  // Any of the calls on the wire is executed; its reply may come much later.
  void execute() {
    if (wire_.empty()) return;
    const auto at = wire_.begin() + static_cast<long>(random_() % wire_.size());
    Done done;
    done.call = *at;
    wire_.erase(at);
    const WireCall& call = done.call;
    const uint32_t part =
        call.count > 1 && random_() % 8 == 0 ? 1 + random_() % call.count : call.count;
    done.verifier = verifier_;
    const auto offset = static_cast<long>(call.offset);
    if (call.procedure == kRead) {
      const uint64_t end = std::min<uint64_t>(now_.size(), call.offset + part);
      if (end > call.offset)
        done.data.assign(now_.begin() + offset, now_.begin() + static_cast<long>(end));
      done.eof = call.offset + done.data.size() >= now_.size();
    } else if (call.procedure == kWrite) {
      done.count = part;
      now_.resize(std::max<size_t>(now_.size(), call.offset + part));
      std::copy_n(call.data.begin(), part, now_.begin() + offset);
    } else {
      stable_ = now_;
    }
    done_.push_back(std::move(done));
  }

  void reply() {
    if (done_.empty()) return;
    const auto at = done_.begin() + static_cast<long>(random_() % done_.size());
    const Done done = std::move(*at);
    done_.erase(at);
    if (done.call.procedure == kRead)
      answer_read(done.call, done.data, done.eof);
    else if (done.call.procedure == kWrite)
      answer_write(done.call, done.count, kUnstable, done.verifier);
    else
      answer_commit(done.call, done.verifier);
  }

  void restart() {
    now_ = stable_;
    ++verifier_;
    ++restarts_;
  }

  void complete() {
    session_->wait(0, 0);
    while (session_->ready() != 0) {
      const IoCompletion done = session_->take();
      const auto index = reinterpret_cast<uintptr_t>(done.user);
      ASSERT_EQ(done.error, 0) << session_->take_error_text();
      if (index == kSync) {
        syncing_ = false;
        continue;
      }
      const std::unique_ptr<Io> io = std::move(ios_[index]);
      if (io->is_read) {
        // A file may have grown meanwhile by other writes, never shrunk.
        ASSERT_GE(done.bytes, io->expected.size());
        ASSERT_TRUE(std::equal(io->expected.begin(), io->expected.end(), io->data.begin()))
            << "READ of " << io->data.size() << " at " << io->offset;
        ++reads_;
      } else {
        ASSERT_EQ(done.bytes, io->data.size());
        size_ = std::max(size_, io->offset + io->data.size());
        ++writes_;
      }
    }
  }

  static constexpr uintptr_t kSync = 1000;
  std::mt19937_64 random_{GetParam()};
  std::array<std::unique_ptr<Io>, 10> ios_;
  std::vector<std::byte> truth_ = std::vector<std::byte>(kFile);
  uint64_t size_ = 0, size_written_ = 0;
  std::vector<std::byte> now_, stable_;  // what the server has
  std::vector<Done> done_;
  uint64_t verifier_ = 77;
  bool syncing_ = false;
  uint64_t reads_ = 0, writes_ = 0, restarts_ = 0;
};

TEST_P(SessionModel, HoldsWhateverTheOrderAndTheRestarts) {
  SessionConfig config = kept(1500);
  config.rtmax = 64;
  config.wtmax = 50;
  config.commit_ms = 20;
  open(config, 12, 2);
  for (int step = 0; step < 60'000; step++) {
    switch (random_() % 10) {
      case 0:
      case 1:
      case 2:
        start_io();
        break;
      case 3:
      case 4:
      case 5:
        execute();
        break;
      case 6:
      case 7:
      case 8:
        reply();
        break;
      default:
        if (random_() % 20 == 0) start_sync();
        if (random_() % 60 == 0) restart();
    }
    complete();
    ASSERT_FALSE(HasFatalFailure()) << "step " << step;
  }
  const auto idle = [&] {
    return !syncing_ && std::ranges::all_of(ios_, [](const auto& io) { return io == nullptr; });
  };
  for (int round = 0; round < 100'000 && !idle(); round++) {
    execute();
    reply();
    complete();
  }
  ASSERT_TRUE(idle());
  start_sync();
  for (int round = 0; round < 100'000 && !idle(); round++) {
    execute();
    reply();
    complete();
    ASSERT_FALSE(HasFatalFailure());
  }
  ASSERT_TRUE(idle());
  truth_.resize(size_written_);
  EXPECT_TRUE(stable_ == truth_) << "what is stable is not what was written";
  EXPECT_GT(reads_, 1000u);
  EXPECT_GT(writes_, 1000u);
  EXPECT_GT(restarts_, 20u);
  EXPECT_GT(statistics_->resent_writes, 100u);
  EXPECT_EQ(statistics_->lost_writes, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SessionModel, ::testing::Range<uint64_t>(1, 33));

}  // namespace
}  // namespace nfsrdma::testing
