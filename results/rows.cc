// SPDX-License-Identifier: GPL-2.0-or-later
#include "rows.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace nfsrdma::results {
namespace {

constexpr std::array<Direction, kDirections> kAll{Direction::kRead, Direction::kWrite,
                                                  Direction::kMixed, Direction::kSync};

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// "external:/x/libnfsrdma.so" and "libnfsrdma.so" are the same engine: "libnfsrdma.so".
std::string engine_name(const FioJob& job) {
  std::string engine = job.option("ioengine", "psync");
  if (engine.starts_with("external:")) engine = engine.substr(9);
  return base_name(engine);
}

void name_transport(const FioJob& job, JobRow& row) {
  const std::string engine = engine_name(job);
  if (!engine.starts_with("libnfsrdma")) {
    row.transport = engine;
    return;
  }
  row.transport = job.option("transport", "tcp");
  if (row.transport == "rdma") row.fabric = job.option("fabric", "auto");
}

/// The processes behind the entries. fio does not tell whether it reported by group: then one
/// entry stands for numjobs processes, else there are numjobs entries; on each host.
uint64_t count_processes(const std::vector<const FioJob*>& entries) {
  std::map<std::string, uint64_t> entries_on;
  for (const FioJob* job : entries) entries_on[job->host]++;
  const uint64_t numjobs =
      std::strtoull(entries.front()->option("numjobs", "1").c_str(), nullptr, 10);
  uint64_t sum = 0;
  for (const auto& [host, count] : entries_on) sum += std::max(count, numjobs);
  return sum;
}

/// Entries of the same job: name and group; transport too, since one name may run on both.
std::string key_of(const FioJob& job) {
  JobRow names;
  name_transport(job, names);
  return job.name + "\n" + std::to_string(job.group_id) + "\n" + names.transport_name();
}

std::optional<double> known(bool is_known, double value) {
  return is_known ? std::optional<double>(value) : std::nullopt;
}

/// fio gives CPU time as a percentage of job_runtime, which is summed over a group's processes
/// just as the CPU time is; so the product is the CPU time of all of them.
void sum_cpu(const std::vector<const FioJob*>& entries, JobRow& row,
             std::vector<std::string>& notes) {
  double usr_us = 0;
  double sys_us = 0;
  uint64_t ios = 0;
  for (const FioJob* job : entries) {
    usr_us += job->usr_cpu_percent / 100 * static_cast<double>(job->job_runtime_ms) * 1000;
    sys_us += job->sys_cpu_percent / 100 * static_cast<double>(job->job_runtime_ms) * 1000;
    for (const Direction d : {Direction::kRead, Direction::kWrite, Direction::kMixed}) {
      ios += (*job)[d].ios;
    }
  }
  // fio rounds user and system time down to a millisecond each, for each process.
  const double rounding_us = 2000.0 * static_cast<double>(row.numjobs);
  const bool enough = usr_us + sys_us >= 10 * rounding_us;
  if (!enough) {
    notes.push_back(row.file + ": job '" + row.job +
                    "' is too short to tell its CPU time per operation");
  }
  const double n = static_cast<double>(ios);
  row.cpu_us_per_op = known(enough, (usr_us + sys_us) / n);
  row.usr_us_per_op = known(enough, usr_us / n);
  row.sys_us_per_op = known(enough, sys_us / n);
}

void sum_direction(const std::vector<const FioJob*>& entries, Direction d, JobRow& row,
                   std::vector<std::string>& notes) {
  OperationRow sum;
  sum.direction = d;
  for (const FioJob* job : entries) {
    const DirectionStats& stats = (*job)[d];
    sum.ios += stats.ios;
    sum.bytes += stats.bytes;
    sum.runtime_ms = std::max(sum.runtime_ms, stats.runtime_ms);
    sum.latency.merge(row.total_latency ? stats.lat : stats.clat);
  }
  if (sum.ios == 0 || sum.runtime_ms == 0) return;
  sum.iops = static_cast<double>(sum.ios) * 1000 / static_cast<double>(sum.runtime_ms);
  sum.bytes_per_s = static_cast<double>(sum.bytes) * 1000 / static_cast<double>(sum.runtime_ms);
  if (entries.size() > 1 && !sum.latency.has_percentiles()) {
    notes.push_back(row.file + ": job '" + row.job + "' has " + std::to_string(entries.size()) +
                    " entries, whose percentiles cannot be put together without bins: use "
                    "group_reporting or --output-format=json+");
  }
  row.operations.push_back(std::move(sum));
}

Result<JobRow> sum_entries(const FioRun& run, const std::vector<const FioJob*>& entries,
                           std::vector<std::string>& notes) {
  const FioJob& first = *entries.front();
  JobRow row;
  row.file = run.file;
  row.fio_version = run.fio_version;
  row.timestamp_ms = run.timestamp_ms;
  row.job = first.name;
  row.options = first.options;
  name_transport(first, row);
  row.total_latency = true;
  row.numjobs = count_processes(entries);
  for (const FioJob* job : entries) {
    if (job->options != first.options) {
      return fail(EINVAL, run.file + ": has jobs of the same name '" + first.name +
                              "' with unlike options: give them names of their own");
    }
    for (const Direction d : {Direction::kRead, Direction::kWrite, Direction::kMixed}) {
      if ((*job)[d].ios > 0 && !(*job)[d].lat.has_percentiles()) row.total_latency = false;
    }
  }
  for (const Direction d : kAll) sum_direction(entries, d, row, notes);
  sum_cpu(entries, row, notes);
  return row;
}

const char* procedure_of(Direction direction) {
  switch (direction) {
    case Direction::kRead:
      return "READ";
    case Direction::kWrite:
      return "WRITE";
    case Direction::kSync:
      return "COMMIT";
    case Direction::kMixed:
      break;
  }
  return "";
}

bool carried_by(const JobRow& row, const TransportStats& stats) {
  if (row.transport != stats.transport) return false;
  return row.transport != "rdma" || row.fabric == "auto" || row.fabric == stats.fabric;
}

void add_transport(JobRow& row, const TransportStats& stats) {
  if (row.transport == "rdma") row.fabric = stats.fabric;
  row.retransmissions = stats.retransmissions();
  for (OperationRow& operation : row.operations) {
    const auto it = stats.procedures.find(procedure_of(operation.direction));
    if (it != stats.procedures.end()) operation.procedure = it->second;
  }
}

}  // namespace

