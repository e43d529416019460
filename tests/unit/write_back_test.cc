// SPDX-License-Identifier: GPL-2.0-or-later
// Kept data against a model of plain bytes: what the file must hold, and what a server has.
#include "write_back.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

namespace nfsrdma {
namespace {

using Refusal = WriteBack::Refusal;

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes;
  for (const char c : text) bytes.push_back(std::byte(c));
  return bytes;
}

// Admits and fills in.
Extent* keep(WriteBack& pool, KeptFile& file, uint64_t offset, std::string_view text) {
  const auto admission = pool.admit(file, offset, static_cast<uint32_t>(text.size()));
  EXPECT_EQ(admission.refusal, Refusal::kNone) << text;
  std::ranges::copy(bytes_of(text), admission.data.begin());
  return admission.extent;
}

std::string over(WriteBack& pool, const KeptFile& file, uint64_t offset, std::string text) {
  auto bytes = bytes_of(text);
  pool.overlay(file, offset, bytes);
  for (size_t i = 0; i < text.size(); i++) text[i] = std::to_integer<char>(bytes[i]);
  return text;
}

TEST(WriteBack, NewerBytesReplaceOlderOnes) {
  WriteBack pool(1024, 16);
  KeptFile file = pool.new_file();
  pool.written(file, keep(pool, file, 10, "aaaaaaaa"), 1);
  pool.written(file, keep(pool, file, 12, "bb"), 1);
  pool.written(file, keep(pool, file, 8, "ccc"), 1);
  pool.written(file, keep(pool, file, 17, "dd"), 1);
  EXPECT_EQ(over(pool, file, 5, "..............."), "...cccabbaaadd.");
}

TEST(WriteBack, AWriteOverOneOnItsWayIsRefused) {
  WriteBack pool(1024, 16);
  KeptFile file = pool.new_file();
  Extent* first = keep(pool, file, 100, "0123456789");
  EXPECT_EQ(pool.admit(file, 109, 4).refusal, Refusal::kOverlap);
  EXPECT_EQ(pool.admit(file, 95, 6).refusal, Refusal::kOverlap);
  EXPECT_EQ(pool.admit(file, 103, 2).refusal, Refusal::kOverlap);
  EXPECT_EQ(pool.admit(file, 90, 50).refusal, Refusal::kOverlap);
  keep(pool, file, 110, "next");
  keep(pool, file, 96, "prev");
  pool.written(file, first, 7);
  EXPECT_EQ(pool.admit(file, 103, 2).refusal, Refusal::kNone);
  EXPECT_EQ(over(pool, file, 96, "xxxxxxx"), "prev012");
}

TEST(WriteBack, ACommitWithTheVerifierForgetsWhatWasWrittenBefore) {
  WriteBack pool(1024, 16);
  KeptFile file = pool.new_file();
  pool.written(file, keep(pool, file, 0, "aaaa"), 7);
  const uint64_t stamp = pool.stamp();
  pool.written(file, keep(pool, file, 4, "bbbb"), 7);  // after the COMMIT was sent
  Extent* sending = keep(pool, file, 8, "cccc");
  EXPECT_EQ(pool.committed(file, stamp, 7), 0u);
  EXPECT_EQ(over(pool, file, 0, "............"), "....bbbbcccc");
  EXPECT_EQ(file.kept_bytes, 4u);
  pool.written(file, sending, 7);
  EXPECT_EQ(pool.committed(file, pool.stamp(), 7), 0u);
  EXPECT_EQ(pool.used(), 0u);
  EXPECT_TRUE(file.extents.empty());
}

TEST(WriteBack, AnotherVerifierMarksWhatIsLost) {
  WriteBack pool(1024, 16);
  KeptFile file = pool.new_file();
  pool.written(file, keep(pool, file, 0, "aaaa"), 7);
  pool.written(file, keep(pool, file, 4, "bbbb"), 8);
  pool.written(file, keep(pool, file, 8, "cccc"), 7);
  EXPECT_EQ(pool.committed(file, pool.stamp(), 8), 2u);
  EXPECT_EQ(file.lost, 2u);
  Extent* one = pool.next_lost(file);
  Extent* two = pool.next_lost(file);
  ASSERT_TRUE(one != nullptr && two != nullptr);
  EXPECT_EQ(pool.next_lost(file), nullptr);
  EXPECT_EQ(pool.admit(file, 0, 2).refusal, Refusal::kOverlap) << "a resend is on its way";
  EXPECT_EQ(over(pool, file, 0, "............"), "aaaa....cccc");
  pool.written(file, one, 8);
  pool.lose(file, two);
  EXPECT_EQ(pool.next_lost(file), two);
  pool.written(file, two, 8);
  EXPECT_EQ(file.lost, 0u);
  EXPECT_EQ(pool.committed(file, pool.stamp(), 8), 0u);
  EXPECT_EQ(pool.used(), 0u);
}

TEST(WriteBack, AResendCarriesCurrentBytesOnly) {
  WriteBack pool(1024, 16);
  KeptFile file = pool.new_file();
  pool.written(file, keep(pool, file, 0, "oooooooo"), 7);
  EXPECT_EQ(pool.committed(file, pool.stamp(), 8), 1u);
  pool.written(file, keep(pool, file, 2, "nnn"), 8);
  std::string sent;
  while (Extent* extent = pool.next_lost(file)) {
    sent += std::to_string(extent->start) + ":";
    for (const std::byte b : pool.data(*extent)) sent += std::to_integer<char>(b);
    sent += " ";
  }
  EXPECT_EQ(sent, "0:oo 5:ooo ");
}

TEST(WriteBack, FullIsToldAndRoomComesBack) {
  WriteBack pool(100, 8);
  KeptFile file = pool.new_file();
  Extent* a = keep(pool, file, 0, std::string(40, 'a'));
  Extent* b = keep(pool, file, 100, std::string(40, 'b'));
  EXPECT_EQ(pool.admit(file, 200, 40).refusal, Refusal::kFull);
  pool.forget(file, b);
  EXPECT_EQ(pool.admit(file, 200, 40).refusal, Refusal::kFull) << "space comes back in order";
  pool.forget(file, a);
  EXPECT_EQ(pool.used(), 0u);
  keep(pool, file, 200, std::string(50, 'c'));
}

TEST(WriteBack, ExtentsAreBounded) {
  WriteBack pool(1 << 20, 4);
  KeptFile file = pool.new_file();
  for (uint64_t i = 0; i < 4; i++) pool.written(file, keep(pool, file, i * 10, "x"), 1);
  EXPECT_EQ(pool.admit(file, 50, 1).refusal, Refusal::kFull);
  EXPECT_EQ(pool.committed(file, pool.stamp(), 1), 0u);
  keep(pool, file, 50, "y");
}

TEST(WriteBack, DropLeavesWhatIsOnItsWay) {
  WriteBack pool(1024, 16);
  KeptFile file = pool.new_file();
  pool.written(file, keep(pool, file, 0, "aaaa"), 1);
  Extent* sending = keep(pool, file, 4, "bbbb");
  EXPECT_EQ(pool.drop(file), 1u);
  EXPECT_EQ(over(pool, file, 0, "........"), "....bbbb");
  pool.forget(file, sending);
  EXPECT_EQ(pool.used(), 0u);
}

TEST(WriteBack, TellsWhereKeptDataMakeTheFileEnd) {
  WriteBack pool(1024, 16);
  KeptFile file = pool.new_file();
  keep(pool, file, 100, "0123456789");
  EXPECT_EQ(WriteBack::end_within(file, 0, 50), 50u);  // a hole before them
  EXPECT_EQ(WriteBack::end_within(file, 0, 105), 105u);
  EXPECT_EQ(WriteBack::end_within(file, 0, 500), 110u);
  EXPECT_EQ(WriteBack::end_within(file, 105, 500), 110u);
  EXPECT_EQ(WriteBack::end_within(file, 110, 500), 110u);
}

// Random life of two files, with server restarts, against plain arrays.
class Model {
 public:
  static constexpr uint64_t kFile = 600;
  static constexpr uint32_t kPiece = 60;

