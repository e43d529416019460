// SPDX-License-Identifier: GPL-2.0-or-later
#include "inputs.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "json_read.h"

namespace nfsrdma::results {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFilesMax = 10000;

Result<std::vector<std::string>> list_files(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (fs::recursive_directory_iterator it(path, error), end; it != end; it.increment(error)) {
    if (error) break;
    if (it->is_regular_file(error) && it->path().extension() == ".json") {
      files.push_back(it->path().string());
    }
    if (files.size() > kFilesMax) {
      return fail(E2BIG, path + ": holds more than " + std::to_string(kFilesMax) + " JSON files");
    }
  }
  if (error) return fail(error.value(), path + ": cannot be read: " + error.message());
  if (files.empty()) return fail(ENOENT, path + ": holds no .json file");
  std::sort(files.begin(), files.end());
  return files;
}

Result<void> load_file(const std::string& file, Inputs& inputs, std::vector<StatsFile>& stats) {
  auto text = read_file(file);
  if (!text) return tl::unexpected(text.error());
  auto documents = json_objects(file, *text);
  if (!documents) return tl::unexpected(documents.error());
  if (looks_like_stats(documents->back())) {
    auto parsed = read_stats(file, documents->back());
    if (!parsed) return tl::unexpected(parsed.error());
    stats.push_back(std::move(*parsed));
    return {};
  }
  if (!looks_like_fio(documents->back())) {
    return fail(EBADMSG, file + ": is neither fio's JSON nor a stats_json file");
  }
  LoadedRun run;
  auto fio = read_fio_run(file, *documents);
  if (!fio) return tl::unexpected(fio.error());
  run.fio = std::move(*fio);
  auto rows = make_rows(run.fio, inputs.notes);
  if (!rows) return tl::unexpected(rows.error());
  run.rows = std::move(*rows);
  inputs.runs.push_back(std::move(run));
  return {};
}

std::string stem(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.substr(0, name.find('.'));
}

bool named_by(const LoadedRun& run, const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  return std::any_of(run.fio.jobs.begin(), run.fio.jobs.end(), [&](const FioJob& job) {
    return fs::path(job.option("stats_json")).filename().string() == name;
  });
}

/// The one run for which `fits` holds; none if there is none or there are several.
template <typename Fits>
LoadedRun* only_run(std::vector<LoadedRun>& runs, Fits fits) {
  LoadedRun* found = nullptr;
  for (LoadedRun& run : runs) {
    if (!fits(run)) continue;
    if (found != nullptr) return nullptr;
    found = &run;
  }
  return found;
}

LoadedRun* owner_of(std::vector<LoadedRun>& runs, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  const auto beside = [&](const LoadedRun& run) {
    return fs::path(run.fio.file).parent_path() == folder;
  };
  const auto named = [&](const LoadedRun& run) { return named_by(run, file); };
  const auto alike = [&](const LoadedRun& run) { return stem(run.fio.file) == stem(file); };
  LoadedRun* run =
      only_run(runs, [&](const LoadedRun& r) { return beside(r) && named(r) && alike(r); });
  if (run == nullptr)
    run = only_run(runs, [&](const LoadedRun& r) { return beside(r) && named(r); });
  if (run == nullptr)
    run = only_run(runs, [&](const LoadedRun& r) { return beside(r) && alike(r); });
  if (run == nullptr) run = only_run(runs, named);
  if (run == nullptr) run = only_run(runs, alike);
  if (run == nullptr) run = only_run(runs, [](const LoadedRun&) { return true; });
  return run;
}

}  // namespace

Result<Inputs> load_inputs(const std::vector<std::string>& paths) {
  Inputs inputs;
  std::vector<StatsFile> stats;
  for (const std::string& path : paths) {
    auto files = list_files(path);
    if (!files) return tl::unexpected(files.error());
    for (const std::string& file : *files) {
      auto loaded = load_file(file, inputs, stats);
      if (!loaded) return tl::unexpected(loaded.error());
    }
  }
  if (inputs.runs.empty()) {
    return fail(EINVAL, paths.front() + ": no fio run among the files, only statistics");
  }
  for (StatsFile& file : stats) {
    LoadedRun* run = owner_of(inputs.runs, file.file);
    if (run == nullptr) {
      return fail(EINVAL, file.file + ": cannot tell which of the " +
                              std::to_string(inputs.runs.size()) +
                              " fio runs it belongs to: name it as the run's file, with "
                              ".stats.json at the end");
    }
    add_stats(run->rows, file, inputs.notes);
    run->stats.push_back(std::move(file));
  }
  // A job with reads and writes would say the same twice.
  auto& notes = inputs.notes;
  for (auto it = notes.begin(); it != notes.end();) {
    it = std::find(notes.begin(), it, *it) == it ? it + 1 : notes.erase(it);
  }
  return inputs;
}

}  // namespace nfsrdma::results
