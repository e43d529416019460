// SPDX-License-Identifier: GPL-2.0-or-later
#include "fio_json.h"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "json_read.h"

namespace nfsrdma::results {
namespace {

using nlohmann::json;

constexpr const char* kAllClients = "All clients";

std::map<std::string, std::string> read_options(const json& global, const json& job) {
  std::map<std::string, std::string> options;
  for (const json* object : {&global, &job}) {
    for (const auto& [key, value] : object->items()) {
      options[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  return options;
}

DirectionStats read_direction(const json& object) {
  DirectionStats stats;
  stats.ios = count_or(object, "total_ios", 0);
  stats.bytes = count_or(object, "io_bytes", 0);
  stats.short_ios = count_or(object, "short_ios", 0);
  stats.runtime_ms = count_or(object, "runtime", 0);
  stats.clat = read_latency(object_at(object, "clat_ns"));
  stats.lat = read_latency(object_at(object, "lat_ns"));
  return stats;
}

FioJob read_job(const json& global, const json& entry) {
  FioJob job;
  job.name = text_or(entry, "jobname", "");
  const std::string host = text_or(entry, "hostname", "");
  if (!host.empty()) job.host = host + ":" + std::to_string(count_or(entry, "port", 0));
  job.group_id = count_or(entry, "groupid", 0);
  job.options = read_options(global, object_at(entry, "job options"));
  job.job_runtime_ms = count_or(entry, "job_runtime", 0);
  job.usr_cpu_percent = number_or(entry, "usr_cpu", 0);
  job.sys_cpu_percent = number_or(entry, "sys_cpu", 0);
  job[Direction::kRead] = read_direction(object_at(entry, "read"));
  job[Direction::kWrite] = read_direction(object_at(entry, "write"));
  // unified_rw_reporting=both gives "mixed" beside the two: it would count everything twice.
  if (!entry.contains("read") && !entry.contains("write")) {
    job[Direction::kMixed] = read_direction(object_at(entry, "mixed"));
  }
  DirectionStats& sync = job[Direction::kSync];
  sync = read_direction(object_at(entry, "sync"));
  sync.clat = sync.lat;
  sync.runtime_ms = std::max(job[Direction::kRead].runtime_ms, job[Direction::kWrite].runtime_ms);
  return job;
}

std::string in_job(const std::string& file, const FioJob& job) {
  return file + ": job '" + job.name + "'" + (job.host.empty() ? "" : " on " + job.host);
}

Result<void> check_errors(const std::string& file, const FioJob& job, const json& entry) {
  const double error = number_or(entry, "error", 0);
  if (error != 0) {
    const int code = static_cast<int>(std::fabs(error));
    return fail(EIO, in_job(file, job) + " failed with error " + std::to_string(code) + " (" +
                         std::strerror(code) + "): its figures are not those of a whole run");
  }
  const uint64_t errors = count_or(entry, "total_err", 0);
  if (errors != 0) {
    return fail(EIO, in_job(file, job) + " had " + std::to_string(errors) +
                         " I/O errors (continue_on_error): its figures hold failed I/Os");
  }
  return {};
}

/// fio gives a group the options of its last job and the name of its first, and adds all of
/// them up. Where they have unlike block sizes, the sum says nothing of either.
Result<void> check_block_size(const std::string& file, const FioJob& job, Direction d) {
  const uint64_t block = parse_size(job.option("bs", "4k"));
  const DirectionStats& stats = job[d];
  for (const char* other : {"bsrange", "bssplit", "bs_unaligned", "read_iolog"}) {
    if (job.options.contains(other)) return {};
  }
  if (block == 0 || stats.ios == 0 || stats.short_ios != 0) return {};
  const double mean = static_cast<double>(stats.bytes) / static_cast<double>(stats.ios);
  // The last I/O of a file may be shorter.
  if (std::fabs(mean / static_cast<double>(block) - 1) <= 0.01) return {};
  return fail(EINVAL, in_job(file, job) + " moved " + std::to_string(std::llround(mean)) +
                          " bytes per " + name_of(d) +
                          " on average, but has bs=" + job.option("bs", "4k") +
                          ": its group mixes unlike jobs; put new_group between them or "
                          "leave out group_reporting");
}

Result<void> check_work(const std::string& file, const FioJob& job) {
  uint64_t ios = 0;
  for (const Direction d : {Direction::kRead, Direction::kWrite, Direction::kMixed}) {
    const DirectionStats& stats = job[d];
    ios += stats.ios;
    if (stats.ios > 0 && stats.runtime_ms == 0) {
      return fail(EINVAL, in_job(file, job) + " ran for less than a millisecond: make it longer");
    }
    auto checked = check_block_size(file, job, d);
    if (!checked) return checked;
  }
  if (ios == 0) return fail(EINVAL, in_job(file, job) + " did no I/O (zero operations)");
  return {};
}

/// Whether two documents are of the same run: the same jobs with the same options.
bool same_run(const json& a, const json& b) {
  if (object_at(a, "global options") != object_at(b, "global options")) return false;
  const auto jobs_a = a.find("jobs");
  const auto jobs_b = b.find("jobs");
  if (jobs_a == a.end() || jobs_b == b.end()) return false;
  if (!jobs_a->is_array() || !jobs_b->is_array() || jobs_a->size() != jobs_b->size()) return false;
  for (size_t i = 0; i < jobs_a->size(); i++) {
    if (text_or((*jobs_a)[i], "jobname", "") != text_or((*jobs_b)[i], "jobname", "")) return false;
    if (object_at((*jobs_a)[i], "job options") != object_at((*jobs_b)[i], "job options"))
      return false;
  }
  return true;
}

Result<const json*> job_array(const std::string& file, const json& document) {
  for (const char* key : {"client_stats", "jobs"}) {
    const auto it = document.find(key);
    if (it == document.end()) continue;
    if (!it->is_array()) return fail(EBADMSG, file + ": \"" + key + "\" is not an array");
    if (it->empty()) return fail(EINVAL, file + ": holds no job: the run failed before it began");
    return &*it;
  }
  return fail(EBADMSG, file + ": is not fio's JSON (no \"jobs\", no \"client_stats\")");
}

}  // namespace

const char* name_of(Direction direction) {
  constexpr std::array<const char*, kDirections> kNames{"read", "write", "mixed", "sync"};
  return kNames[static_cast<size_t>(direction)];
}

std::string FioJob::option(const std::string& key, const std::string& fallback) const {
  const auto it = options.find(key);
  return it == options.end() ? fallback : it->second;
}

bool looks_like_fio(const json& document) {
  return document.contains("fio version") || document.contains("jobs") ||
         document.contains("client_stats");
}

Result<FioRun> read_fio_run(const std::string& file, const std::vector<json>& documents) {
  if (documents.empty()) return fail(EBADMSG, file + ": holds no JSON object");
  const json& document = documents.back();
  for (const json& earlier : documents) {
    if (documents.size() > 1 && !same_run(earlier, document)) {
      return fail(EINVAL, file + ": holds several runs of fio: give each a file of its own");
    }
  }
  auto entries = job_array(file, document);
  if (!entries) return tl::unexpected(entries.error());

  FioRun run;
  run.file = file;
  run.fio_version = text_or(document, "fio version", "");
  run.timestamp_ms = count_or(document, "timestamp_ms", count_or(document, "timestamp", 0) * 1000);
  const json& global = object_at(document, "global options");
  for (const json& entry : **entries) {
    if (!entry.is_object()) return fail(EBADMSG, file + ": an entry of its jobs is not an object");
    FioJob job = read_job(global, entry);
    // The sum over all fio servers comes as one more entry, without options, over all jobs.
    if (job.name == kAllClients && !entry.contains("job options")) continue;
    auto errors = check_errors(file, job, entry);
    if (!errors) return tl::unexpected(errors.error());
    auto work = check_work(file, job);
    if (!work) return tl::unexpected(work.error());
    run.jobs.push_back(std::move(job));
  }
  if (run.jobs.empty()) return fail(EINVAL, file + ": holds no job");
  return run;
}

uint64_t parse_size(const std::string& text) {
  char* end = nullptr;
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0) return 0;
  const double value = std::strtod(text.c_str(), &end);
  std::string unit(end);
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (unit.ends_with("ib")) {
    unit.resize(unit.size() - 2);
  } else if (unit.ends_with("b") || unit.ends_with("i")) {
    unit.resize(unit.size() - 1);
  }
  constexpr const char* kUnits = "kmgt";
  double factor = 1;
  if (!unit.empty()) {
    const char* at = unit.size() == 1 ? std::strchr(kUnits, unit[0]) : nullptr;
    if (at == nullptr) return 0;
    factor = std::pow(1024.0, static_cast<double>(at - kUnits) + 1);
  }
  const double bytes = value * factor;
  return bytes < 1e18 ? static_cast<uint64_t>(std::llround(bytes)) : 0;
}

}  // namespace nfsrdma::results