  Model() {
    for (auto& each : truth) each.fill(std::byte{0});
    stable = volatile_ = truth;
  }

  void step() {
    const uint32_t f = random_() % 2;
    switch (random_() % 12) {
      case 0:
      case 1:
      case 2:
      case 3:
        return write(f);
      case 4:
      case 5:
      case 6:
      case 7:
        return reply();
      case 8:
        return commit(f);
      case 9:
        return read(f);
      case 10:
        return resend(f);
      default:
        if (random_() % 40 == 0) restart();
    }
  }

  void finish() {
    for (int round = 0; round < 10000; round++) {
      while (!on_the_way_.empty()) reply();
      for (uint32_t f = 0; f < 2; f++) {
        resend(f);
        commit(f);
      }
      if (files[0].extents.empty() && files[1].extents.empty() && on_the_way_.empty()) break;
    }
    EXPECT_EQ(pool.used(), 0u);
    EXPECT_TRUE(stable == truth) << "what the server holds stable is what was written last";
  }

  uint64_t overlaps = 0, fulls = 0, lost = 0, most = 0;

 private:
  struct OnTheWay {
    uint32_t file;
    Extent* extent;
    std::vector<std::byte> data;
    uint64_t offset;
  };

  void write(uint32_t f) {
    const auto length = static_cast<uint32_t>(1 + random_() % kPiece);
    const uint64_t offset = random_() % (kFile - length);
    bool overlap = false;
    for (const OnTheWay& each : on_the_way_)
      overlap |= each.file == f && each.offset < offset + length &&
                 offset < each.offset + each.data.size();
    const auto admission = pool.admit(files[f], offset, length);
    EXPECT_EQ(admission.refusal == Refusal::kOverlap, overlap);
    overlaps += admission.refusal == Refusal::kOverlap;
    fulls += admission.refusal == Refusal::kFull;
    if (admission.refusal != Refusal::kNone) return;
    ASSERT_EQ(admission.data.size(), length);
    for (uint32_t i = 0; i < length; i++)
      truth[f][offset + i] = admission.data[i] = std::byte(random_());
    send(f, admission.extent);
    most = std::max(most, pool.used());
  }

