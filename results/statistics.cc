// SPDX-License-Identifier: GPL-2.0-or-later
#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nfsrdma::results {
namespace {

constexpr size_t kExactBelow = 50;

/// P(Z > z) of the standard normal distribution.
double upper_tail(double z) {
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

/// The z with P(Z > z) = tail, 0 < tail <= 0.5; by bisection, since erfc falls everywhere.
double upper_quantile(double tail) {
  double low = 0;
  double high = 40;
  for (int step = 0; step < 200; step++) {
    const double middle = (low + high) / 2;
    (upper_tail(middle) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// P(U = u) for u = 0 .. n*m under the null hypothesis: the coefficients of the Gaussian binomial
/// (n+m choose n), built by multiplying with (1 - q^(m+i)) / (1 - q^i) and scaled as they grow.
std::vector<double> u_distribution(size_t n, size_t m) {
  const size_t top = n * m;
  std::vector<double> p(top + 1, 0);
  p[0] = 1;
  for (size_t i = 1; i <= n; i++) {
    for (size_t u = top; u >= m + i; u--) p[u] -= p[u - m - i];
    for (size_t u = i; u <= top; u++) p[u] += p[u - i];
    // Each step multiplies the sum of counts by (m + i) / i.
    for (double& value : p) value *= static_cast<double>(i) / static_cast<double>(m + i);
  }
  return p;
}

struct Ranks {
  double sum_a = 0;     ///< of the ranks of a, ties sharing their mean rank
  double tie_term = 0;  ///< sum of t^3 - t over groups of t equal values
};

Ranks rank(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::pair<double, bool>> all;
  all.reserve(a.size() + b.size());
  for (const double value : a) all.emplace_back(value, true);
  for (const double value : b) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());
  Ranks ranks;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    while (end < all.size() && all[end].first == all[begin].first) end++;
    const double mean_rank = static_cast<double>(begin + 1 + end) / 2;
    for (size_t i = begin; i < end; i++) ranks.sum_a += all[i].second ? mean_rank : 0;
    const double t = static_cast<double>(end - begin);
    ranks.tie_term += t * t * t - t;
    begin = end;
  }
  return ranks;
}

double exact_p(double u, size_t n, size_t m) {
  const std::vector<double> p = u_distribution(n, m);
  const size_t smaller = static_cast<size_t>(std::min(u, static_cast<double>(n * m) - u));
  const double tail = std::accumulate(p.begin(), p.begin() + static_cast<long>(smaller) + 1, 0.0);
  return std::min(1.0, 2 * tail);
}

double normal_p(double u, double tie_term, size_t n, size_t m) {
  const double product = static_cast<double>(n) * static_cast<double>(m);
  const double total = static_cast<double>(n + m);
  const double variance = product / 12 * (total + 1 - tie_term / (total * (total - 1)));
  if (variance <= 0) return 1;  // all values are equal
  const double distance = std::max(0.0, std::fabs(u - product / 2) - 0.5);
  return std::min(1.0, 2 * upper_tail(distance / std::sqrt(variance)));
}

/// The smallest u with P(U <= u) >= tail.
size_t u_quantile(double tail, size_t n, size_t m) {
  if (n < kExactBelow && m < kExactBelow) {
    const std::vector<double> p = u_distribution(n, m);
    double sum = 0;
    for (size_t u = 0; u < p.size(); u++) {
      sum += p[u];
      if (sum >= tail) return u;
    }
    return p.size() - 1;
  }
  const double product = static_cast<double>(n) * static_cast<double>(m);
  const double deviation = std::sqrt(product * static_cast<double>(n + m + 1) / 12);
  return static_cast<size_t>(
      std::max(0.0, std::ceil(product / 2 - upper_quantile(tail) * deviation - 0.5)));
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

MannWhitney mann_whitney(const std::vector<double>& a, const std::vector<double>& b) {
  const size_t n = a.size();
  const size_t m = b.size();
  const Ranks ranks = rank(a, b);
  MannWhitney result;
  result.u = ranks.sum_a - static_cast<double>(n) * static_cast<double>(n + 1) / 2;
  result.exact = ranks.tie_term == 0 && n < kExactBelow && m < kExactBelow;
  result.p = result.exact ? exact_p(result.u, n, m) : normal_p(result.u, ranks.tie_term, n, m);
  return result;
}

double smallest_p(size_t n, size_t m) {
  if (n == 0 || m == 0) return 1;
  if (n < kExactBelow && m < kExactBelow) return exact_p(0, n, m);
  return normal_p(0, 0, n, m);
}

Interval ratio_interval(const std::vector<double>& a, const std::vector<double>& b,
                        double confidence) {
  std::vector<double> logs;
  logs.reserve(a.size() * b.size());
  for (const double x : a) {
    for (const double y : b) logs.push_back(std::log(y) - std::log(x));
  }
  if (logs.empty()) return {};
  std::sort(logs.begin(), logs.end());
  const size_t rank = std::max<size_t>(1, u_quantile((1 - confidence) / 2, a.size(), b.size()));
  const size_t low = std::min(rank - 1, (logs.size() - 1) / 2);
  return {std::exp(median(logs)), std::exp(logs[low]), std::exp(logs[logs.size() - 1 - low])};
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t x, size_t y) { return p[x] < p[y]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (size_t i = 0; i < order.size(); i++) {
    const double factor = static_cast<double>(p.size() - i);
    largest = std::max(largest, std::min(1.0, p[order[i]] * factor));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace nfsrdma::results
