// SPDX-License-Identifier: GPL-2.0-or-later
// Statistics of the data path, with the names of nfsiostat and mountstats. Plain memory without
// pointers, so that it can live in a mapping shared by several processes: each job writes its own,
// nobody locks. Times in nanoseconds.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace nfsrdma {

/// Log-linear histogram: 32 linear steps within each power of two, so a value is known to 3 %.
/// Values above 2^40 ns (18 minutes) count in the last bucket.
class Histogram {
 public:
  static constexpr uint32_t kStepBits = 5;
  static constexpr uint32_t kSteps = 1u << kStepBits;
  static constexpr uint32_t kTopBit = 40;
  static constexpr uint32_t kBuckets = (kTopBit - kStepBits + 1) * kSteps;

  void add(uint64_t value) {
    ++buckets_[bucket_of(value)];
    ++count_;
    sum_ += value;
    if (value > max_) max_ = value;
    if (value < min_ || count_ == 1) min_ = value;
  }

  void merge(const Histogram& other);

  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] uint64_t sum() const { return sum_; }
  [[nodiscard]] uint64_t min() const { return min_; }
  [[nodiscard]] uint64_t max() const { return max_; }
  [[nodiscard]] double mean() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }
  /// The value that `percent` of all samples do not exceed, within the width of a bucket.
  [[nodiscard]] uint64_t percentile(double percent) const;

  [[nodiscard]] uint64_t bucket_count(uint32_t bucket) const { return buckets_[bucket]; }

  static constexpr uint32_t bucket_of(uint64_t value) {
    if (value < kSteps) return static_cast<uint32_t>(value);
    const auto top = static_cast<uint32_t>(std::bit_width(value) - 1);
    if (top >= kTopBit) return kBuckets - 1;
    const uint32_t shift = top - kStepBits;
    return (shift + 1) * kSteps + static_cast<uint32_t>((value >> shift) & (kSteps - 1));
  }
  /// The middle of a bucket.
  static uint64_t value_of(uint32_t bucket);

 private:
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t min_ = 0;
  uint64_t max_ = 0;
  std::array<uint64_t, kBuckets> buckets_{};
};

enum class StatProcedure : uint32_t { kRead, kWrite, kCommit, kOther };
constexpr size_t kStatProcedures = 4;
constexpr std::array<const char*, kStatProcedures> kStatProcedureNames = {"READ", "WRITE", "COMMIT",
                                                                          "OTHER"};

/// One procedure over one transport.
struct ProcedureStatistics {
  uint64_t ops = 0;      ///< calls that ended, well or not
  uint64_t errors = 0;   ///< of these, with an error
  uint64_t retrans = 0;  ///< sendings beyond the first, and new calls for JUKEBOX
  uint64_t bytes = 0;    ///< of data
  Histogram queue;       ///< from fio's queue() to the last byte sent
  Histogram rtt;         ///< from there to the reply
  Histogram exe;         ///< both

  void merge(const ProcedureStatistics& other);
};

/// Completions a second, for the series.
struct SeriesPoint {
  std::array<uint32_t, 3> ops{};  ///< READ, WRITE, COMMIT
};

constexpr uint32_t kSeriesSeconds = 3600;

/// Everything that a session counts.
struct SessionStatistics {
  std::array<ProcedureStatistics, kStatProcedures> procedures;
  uint64_t connects = 0;
  uint64_t reconnects = 0;
  uint64_t credit_stalls = 0;
  uint64_t send_calls = 0;
  uint64_t recv_calls = 0;
  uint64_t bad_replies = 0;
  uint64_t depth_max = 0;         ///< most calls on the wire at once, summed over connections
  uint64_t verifier_changes = 0;  ///< server restarts seen
  uint64_t resent_writes = 0;     ///< WRITEs sent again after one
  uint64_t resent_bytes = 0;
  uint64_t lost_writes = 0;  ///< unstable writes lost for good
  uint64_t start_ns = 0;     ///< CLOCK_MONOTONIC of the series' begin
  uint32_t seconds = 0;      ///< points used
  std::array<SeriesPoint, kSeriesSeconds> series{};

  [[nodiscard]] ProcedureStatistics& of(StatProcedure procedure) {
    return procedures[static_cast<size_t>(procedure)];
  }
  void merge(const SessionStatistics& other);
};

}  // namespace nfsrdma
