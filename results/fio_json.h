// SPDX-License-Identifier: GPL-2.0-or-later
// What fio's JSON (json, json+, --client) says of one run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "latency.h"
#include "result.h"

namespace nfsrdma::results {

/// What a job did in one direction. `sync` is fio's name for fsync and fdatasync: COMMIT.
/// `mixed` stands alone when the job ran with unified_rw_reporting=mixed.
enum class Direction { kRead, kWrite, kMixed, kSync };
constexpr size_t kDirections = 4;
const char* name_of(Direction direction);

struct DirectionStats {
  uint64_t ios = 0;
  uint64_t bytes = 0;
  uint64_t short_ios = 0;
  uint64_t runtime_ms = 0;
  /// Completion latency: from issue to completion.
  Latency clat;
  /// Total latency, from fio's queue to completion; with percentiles only if lat_percentiles=1.
  Latency lat;
};

struct FioJob {
  std::string name;
  std::string host;  ///< under --client: the fio server, else empty
  uint64_t group_id = 0;
  /// Options of the job laid over those of [global], as text, by fio's name.
  std::map<std::string, std::string> options;
  std::array<DirectionStats, kDirections> directions;
  /// Sum over the processes or threads that this entry stands for.
  uint64_t job_runtime_ms = 0;
  double usr_cpu_percent = 0;
  double sys_cpu_percent = 0;

  const DirectionStats& operator[](Direction d) const { return directions[static_cast<size_t>(d)]; }
  DirectionStats& operator[](Direction d) { return directions[static_cast<size_t>(d)]; }
  std::string option(const std::string& key, const std::string& fallback = "") const;
};

struct FioRun {
  std::string file;
  std::string fio_version;
  uint64_t timestamp_ms = 0;
  std::vector<FioJob> jobs;
};

bool looks_like_fio(const nlohmann::json& document);

/// Takes the run out of the documents of one file. Several documents are those of one run with
/// --status-interval: the last one counts. Fails, with a sentence that names the file, if a job
/// failed, did no I/O, or if the entry of a group mixes jobs of unlike block sizes.
Result<FioRun> read_fio_run(const std::string& file, const std::vector<nlohmann::json>& documents);

/// "8k", "8KiB", "1m", "8192" in bytes (k is 1024); 0 if it is not a size.
uint64_t parse_size(const std::string& text);

}  // namespace nfsrdma::results
