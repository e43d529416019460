// SPDX-License-Identifier: GPL-2.0-or-later
#include "call_log.h"

#include <cerrno>
#include <cinttypes>
#include <cstring>

#include "faults.h"

namespace nfsrdma::memd {

Result<std::unique_ptr<CallLog>> CallLog::open(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    return fail(errno, "cannot write the call log " + path + ": " + std::strerror(errno));
  }
  return std::unique_ptr<CallLog>(new CallLog(file));
}

CallLog::CallLog(std::FILE* file) : file_(file), ring_(kRemembered) {}

CallLog::~CallLog() {
  std::fclose(file_);
}

bool CallLog::seen_before(const CallRecord& record) {
  const uint64_t key =
      (uint64_t{record.xid} << 32) | (uint64_t{record.peer_port} << 8) | (record.proc_index + 1);
  const bool seen = remembered_[key]++ > 0;
  uint64_t& oldest = ring_[ring_next_];
  ring_next_ = (ring_next_ + 1) % kRemembered;
  if (oldest != 0 && --remembered_[oldest] == 0) remembered_.erase(oldest);
  oldest = key;
  return seen;
}

void CallLog::add(const CallRecord& record) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const bool duplicate = seen_before(record);
  if (duplicate) ++duplicates_;
  if (record.proc_index == static_cast<uint32_t>(Proc::kRead)) return;
  const std::string proc(proc_name(record.proc_index));
  std::string name(record.name.substr(0, kPathMax));
  for (char& byte : name) {
    if (static_cast<unsigned char>(byte) < 0x20) byte = '?';  // a line stays a line
  }
  std::fprintf(file_,
               "xid=%08" PRIx32 " port=%u proc=%s offset=%" PRIu64 " count=%" PRIu32
               " stable=%" PRIu32 " dup=%d name=%s\n",
               record.xid, record.peer_port, proc.c_str(), record.offset, record.count,
               record.stable, duplicate ? 1 : 0, name.c_str());
  std::fflush(file_);  // a test looks while the server runs
}

uint64_t CallLog::duplicates() {
  const std::lock_guard<std::mutex> guard(mutex_);
  return duplicates_;
}

}  // namespace nfsrdma::memd
