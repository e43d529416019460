// SPDX-License-Identifier: GPL-2.0-or-later
// Did a change cost something? Two sets of runs, metric by metric.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "inputs.h"
#include "result.h"
#include "statistics.h"

namespace nfsrdma::results {

struct CompareOptions {
  double alpha = 0.05;
  double confidence = 0.95;
  /// Metrics to judge, with the change in percent from which a worsening counts.
  std::map<std::string, double> thresholds{{"iops", 3}, {"p50", 5}, {"p99", 10}, {"cpu", 5}};
  /// Properties in which the runs may differ (see property_names()).
  std::set<std::string> allowed;
};

/// The metrics that can be judged, and whether more of it is worse.
const std::map<std::string, bool>& metric_names();
/// What must be the same in all runs: bs, iodepth, numjobs, transport, server, fio, ...
const std::vector<std::string>& property_names();

enum class Verdict {
  kUnchanged,  ///< no change, or one below the threshold, and a larger one would have been seen
  kImproved,
  kRegression,  ///< significant, and beyond the threshold
  kNoisy,       ///< a worsening beyond the threshold can be neither shown nor ruled out
  kTooFew       ///< no result could be significant with so few runs
};
const char* name_of(Verdict verdict);

/// The values of one metric of one job in all runs of a set.
struct Samples {
  std::string job;        ///< "E1"
  std::string transport;  ///< "rdma/iwarp"
  std::string metric;     ///< "iops"
  std::string label;      ///< "read IOPS"
  std::vector<double> a;
  std::vector<double> b;
};

struct Judgement {
  Samples samples;
  double threshold_percent = 0;
  Interval ratio;         ///< b to a
  double p_adjusted = 1;  ///< by Holm, over all judgements of the comparison
  Verdict verdict = Verdict::kUnchanged;
};

struct Comparison {
  std::string name_a;
  std::string name_b;
  std::vector<Judgement> judgements;
  std::vector<std::string> notes;
  /// Runs a set that would be enough for a significant result; 0 if there are enough.
  size_t runs_needed = 0;

  size_t count(Verdict verdict) const;
  /// 0 no regression, 1 regression, 3 too few or too noisy to tell.
  int exit_status() const;
  std::string conclusion() const;
};

/// Pairs the jobs of both sets. Fails, naming a file, if a job is missing in one, if runs differ
/// in a property, if a job ran once only, or if one run is there twice.
Result<std::vector<Samples>> collect_samples(const Inputs& a, const Inputs& b,
                                             const CompareOptions& options,
                                             std::vector<std::string>& notes);

/// Samples must not be empty and hold positive values only.
Comparison judge(const std::vector<Samples>& samples, const CompareOptions& options);

/// Splits one set into two, run by run in the order of time, so that both saw the same weather.
std::pair<Inputs, Inputs> split_in_two(const Inputs& all);

std::string compare_text(const Comparison& comparison);
std::string compare_markdown(const Comparison& comparison);
std::string compare_junit(const Comparison& comparison);

}  // namespace nfsrdma::results