  void send(uint32_t f, Extent* extent) {
    const Bytes data = pool.data(*extent);
    on_the_way_.push_back({f, extent, {data.begin(), data.end()}, extent->start});
  }

  // One WRITE, any of those on their way, is executed and answered.
  void reply() {
    if (on_the_way_.empty()) return;
    const size_t which = random_() % on_the_way_.size();
    const OnTheWay done = on_the_way_[which];
    on_the_way_.erase(on_the_way_.begin() + static_cast<long>(which));
    const Bytes kept = pool.data(*done.extent);
    ASSERT_TRUE(std::ranges::equal(kept, done.data)) << "bytes changed while they were sent";
    std::ranges::copy(done.data, volatile_[done.file].begin() + static_cast<long>(done.offset));
    if (random_() % 16 == 0) {  // the server wrote it FILE_SYNC
      std::ranges::copy(done.data, stable[done.file].begin() + static_cast<long>(done.offset));
      pool.forget(files[done.file], done.extent);
    } else {
      pool.written(files[done.file], done.extent, verifier_);
    }
  }

  void commit(uint32_t f) {
    if (files[f].lost != 0) return;
    stable[f] = volatile_[f];
    lost += pool.committed(files[f], pool.stamp(), verifier_);
  }

  void resend(uint32_t f) {
    while (Extent* extent = pool.next_lost(files[f])) send(f, extent);
  }

  // The server has only what is stable; what is on its way arrives at the new instance.
  void restart() {
    volatile_ = stable;
    ++verifier_;
  }

  void read(uint32_t f) {
    const uint64_t length = 1 + random_() % 100;
    const uint64_t offset = random_() % (kFile - length);
    std::vector<std::byte> data(volatile_[f].begin() + static_cast<long>(offset),
                                volatile_[f].begin() + static_cast<long>(offset + length));
    pool.overlay(files[f], offset, data);
    ASSERT_TRUE(std::equal(data.begin(), data.end(), truth[f].begin() + static_cast<long>(offset)))
        << "READ of " << length << " at " << offset;
  }

  std::mt19937_64 random_{99};

 public:
  WriteBack pool{1000, 40};
  std::array<KeptFile, 2> files{pool.new_file(), pool.new_file()};
  std::array<std::array<std::byte, kFile>, 2> truth;

 private:
  std::array<std::array<std::byte, kFile>, 2> stable, volatile_;
  std::vector<OnTheWay> on_the_way_;
  WriteVerifier verifier_ = 1;
};

TEST(WriteBack, HoldsAgainstAModelOfPlainBytes) {
  Model model;
  for (int step = 0; step < 100'000; step++) {
    model.step();
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "step " << step;
    ASSERT_LE(model.pool.used(), 1000u);
  }
  model.finish();
  EXPECT_GT(model.overlaps, 100u);
  EXPECT_GT(model.fulls, 100u);
  EXPECT_GT(model.lost, 100u);
  EXPECT_GT(model.most, 900u);
}

}  // namespace
}  // namespace nfsrdma
