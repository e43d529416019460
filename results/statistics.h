// SPDX-License-Identifier: GPL-2.0-or-later
// Whether two samples differ, and by how much: rank statistics, which ask nothing of the shape of
// the distribution and are not moved by one run that another process disturbed.
#pragma once

#include <cstddef>
#include <vector>

namespace nfsrdma::results {

/// 0 for an empty sample.
double median(std::vector<double> values);

struct MannWhitney {
  double u = 0;  ///< pairs (a, b) with a > b, ties as half
  double p = 1;  ///< two-sided
  bool exact = false;
};

/// Two-sided test that neither sample tends to larger values. Exact if there are no ties and both
/// samples are smaller than 50; else the normal approximation with correction for ties and
/// continuity. Samples must not be empty.
MannWhitney mann_whitney(const std::vector<double>& a, const std::vector<double>& b);

/// The smallest p that mann_whitney can give for samples of these sizes.
double smallest_p(size_t n, size_t m);

struct Interval {
  double estimate = 1;
  double low = 1;
  double high = 1;
};

/// By what factor b is larger than a: the Hodges-Lehmann estimate (the median of all ratios b/a)
/// and the confidence interval that belongs to the Mann-Whitney test (the factors that the test
/// would not reject). All values must be positive. Where the samples are too small for the
/// confidence asked for, the interval is the widest there is: smallest to largest ratio.
Interval ratio_interval(const std::vector<double>& a, const std::vector<double>& b,
                        double confidence);

/// Holm's correction: p values adjusted so that, rejecting each one below alpha, the chance of any
/// false rejection stays below alpha. Same order as given.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace nfsrdma::results
