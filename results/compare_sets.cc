// SPDX-License-Identifier: GPL-2.0-or-later
// Which runs may be compared, and what their samples are.
#include <algorithm>
#include <cerrno>
#include <functional>

#include "compare.h"

namespace nfsrdma::results {
namespace {

constexpr size_t kRunsMax = 1000;

/// A job's rows in the runs of a set; each row points into the set's Inputs.
using JobRuns = std::map<std::string, std::vector<const JobRow*>>;

std::string option_of(const JobRow& row, const std::string& key, const std::string& fallback) {
  const auto it = row.options.find(key);
  return it == row.options.end() ? fallback : it->second;
}

std::string size_of(const JobRow& row, const std::string& key, const std::string& fallback) {
  const std::string text = option_of(row, key, fallback);
  const uint64_t bytes = parse_size(text);
  return bytes == 0 ? text : std::to_string(bytes);
}

/// Host and path: "127.0.0.1/export". An embedded server takes another port each time.
std::string server_of(const JobRow& row) {
  std::string url = option_of(row, "nfs_url", "");
  if (url.starts_with("nfs://")) url = url.substr(6);
  url = url.substr(0, url.find('?'));
  const size_t slash = std::min(url.find('/'), url.size());
  const size_t bracket = url.find(']');
  const size_t colon = url.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon == std::string::npos || colon > slash) return url;
  return url.substr(0, colon) + url.substr(slash);
}

std::string engine_of(const JobRow& row) {
  const std::string engine = option_of(row, "ioengine", "psync");
  const size_t cut = engine.find_last_of("/:");
  return cut == std::string::npos ? engine : engine.substr(cut + 1);
}

struct Property {
  std::string name;
  std::function<std::string(const JobRow&)> value;
};

Property of_option(const std::string& name, const std::string& fallback) {
  return {name, [name, fallback](const JobRow& row) { return option_of(row, name, fallback); }};
}

const std::vector<Property>& properties() {
  static const std::vector<Property> kProperties{
      {"bs", [](const JobRow& row) { return size_of(row, "bs", "4k"); }},
      of_option("iodepth", "1"),
      {"numjobs", [](const JobRow& row) { return std::to_string(row.numjobs); }},
      of_option("rw", "read"),
      of_option("rwmixread", "50"),
      of_option("direct", "0"),
      {"size", [](const JobRow& row) { return size_of(row, "size", ""); }},
      of_option("runtime", ""),
      {"engine", engine_of},
      {"server", server_of},
      {"fio", [](const JobRow& row) { return row.fio_version; }},
      {"latency",
       [](const JobRow& row) { return std::string(row.total_latency ? "total" : "completion"); }},
  };
  return kProperties;
}

std::string key_of(const JobRow& row, const CompareOptions& options) {
  if (options.allowed.contains("transport")) return row.job;
  return row.job + " over " + row.transport_name();
}

Result<JobRuns> collect_runs(const Inputs& set, const CompareOptions& options) {
  JobRuns runs;
  for (const LoadedRun& run : set.runs) {
    std::set<std::string> seen;
    for (const JobRow& row : run.rows) {
      const std::string key = key_of(row, options);
      if (!seen.insert(key).second) {
        return fail(EINVAL,
                    row.file + ": has job '" + key + "' twice: give them names of their own");
      }
      std::vector<const JobRow*>& rows = runs[key];
      for (const JobRow* other : rows) {
        if (other->timestamp_ms == row.timestamp_ms && other->cpu_us_per_op == row.cpu_us_per_op &&
            other->operations.front().latency.mean_ns == row.operations.front().latency.mean_ns) {
          return fail(EINVAL, row.file + ": is the same run as " + other->file);
        }
      }
      rows.push_back(&row);
      if (rows.size() > kRunsMax) {
        return fail(E2BIG, row.file + ": more than " + std::to_string(kRunsMax) + " runs of a job");
      }
    }
  }
  return runs;
}

Result<void> check_alike(const std::string& key, const JobRow& first, const JobRow& row,
                         const CompareOptions& options) {
  for (const Property& property : properties()) {
    if (options.allowed.contains(property.name)) continue;
    const std::string wanted = property.value(first);
    const std::string found = property.value(row);
    if (wanted == found) continue;
    return fail(EINVAL, row.file + ": job '" + key + "' ran with " + property.name + " " +
                            (found.empty() ? "(none)" : found) + ", but in " + first.file +
                            " with " + (wanted.empty() ? "(none)" : wanted) + "; --allow " +
                            property.name + " compares them all the same");
  }
  return {};
}

Result<void> check_jobs(const JobRuns& a, const JobRuns& b, const std::string& where) {
  for (const auto& [key, rows] : a) {
    if (!b.contains(key)) {
      return fail(EINVAL, rows.front()->file + ": job '" + key + "' has no run in the " + where +
                              " set: the sets hold different jobs");
    }
    if (rows.size() == 1) {
      return fail(EINVAL, rows.front()->file + ": is the only run of job '" + key +
                              "' in its set: one sample does not tell how much it varies");
    }
  }
  return {};
}

std::string label_of(const std::string& metric, Direction direction) {
  const std::string op = name_of(direction);
  if (metric == "iops") return op + " IOPS";
  if (metric == "cpu") return "CPU us/op";
  return op + " " + metric + " us";
}

/// A metric's value in one run; none if the run does not tell it. Latencies in microseconds.
std::optional<double> value_of(const JobRow& row, const std::string& metric, Direction direction) {
  if (metric == "cpu") return row.cpu_us_per_op;
  const OperationRow* operation = row.find(direction);
  if (operation == nullptr) return std::nullopt;
  if (metric == "iops") return operation->iops;
  std::optional<double> ns = operation->latency.mean_ns;
  if (metric != "mean") ns = operation->latency.percentile(std::stod(metric.substr(1)));
  return ns ? std::optional<double>(*ns / 1000) : std::nullopt;
}

/// Fills one side of the samples; false, with a note, if a run does not tell the metric.
bool fill(const std::vector<const JobRow*>& rows, const std::string& metric, Direction direction,
          const std::string& key, std::vector<double>& values, std::vector<std::string>& notes) {
  for (const JobRow* row : rows) {
    const auto value = value_of(*row, metric, direction);
    if (!value || !(*value > 0)) {
      notes.push_back(row->file + ": does not tell the " + label_of(metric, direction) +
                      " of job '" + key + "': this metric is not compared");
      return false;
    }
    values.push_back(*value);
  }
  return true;
}

void add_job(const std::string& key, const std::vector<const JobRow*>& a,
             const std::vector<const JobRow*>& b, const CompareOptions& options,
             std::vector<Samples>& all, std::vector<std::string>& notes) {
  const JobRow& first = *a.front();
  const auto add = [&](const std::string& metric, Direction direction) {
    if (!options.thresholds.contains(metric)) return;
    Samples samples;
    samples.job = first.job;
    samples.transport = first.transport_name();
    if (samples.transport != b.front()->transport_name()) {
      samples.transport += " against " + b.front()->transport_name();
    }
    samples.metric = metric;
    samples.label = label_of(metric, direction);
    if (fill(a, metric, direction, key, samples.a, notes) &&
        fill(b, metric, direction, key, samples.b, notes)) {
      all.push_back(std::move(samples));
    }
  };
  for (const OperationRow& operation : first.operations) {
    // How many fsyncs there are follows from the writes; how long they take does not.
    if (operation.direction != Direction::kSync) add("iops", operation.direction);
    for (const char* metric : {"mean", "p50", "p99", "p99.9"}) add(metric, operation.direction);
  }
  add("cpu", Direction::kRead);
}

}  // namespace

