// SPDX-License-Identifier: GPL-2.0-or-later
// --log-calls: what was really asked, a line a call, for tests.
//
// A line: `xid=HEX port=N proc=NAME offset=N count=N stable=N dup=0|1 name=TEXT`; fields that the
// procedure lacks are 0 or empty. READ calls get no line but take part in the count of duplicates
// (the same xid, port and procedure seen before, among the last kRemembered calls).
//
// Threads: any; a mutex guards it. Only servers that log pay for it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "result.h"

namespace nfsrdma::memd {

struct CallRecord {
  uint32_t xid = 0;
  uint16_t peer_port = 0;
  uint32_t proc_index = 0;
  uint64_t offset = 0;
  uint32_t count = 0;
  uint32_t stable = 0;
  std::string_view name;
};

class CallLog {
 public:
  static Result<std::unique_ptr<CallLog>> open(const std::string& path);
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  void add(const CallRecord& record);
  [[nodiscard]] uint64_t duplicates();

 private:
  explicit CallLog(std::FILE* file);
  bool seen_before(const CallRecord& record);

  static constexpr size_t kRemembered = 1u << 16;

  std::mutex mutex_;
  std::FILE* file_;
  uint64_t duplicates_ = 0;
  std::vector<uint64_t> ring_;
  size_t ring_next_ = 0;
  std::unordered_map<uint64_t, uint32_t> remembered_;
};

}  // namespace nfsrdma::memd
