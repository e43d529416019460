// SPDX-License-Identifier: GPL-2.0-or-later
#include "published.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <set>

#include "format.h"
#include "json_read.h"
#include "published_data.h"

namespace nfsrdma::results {
namespace {

/// Known figures first, in reading order; any other follows under its own name.
const std::vector<std::pair<std::string, std::string>>& known_figures() {
  static const std::vector<std::pair<std::string, std::string>> kKnown{
      {"read_iops", "read IOPS"},
      {"write_iops", "write IOPS"},
      {"read_mib_s", "read MiB/s"},
      {"write_mib_s", "write MiB/s"},
      {"read_latency_s", "read s"},
      {"write_latency_s", "write s"},
      {"write_us_mean", "write us"},
      {"write_us_std", "(std)"},
      {"rewrite_us_mean", "rewrite us"},
      {"rewrite_us_std", "(std)"},
      {"rtt_us_mean", "RTT us"},
      {"rtt_us_std", "(std)"},
      {"write_ms_below", "write ms under"},
      {"commit_ms_low", "COMMIT ms from"},
      {"commit_ms_high", "to"},
      {"commits_per_s_low", "COMMITs/s from"},
      {"commits_per_s_high", "to"},
      {"runtime_ms", "run ms"}};
  return kKnown;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool name_begins_with(const std::string& job, const std::string& id) {
  if (!lower(job).starts_with(lower(id))) return false;
  return job.size() == id.size() || std::isdigit(static_cast<unsigned char>(job[id.size()])) == 0;
}

bool same_workload(const JobRow& row, const Experiment& experiment) {
  const auto asked = [&](const char* key) {
    const auto it = experiment.workload.find(key);
    return it == experiment.workload.end() ? std::string() : it->second;
  };
  const auto has = [&](const char* key, const char* fallback) {
    const auto it = row.options.find(key);
    return it == row.options.end() ? std::string(fallback) : it->second;
  };
  if (asked("rw").empty() || asked("bs").empty()) return false;
  if (asked("rw") != has("rw", "read")) return false;
  if (asked("rw") == "randrw" && asked("rwmixread") != has("rwmixread", "50")) return false;
  return parse_size(asked("bs")) == parse_size(has("bs", "4k"));
}

}  // namespace

double PublishedRow::figure(const std::string& name) const {
  const auto it = figures.find(name);
  return it == figures.end() ? 0 : it->second;
}

std::string Experiment::source() const {
  return list + ", " + author + ", " + date;
}

Result<Experiment> read_experiment(const std::string& file, const std::string& text) {
  auto documents = json_objects(file, text);
  if (!documents) return tl::unexpected(documents.error());
  const nlohmann::json& document = documents->back();
  Experiment experiment;
  experiment.id = text_or(document, "experiment", "");
  experiment.title = text_or(document, "title", "");
  const nlohmann::json& source = object_at(document, "source");
  experiment.list = text_or(source, "list", "");
  experiment.subject = text_or(source, "subject", "");
  experiment.author = text_or(source, "author", "");
  experiment.date = text_or(source, "date", "");
  experiment.hardware = text_or(document, "hardware", "");
  experiment.note = text_or(document, "note", "");
  for (const auto& [key, value] : object_at(document, "workload").items()) {
    if (value.is_string()) experiment.workload[key] = value.get<std::string>();
  }
  const auto rows = document.find("rows");
  if (rows != document.end() && rows->is_array()) {
    for (const nlohmann::json& entry : *rows) {
      PublishedRow row;
      row.config = text_or(entry, "config", "");
      row.transport = text_or(entry, "transport", "");
      for (const auto& [key, value] : object_at(entry, "figures").items()) {
        if (value.is_number()) row.figures[key] = value.get<double>();
      }
      experiment.rows.push_back(std::move(row));
    }
  }
  if (experiment.id.empty() || experiment.rows.empty()) {
    return fail(EBADMSG, file + ": is not a file of published figures (no experiment, no rows)");
  }
  return experiment;
}

Result<std::vector<Experiment>> published_experiments() {
  std::vector<Experiment> all;
  for (const auto& [name, text] : kPublishedData) {
    auto experiment = read_experiment(name, text);
    if (!experiment) return tl::unexpected(experiment.error());
    all.push_back(std::move(*experiment));
  }
  return all;
}

std::vector<const Experiment*> experiments_of(const JobRow& row,
                                              const std::vector<Experiment>& all) {
  std::vector<const Experiment*> found;
  for (const Experiment& experiment : all) {
    if (name_begins_with(row.job, experiment.id)) return {&experiment};
  }
  for (const Experiment& experiment : all) {
    if (same_workload(row, experiment)) found.push_back(&experiment);
  }
  return found;
}

std::vector<std::pair<std::string, std::string>> figure_columns(const Experiment& experiment) {
  std::set<std::string> present;
  for (const PublishedRow& row : experiment.rows) {
    for (const auto& [name, value] : row.figures) present.insert(name);
  }
  std::vector<std::pair<std::string, std::string>> columns;
  for (const auto& known : known_figures()) {
    if (present.erase(known.first) > 0) columns.push_back(known);
  }
  for (const std::string& name : present) columns.emplace_back(name, name);
  return columns;
}

std::string figure_text(const std::string& name, const PublishedRow& row) {
  const auto it = row.figures.find(name);
  if (it == row.figures.end()) return "-";
  const double value = it->second;
  if (name == "runtime_ms") return fixed(value, 0);
  if (name.ends_with("_latency_s")) return fixed(value, 6);
  if (name.ends_with("_iops")) return short_count(value);
  return short_number(value);
}

}  // namespace nfsrdma::results
