// SPDX-License-Identifier: GPL-2.0-or-later
// nfsrdma-results: what fio runs over NFS reached, and whether a change cost something.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "inputs.h"
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

int run(int argc, char** argv) {
  CLI::App app{"Reports of fio runs over NFS, by transport."};
  app.require_subcommand(1);
  TableCommand table;
  table.add_to(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitBadInput;
  }
  return table.run();
}

}  // namespace
}  // namespace nfsrdma::results

int main(int argc, char** argv) {
  return nfsrdma::results::run(argc, argv);
}
