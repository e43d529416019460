// SPDX-License-Identifier: GPL-2.0-or-later
// Statistics of all jobs of a run, in memory that they share: fio's jobs are processes that end in
// _exit(), or threads, and fio has no hook for the end of a run. The mapping is made when the
// library is loaded, before any job exists; each job writes its own record, without locks.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "statistics.h"
#include "transport.h"

namespace nfsrdma {

enum class JobState : uint32_t { kUnused, kRunning, kEnded };

struct JobRecord {
  std::atomic<JobState> state;
  char transport[8];
  char fabric[8];
  char server[72];
  char negotiated[1024];  ///< "name=value" lines
  char stats_json[1024];
  uint32_t connections;
  uint32_t depth;  ///< iodepth
  SessionStatistics statistics;
};

/// fio's own bound.
constexpr uint32_t kJobsMax = 4096;

/// The record of job `number`, from 1; nullptr when there is none (no memory, or too many jobs).
JobRecord* job_record(uint32_t number);

/// Copies what a session knows of its transport into a record.
void describe_transport(JobRecord* record, const TransportInfo& info, uint32_t connections);

/// False when a job of this run has said the same before: that 16 jobs cannot connect is one line.
bool first_to_say(const std::string& text);

/// Text of the summary over all records in use.
std::string summary_text();
/// stats_json's text.
std::string statistics_json();

}  // namespace nfsrdma
