// SPDX-License-Identifier: GPL-2.0-or-later
// Nothing is allocated per I/O: counted by the operator new of this executable.
#include <cstdlib>
#include <new>

#include "session_peer.h"

namespace {
thread_local uint64_t allocations = 0;
}  // namespace

// Not inlined: g++ would take each free() for one of memory that new had given.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace nfsrdma::testing {
namespace {

class SessionAllocation : public SessionTest {
 protected:
  static constexpr uint32_t kDepth = 32;

  template <typename Start>
  uint64_t count(uint32_t ios, Start start) {
    const uint64_t before = allocations;
    for (uint32_t done = 0; done < ios; done += kDepth) {
      for (uint32_t i = 0; i < kDepth; i++) {
        EXPECT_TRUE(start(done + i));
        session_->commit();
      }
      EXPECT_EQ(session_->wait(kDepth, now_ns() + 5'000'000'000), kDepth);
      while (session_->ready() != 0) EXPECT_EQ(session_->take().error, 0);
    }
    return allocations - before;
  }

  void serve() {
    held_[0]->answer = [](const WireCall& call) {
      if (call.procedure == kRead) return answer_read(call, std::string_view("0123456789abcdef"));
      if (call.procedure == kWrite) return answer_write(call, call.count, call.stable, 9);
      answer_commit(call, 9);
    };
  }

  std::vector<std::byte> buffer_ = std::vector<std::byte>(kDepth * 16);
  Bytes block(uint32_t i) { return Bytes(buffer_).subspan(i % kDepth * 16, 16); }
};

TEST_F(SessionAllocation, TheCounterCounts) {
  const uint64_t before = allocations;
  const auto one = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ(allocations - before, 2u);
}

TEST_F(SessionAllocation, NoneWithReadsWritesKeptWritesAndSyncs) {
  SessionConfig config = this->config(kDepth);
  config.uncommitted_max = 4096;
  open(config, kDepth / 2);  // half of the I/Os wait for a slot
  serve();
  const auto read = [&](uint32_t i) { return session_->read(nullptr, file_, i * 16, block(i)); };
  const auto write = [&](uint32_t i) {
    return session_->write(nullptr, file_, i * 16, block(i), kFileSync, false);
  };
  const auto keep = [&](uint32_t i) {
    return session_->write(nullptr, file_, i * 7, block(i), kUnstable, false);
  };
  const auto direct = [&](uint32_t i) {
    return session_->write(nullptr, file_, i * 16, block(i), kUnstable, true);
  };
  const auto sync = [&](uint32_t) { return session_->sync(nullptr, file_); };
  for (int round = 0; round < 2; round++) {
    const bool warm = round == 1;
    const uint32_t ios = warm ? 1024 : 128;
    const uint64_t reads = count(ios, read), writes = count(ios, write), kept = count(ios, keep),
                   directs = count(ios, direct), syncs = count(ios, sync);
    if (!warm) continue;
    EXPECT_EQ(reads, 0u);
    EXPECT_EQ(writes, 0u);
    EXPECT_EQ(kept, 0u);
    EXPECT_EQ(directs, 0u);
    EXPECT_EQ(syncs, 0u);
  }
  EXPECT_GE(statistics_->of(StatProcedure::kCommit).ops, 1000u);
}

}  // namespace
}  // namespace nfsrdma::testing
