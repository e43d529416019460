// SPDX-License-Identifier: GPL-2.0-or-later
// nfsrdma-results: what fio runs over NFS reached, and whether a change cost something.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "compare.h"
#include "html.h"
#include "inputs.h"
#include "json_read.h"
#include "published.h"
#include "table.h"

namespace nfsrdma::results {
namespace {

constexpr int kExitBadInput = 2;

int bad_input(const Error& error) {
  std::fprintf(stderr, "nfsrdma-results: %s\n", error.text.c_str());
  return kExitBadInput;
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::fprintf(stderr, "note: %s\n", note.c_str());
}

/// Writes to the file, or to standard output if none is named.
int write_out(const std::string& path, const std::string& text) {
  if (path.empty() || path == "-") {
    std::fputs(text.c_str(), stdout);
    return std::fflush(stdout) == 0 ? 0 : kExitBadInput;
  }
  std::FILE* file = std::fopen(path.c_str(), "w");
  bool written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written) return 0;
  return bad_input(Error{errno, path + ": cannot be written: " + std::strerror(errno)});
}

struct TableCommand {
  std::vector<std::string> paths;
  std::string format = "text";
  std::string output;
  bool published = false;

  void add_to(CLI::App& app);
  int run() const;
};

void TableCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "table", "IOPS, bandwidth, latency and CPU per job, transport and kind of operation");
  command->add_option("FILE", paths, "fio JSON files, stats_json files, or folders of them")
      ->required();
  command->add_option("-f,--format", format, "text, markdown, csv, or list (bullets for a post)")
      ->check(CLI::IsMember({"text", "markdown", "csv", "list"}))
      ->capture_default_str();
  command->add_option("-o,--output", output, "write here instead of to standard output");
  command->add_flag("--published", published,
                    "set the published figures of the same workload beside it (other hardware)");
}

int TableCommand::run() const {
  auto inputs = load_inputs(paths);
  if (!inputs) return bad_input(inputs.error());
  std::vector<Experiment> experiments;
  if (published) {
    auto all = published_experiments();
    if (!all) return bad_input(all.error());
    experiments = std::move(*all);
  }
  TableFormat kind = TableFormat::kText;
  if (format == "markdown") kind = TableFormat::kMarkdown;
  if (format == "csv") kind = TableFormat::kCsv;
  if (format == "list") kind = TableFormat::kList;
  print_notes(inputs->notes);
  return write_out(output, make_table(*inputs, kind, experiments));
}

struct CompareCommand {
  CLI::App* command = nullptr;
  std::vector<std::string> paths;
  std::vector<std::string> metrics{"iops", "p50", "p99", "cpu"};
  std::vector<std::string> thresholds;
  std::vector<std::string> allowed;
  std::string format = "text";
  std::string output;
  std::string junit;
  bool noise = false;

  void add_to(CLI::App& app);
  int run() const;

 private:
  Result<CompareOptions> options() const;
  Result<Comparison> compare(const CompareOptions& options) const;
};

void CompareCommand::add_to(CLI::App& app) {
  command = app.add_subcommand("compare",
                               "Did B become slower than A? Exit status: 0 no, 1 yes, 2 bad input, "
                               "3 too few or too noisy runs to tell");
  command->add_option("SET", paths, "two folders of fio JSON files, one a run; with --noise one")
      ->required()
      ->expected(1, 2);
  command->add_flag("--noise", noise,
                    "split one set by turns and compare the halves: is the machine quiet enough?");
  command->add_option("-m,--metrics", metrics, "what to judge: iops, mean, p50, p99, p99.9, cpu")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  command
      ->add_option("-t,--threshold", thresholds,
                   "METRIC=PERCENT from which a worsening counts; default iops=3, mean=5, "
                   "p50=5, p99=10, p99.9=20, cpu=5")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--allow", allowed, "compare runs that differ in these properties")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(property_names()));
  command->add_option("-f,--format", format, "text, markdown (for a pull request) or junit")
      ->check(CLI::IsMember({"text", "markdown", "junit"}))
      ->capture_default_str();
  command->add_option("-o,--output", output, "write here instead of to standard output");
  command->add_option("--junit", junit, "write JUnit XML to this file as well");
}

