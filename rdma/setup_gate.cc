// SPDX-License-Identifier: GPL-2.0-or-later
#include "setup_gate.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <utility>

namespace nfsrdma {
namespace {

// Servers that are told apart; more of them share the leases of others.
constexpr uint32_t kServers = 63;

struct Leases {
  std::atomic<uint64_t> server{0};  // hash of the name; 0: nobody's yet
  std::array<std::atomic<uint64_t>, kSetupsAtOnce> end_ns{};
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");

struct SharedPage {
  std::array<Leases, kServers> servers{};
};

// Zeroed memory is a page without leases. Should there be no memory to share, each process counts
// for itself.
SharedPage* map_page() {
  void* memory =
      mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) return static_cast<SharedPage*>(memory);
  static SharedPage own;
  return &own;
}

// At load, before any fork().
SharedPage* const page = map_page();

uint64_t hash(std::string_view text) {  // FNV-1a
  uint64_t value = 0xcbf29ce484222325u;
  for (const char letter : text) value = (value ^ static_cast<uint8_t>(letter)) * 0x100000001b3u;
  return value == 0 ? 1 : value;
}

uint32_t place_of(std::string_view server) {
  const uint64_t name = hash(server);
  const auto start = static_cast<uint32_t>(name % kServers);
  for (uint32_t step = 0; step < kServers; ++step) {
    const uint32_t place = (start + step) % kServers;
    uint64_t owner = page->servers[place].server.load();
    if (owner == 0 && page->servers[place].server.compare_exchange_strong(owner, name))
      return place;
    if (owner == name) return place;
  }
  return start;
}

}  // namespace

SetupLease& SetupLease::operator=(SetupLease&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  server_ = other.server_;
  place_ = other.place_;
  token_ = std::exchange(other.token_, 0);
  return *this;
}

void SetupLease::give_back() {
  if (token_ == 0) return;
  uint64_t mine = token_;
  // Another's token stands there when this lease had run out.
  page->servers[server_].end_ns[place_].compare_exchange_strong(mine, 0);
  token_ = 0;
}

SetupLease try_setup(std::string_view server, uint64_t now_ns, uint64_t lease_ns) {
  SetupLease lease;
  lease.server_ = place_of(server);
  const uint64_t end = now_ns + lease_ns;
  for (uint32_t place = 0; place < kSetupsAtOnce; ++place) {
    std::atomic<uint64_t>& there = page->servers[lease.server_].end_ns[place];
    uint64_t held_until = there.load();
    if (held_until > now_ns) continue;
    if (!there.compare_exchange_strong(held_until, end)) continue;
    lease.place_ = place;
    lease.token_ = end;
    break;
  }
  return lease;
}

}  // namespace nfsrdma
