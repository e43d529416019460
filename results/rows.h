// SPDX-License-Identifier: GPL-2.0-or-later
// The unit of every report: one job on one transport, summed over its processes and hosts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fio_json.h"
#include "stats_json.h"

namespace nfsrdma::results {

/// Times in nanoseconds. An empty optional means that the input does not tell.
struct OperationRow {
  Direction direction = Direction::kRead;
  uint64_t ios = 0;
  uint64_t bytes = 0;
  uint64_t runtime_ms = 0;
  double iops = 0;
  double bytes_per_s = 0;
  Latency latency;
  /// What stats_json says of the procedure, if this job was the only one on its transport.
  std::optional<ProcedureStats> procedure;
};

struct JobRow {
  std::string file;
  std::string fio_version;
  uint64_t timestamp_ms = 0;
  std::string transport;  ///< tcp, rdma; the engine's name where fio ran another engine
  std::string fabric;     ///< verbs, iwarp, auto; empty where there is none
  std::string job;
  std::map<std::string, std::string> options;
  /// Processes or threads summed into this row.
  uint64_t numjobs = 0;
  /// Latencies are fio's total latency (lat_percentiles=1), else completion latency.
  bool total_latency = false;
  /// User and system time of all processes, in microseconds, per read or write.
  std::optional<double> cpu_us_per_op;
  std::optional<double> usr_us_per_op;
  std::optional<double> sys_us_per_op;
  std::optional<uint64_t> retransmissions;
  std::vector<OperationRow> operations;

  std::string transport_name() const;  ///< "rdma/iwarp", "tcp"
  const OperationRow* find(Direction direction) const;
};

/// Sums the entries of a run into rows. Fails, naming the file, where entries of one job have
/// unlike options. `notes` gains a sentence for each figure that had to be left out.
Result<std::vector<JobRow>> make_rows(const FioRun& run, std::vector<std::string>& notes);

/// Adds what a stats_json file tells to the rows of its run. A transport that carried several
/// jobs cannot be divided among them: then `notes` says so.
void add_stats(std::vector<JobRow>& rows, const StatsFile& stats, std::vector<std::string>& notes);

}  // namespace nfsrdma::results