Result<CompareOptions> CompareCommand::options() const {
  const std::map<std::string, double> defaults{{"iops", 3}, {"mean", 5},   {"p50", 5},
                                               {"p99", 10}, {"p99.9", 20}, {"cpu", 5}};
  CompareOptions options;
  options.thresholds.clear();
  options.allowed.insert(allowed.begin(), allowed.end());
  for (const std::string& metric : metrics) {
    const auto it = defaults.find(metric);
    if (it == defaults.end()) return fail(EINVAL, "--metrics: no metric '" + metric + "'");
    options.thresholds.insert(*it);
  }
  for (const std::string& text : thresholds) {
    const size_t equals = text.find('=');
    const std::string metric = text.substr(0, equals);
    if (equals == std::string::npos || !defaults.contains(metric)) {
      return fail(EINVAL, "--threshold takes METRIC=PERCENT, as in iops=3, not '" + text + "'");
    }
    char* end = nullptr;
    const double percent = std::strtod(text.c_str() + equals + 1, &end);
    if (*end != '\0' || end == text.c_str() + equals + 1 || !(percent > 0 && percent < 1000)) {
      return fail(EINVAL, "--threshold " + text + ": wants a percentage above 0");
    }
    if (!options.thresholds.contains(metric)) {
      return fail(EINVAL, "--threshold " + text + ": --metrics leaves this metric out");
    }
    options.thresholds[metric] = percent;
  }
  return options;
}

Result<Comparison> CompareCommand::compare(const CompareOptions& options) const {
  auto a = load_inputs({paths.front()});
  if (!a) return tl::unexpected(a.error());
  std::pair<Inputs, Inputs> sets;
  if (noise) {
    sets = split_in_two(*a);
    if (sets.second.runs.empty()) {
      return fail(EINVAL, paths.front() + ": holds one run only, which cannot be split");
    }
  } else {
    auto b = load_inputs({paths.back()});
    if (!b) return tl::unexpected(b.error());
    print_notes(a->notes);
    print_notes(b->notes);
    sets = {std::move(*a), std::move(*b)};
  }
  std::vector<std::string> notes;
  auto samples = collect_samples(sets.first, sets.second, options, notes);
  print_notes(notes);
  if (!samples) return tl::unexpected(samples.error());
  Comparison comparison = judge(*samples, options);
  comparison.name_a = noise ? paths.front() + " (odd runs)" : paths.front();
  comparison.name_b = noise ? paths.front() + " (even runs)" : paths.back();
  return comparison;
}

int CompareCommand::run() const {
  if (paths.size() != (noise ? 1U : 2U)) {
    return bad_input(Error{EINVAL, noise ? "compare --noise takes one set of runs"
                                         : "compare takes two sets of runs: A and B"});
  }
  auto chosen = options();
  if (!chosen) return bad_input(chosen.error());
  auto comparison = compare(*chosen);
  if (!comparison) return bad_input(comparison.error());
  if (!junit.empty()) {
    const int written = write_out(junit, compare_junit(*comparison));
    if (written != 0) return written;
  }
  std::string text;
  if (format == "text") text = compare_text(*comparison);
  if (format == "markdown") text = compare_markdown(*comparison);
  if (format == "junit") text = compare_junit(*comparison);
  const int written = write_out(output, text);
  return written != 0 ? written : comparison->exit_status();
}

struct HtmlCommand {
  CLI::App* command = nullptr;
  std::vector<std::string> paths;
  std::vector<std::string> logs;
  std::string output;
  std::string title = "NFS by transport";
  bool published = false;

  void add_to(CLI::App& app);
  int run() const;
};

void HtmlCommand::add_to(CLI::App& app) {
  command = app.add_subcommand("html", "One page with pictures and tables that needs no network");
  command->add_option("FILE", paths, "fio JSON files, stats_json files, or folders of them")
      ->required();
  command->add_option("-o,--output", output, "the page")->required();
  command->add_option("-l,--log", logs, "a log of fio's: NAME_lat.1.log, NAME_iops.1.log, ...")
      ->allow_extra_args(false);
  command->add_option("--title", title, "heading of the page")->capture_default_str();
  command->add_flag("--published", published,
                    "show the published figures of the same workload in grey (other hardware)");
}

int HtmlCommand::run() const {
  PageInputs page;
  page.title = title;
  auto inputs = load_inputs(paths);
  if (!inputs) return bad_input(inputs.error());
  page.runs = std::move(*inputs);
  for (const std::string& file : logs) {
    auto text = read_file(file);
    if (!text) return bad_input(text.error());
    auto log = read_fio_log(file, *text);
    if (!log) return bad_input(log.error());
    page.logs.push_back(std::move(*log));
  }
  if (published) {
    auto all = published_experiments();
    if (!all) return bad_input(all.error());
    page.experiments = std::move(*all);
  }
  print_notes(page.runs.notes);
  return write_out(output, make_page(page));
}

int run(int argc, char** argv) {
  CLI::App app{"Reports of fio runs over NFS, by transport."};
  app.require_subcommand(1);
  TableCommand table;
  CompareCommand compare;
  table.add_to(app);
  HtmlCommand html;
  compare.add_to(app);
  html.add_to(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitBadInput;
  }
  if (html.command->parsed()) return html.run();
  return compare.command->parsed() ? compare.run() : table.run();
}

}  // namespace
}  // namespace nfsrdma::results

int main(int argc, char** argv) {
  return nfsrdma::results::run(argc, argv);
}
