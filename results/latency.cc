// SPDX-License-Identifier: GPL-2.0-or-later
#include "latency.h"

#include <algorithm>
#include <cmath>

namespace nfsrdma::results {

std::optional<double> Latency::percentile(double p) const {
  if (!bins.empty()) {
    uint64_t total = 0;
    for (const auto& [value, n] : bins) total += n;
    const long double wanted = static_cast<long double>(p) / 100.0L * total;
    uint64_t seen = 0;
    for (const auto& [value, n] : bins) {
      seen += n;
      if (static_cast<long double>(seen) >= wanted) return static_cast<double>(value);
    }
  }
  // fio prints six decimals, so 99.9 comes back as a slightly different double.
  for (const auto& [listed, value] : percentiles) {
    if (std::fabs(listed - p) < 1e-6) return value;
  }
  return std::nullopt;
}

void Latency::merge(const Latency& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  const double total = static_cast<double>(count) + static_cast<double>(other.count);
  mean_ns = (mean_ns * count + other.mean_ns * other.count) / total;
  min_ns = std::min(min_ns, other.min_ns);
  max_ns = std::max(max_ns, other.max_ns);
  count += other.count;
  percentiles.clear();
  if (bins.empty() || other.bins.empty()) {
    bins.clear();
    return;
  }
  for (const auto& [value, n] : other.bins) bins[value] += n;
}

}  // namespace nfsrdma::results
