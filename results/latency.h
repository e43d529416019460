// SPDX-License-Identifier: GPL-2.0-or-later
// A latency distribution as fio and stats_json write it, and what can be said of several together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace nfsrdma::results {

/// Times in nanoseconds. `bins` (upper value of a histogram bin to its count) is there with
/// fio's json+ and with stats_json; `percentiles` (50, 99, 99.9, ... to value) with json too.
struct Latency {
  uint64_t count = 0;
  double mean_ns = 0;
  double min_ns = 0;
  double max_ns = 0;
  std::map<double, double> percentiles;
  std::map<uint64_t, uint64_t> bins;

  /// The p-th percentile, 0 < p <= 100. Read from the bins by fio's rule (the first bin at which
  /// the running count reaches p percent), else from the list; none if neither holds it.
  std::optional<double> percentile(double p) const;
  bool has_percentiles() const { return !bins.empty() || !percentiles.empty(); }

  /// Adds another distribution. Percentiles cannot be averaged: they survive only where both
  /// sides have bins, or where one side is empty.
  void merge(const Latency& other);
};

}  // namespace nfsrdma::results
