// SPDX-License-Identifier: GPL-2.0-or-later
#include "run_statistics.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>

#include "engine_api.h"

namespace nfsrdma {
namespace {

constexpr size_t kSaidMax = 64;

struct SharedRun {
  std::atomic<bool> told;
  std::atomic<uint64_t> said[kSaidMax];  // hashes of lines, 0: free
  JobRecord jobs[kJobsMax];
};

SharedRun* run = nullptr;

// Untouched pages cost nothing: a run of 16 jobs uses 16 records.
__attribute__((constructor)) void map_run() {
  void* memory = mmap(nullptr, sizeof(SharedRun), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) run = static_cast<SharedRun*>(memory);
}

void copy_text(char* to, size_t size, const std::string& from) {
  std::snprintf(to, size, "%s", from.c_str());
}

int write_file(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return errno;
  size_t done = 0;
  int error = 0;
  while (done < text.size() && error == 0) {
    const ssize_t wrote = write(fd, text.data() + done, text.size() - done);
    if (wrote > 0)
      done += static_cast<size_t>(wrote);
    else if (wrote < 0 && errno != EINTR)
      error = errno;
  }
  if (close(fd) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

JobRecord* job_record(uint32_t number) {
  if (run == nullptr || number == 0 || number > kJobsMax) return nullptr;
  return &run->jobs[number - 1];
}

bool first_to_say(const std::string& text) {
  if (run == nullptr) return true;
  const uint64_t hash = std::hash<std::string>{}(text) | 1;
  for (auto& said : run->said) {
    uint64_t found = 0;
    if (said.compare_exchange_strong(found, hash)) return true;
    if (found == hash) return false;
  }
  return true;
}

void describe_transport(JobRecord* record, const TransportInfo& info, uint32_t connections) {
  copy_text(record->transport, sizeof record->transport, info.transport);
  copy_text(record->fabric, sizeof record->fabric, info.fabric);
  copy_text(record->server, sizeof record->server, info.server);
  std::string lines;
  for (const auto& [name, value] : info.negotiated) lines += name + "=" + value + "\n";
  copy_text(record->negotiated, sizeof record->negotiated, lines);
  record->connections = connections;
}

}  // namespace nfsrdma

using nfsrdma::JobState;

extern "C" void nfsrdma_job_ended(unsigned number) {
  if (auto* record = nfsrdma::job_record(number)) record->state = JobState::kEnded;
}

extern "C" bool nfsrdma_job_has_ended(unsigned number) {
  const auto* record = nfsrdma::job_record(number);
  return record != nullptr && record->state == JobState::kEnded;
}

extern "C" void nfsrdma_run_ended() {
  if (nfsrdma::run == nullptr || nfsrdma::run->told.exchange(true)) return;
  nfsrdma_log_summary(nfsrdma::summary_text().c_str());
  for (const auto& job : nfsrdma::run->jobs) {
    if (job.state == JobState::kUnused || job.stats_json[0] == '\0') continue;
    const int error = nfsrdma::write_file(job.stats_json, nfsrdma::statistics_json());
    if (error != 0)
      nfsrdma_log_error(("stats_json=" + std::string(job.stats_json) +
                         " can't be written: " + std::strerror(error))
                            .c_str());
    break;
  }
}
