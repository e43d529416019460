// SPDX-License-Identifier: GPL-2.0-or-later
#include "statistics.h"

#include <algorithm>
#include <cmath>

namespace nfsrdma {

void Histogram::merge(const Histogram& other) {
  if (other.count_ == 0) return;
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  sum_ += other.sum_;
  for (uint32_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
}

uint64_t Histogram::value_of(uint32_t bucket) {
  if (bucket < kSteps) return bucket;
  const uint32_t shift = bucket / kSteps - 1;
  const uint64_t low = (uint64_t{kSteps} + bucket % kSteps) << shift;
  return low + ((uint64_t{1} << shift) >> 1);
}

uint64_t Histogram::percentile(double percent) const {
  if (count_ == 0) return 0;
  const auto rank = std::max<uint64_t>(
      1, static_cast<uint64_t>(std::ceil(percent / 100 * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (uint32_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::clamp(value_of(i), min_, max_);
  }
  return max_;
}

void ProcedureStatistics::merge(const ProcedureStatistics& other) {
  ops += other.ops;
  errors += other.errors;
  retrans += other.retrans;
  bytes += other.bytes;
  queue.merge(other.queue);
  rtt.merge(other.rtt);
  exe.merge(other.exe);
}

void SessionStatistics::merge(const SessionStatistics& other) {
  for (size_t i = 0; i < kStatProcedures; ++i) procedures[i].merge(other.procedures[i]);
  connects += other.connects;
  reconnects += other.reconnects;
  credit_stalls += other.credit_stalls;
  send_calls += other.send_calls;
  recv_calls += other.recv_calls;
  bad_replies += other.bad_replies;
  depth_max += other.depth_max;
  verifier_changes += other.verifier_changes;
  resent_writes += other.resent_writes;
  resent_bytes += other.resent_bytes;
  lost_writes += other.lost_writes;
  // The series of several jobs lie on one clock; jobs may begin at different seconds.
  if (other.seconds == 0) return;
  if (seconds == 0) start_ns = other.start_ns;
  constexpr uint64_t kSecond = 1'000'000'000;
  if (other.start_ns < start_ns) {
    const auto shift = static_cast<uint32_t>(
        std::min<uint64_t>((start_ns - other.start_ns + kSecond / 2) / kSecond, kSeriesSeconds));
    const uint32_t kept = std::min(seconds, kSeriesSeconds - shift);
    std::move_backward(series.begin(), series.begin() + kept, series.begin() + shift + kept);
    std::fill(series.begin(), series.begin() + shift, SeriesPoint{});
    seconds = std::min(seconds + shift, kSeriesSeconds);
    start_ns = other.start_ns;
  }
  const auto ahead = static_cast<uint32_t>(
      std::min<uint64_t>((other.start_ns - start_ns + kSecond / 2) / kSecond, kSeriesSeconds));
  for (uint32_t i = 0; i < other.seconds && i + ahead < kSeriesSeconds; ++i)
    for (size_t kind = 0; kind < 3; ++kind)
      series[i + ahead].ops[kind] += other.series[i].ops[kind];
  seconds = std::max(seconds, std::min(other.seconds + ahead, kSeriesSeconds));
}

}  // namespace nfsrdma
