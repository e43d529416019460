// SPDX-License-Identifier: GPL-2.0-or-later
// At most four connection set-ups at once per server, over all jobs, threads and processes that
// come from one loading of the library: a server's listener has a short backlog (10 on Linux nfsd)
// and some drop what exceeds it without a word.
//
// The leases live in a shared anonymous mapping made when the library is loaded, so fork() and
// threads share it. A lease ends by itself after its time, so a process that dies with one blocks
// nobody. No lock; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace nfsrdma {

constexpr uint32_t kSetupsAtOnce = 4;

/// A leave to set up one connection; gives itself back.
class SetupLease {
 public:
  SetupLease() = default;
  SetupLease(SetupLease&& other) noexcept { *this = std::move(other); }
  SetupLease& operator=(SetupLease&& other) noexcept;
  ~SetupLease() { give_back(); }

  [[nodiscard]] bool held() const { return token_ != 0; }
  void give_back();

 private:
  friend SetupLease try_setup(std::string_view server, uint64_t now_ns, uint64_t lease_ns);
  uint32_t server_ = 0;
  uint32_t place_ = 0;
  uint64_t token_ = 0;  // the end of the lease, as the shared page has it
};

/// A lease for a set-up to `server` ("address:port") that lasts until `now_ns` + `lease_ns` at
/// most; not held() when four are out. Times as now_ns() of transport.h.
SetupLease try_setup(std::string_view server, uint64_t now_ns, uint64_t lease_ns);

}  // namespace nfsrdma