const std::vector<std::string>& property_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names{"transport"};
    for (const Property& property : properties()) names.push_back(property.name);
    return names;
  }();
  return kNames;
}

Result<std::vector<Samples>> collect_samples(const Inputs& a, const Inputs& b,
                                             const CompareOptions& options,
                                             std::vector<std::string>& notes) {
  auto runs_a = collect_runs(a, options);
  if (!runs_a) return tl::unexpected(runs_a.error());
  auto runs_b = collect_runs(b, options);
  if (!runs_b) return tl::unexpected(runs_b.error());
  auto checked = check_jobs(*runs_a, *runs_b, "second");
  if (checked) checked = check_jobs(*runs_b, *runs_a, "first");
  if (!checked) return tl::unexpected(checked.error());

  std::vector<Samples> all;
  for (const auto& [key, rows_a] : *runs_a) {
    const std::vector<const JobRow*>& rows_b = runs_b->at(key);
    for (const auto* rows : {&rows_a, &rows_b}) {
      for (const JobRow* row : *rows) {
        auto alike = check_alike(key, *rows_a.front(), *row, options);
        if (!alike) return tl::unexpected(alike.error());
      }
    }
    add_job(key, rows_a, rows_b, options, all, notes);
  }
  if (all.empty()) {
    return fail(EINVAL, a.runs.front().fio.file + ": tells none of the metrics asked for");
  }
  return all;
}

std::pair<Inputs, Inputs> split_in_two(const Inputs& all) {
  std::vector<LoadedRun> runs = all.runs;
  std::stable_sort(runs.begin(), runs.end(), [](const LoadedRun& x, const LoadedRun& y) {
    return x.fio.timestamp_ms < y.fio.timestamp_ms;
  });
  std::pair<Inputs, Inputs> halves;
  // Runs of one job alternate, also where a set keeps its jobs in files of their own.
  std::map<std::string, size_t> seen;
  for (LoadedRun& run : runs) {
    std::string jobs;
    for (const JobRow& row : run.rows) jobs += row.job + " " + row.transport_name() + "\n";
    Inputs& half = seen[jobs]++ % 2 == 0 ? halves.first : halves.second;
    half.runs.push_back(std::move(run));
  }
  return halves;
}

}  // namespace nfsrdma::results