std::string JobRow::transport_name() const {
  return fabric.empty() ? transport : transport + "/" + fabric;
}

const OperationRow* JobRow::find(Direction direction) const {
  for (const OperationRow& operation : operations) {
    if (operation.direction == direction) return &operation;
  }
  return nullptr;
}

Result<std::vector<JobRow>> make_rows(const FioRun& run, std::vector<std::string>& notes) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const FioJob*>> groups;
  for (const FioJob& job : run.jobs) {
    std::vector<const FioJob*>& group = groups[key_of(job)];
    if (group.empty()) order.push_back(key_of(job));
    group.push_back(&job);
  }
  std::vector<JobRow> rows;
  for (const std::string& key : order) {
    auto row = sum_entries(run, groups[key], notes);
    if (!row) return tl::unexpected(row.error());
    rows.push_back(std::move(*row));
  }
  return rows;
}

void add_stats(std::vector<JobRow>& rows, const StatsFile& stats, std::vector<std::string>& notes) {
  for (const TransportStats& transport : stats.transports) {
    std::vector<JobRow*> carried;
    for (JobRow& row : rows) {
      if (carried_by(row, transport)) carried.push_back(&row);
    }
    if (carried.size() == 1) add_transport(*carried.front(), transport);
    const std::string name = transport.fabric.empty()
                                 ? transport.transport
                                 : transport.transport + "/" + transport.fabric;
    if (carried.empty()) notes.push_back(stats.file + ": no job of the fio run used " + name);
    if (carried.size() > 1) {
      notes.push_back(stats.file + ": " + std::to_string(carried.size()) + " jobs share " + name +
                      ": queue, rtt, exe and retransmissions are sums over them and not shown");
    }
  }
}

}  // namespace nfsrdma::results
