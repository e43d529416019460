// SPDX-License-Identifier: GPL-2.0-or-later
#include "blocks.h"

#include <algorithm>
#include <set>

namespace nfsrdma::results {
namespace {

std::string optional_us(const std::optional<double>& ns) {
  return ns ? microseconds(*ns) : "-";
}

std::string mean_of(const OperationRow& operation, Latency ProcedureStats::*part) {
  if (!operation.procedure || ((*operation.procedure).*part).count == 0) return "-";
  return microseconds(((*operation.procedure).*part).mean_ns);
}

std::string retransmissions(const OperationRow& operation) {
  return operation.procedure ? std::to_string(operation.procedure->retrans) : "-";
}

const std::vector<std::string>& header() {
  static const std::vector<std::string> kHeader{"transport", "fabric", "op",     "IOPS",  "MiB/s",
                                                "mean",      "p50",    "p99",    "p99.9", "queue",
                                                "rtt",       "exe",    "CPU/op", "retr"};
  return kHeader;
}

std::vector<std::string> cells(const JobRow& row, const OperationRow& operation) {
  return {row.transport,
          row.fabric.empty() ? "-" : row.fabric,
          name_of(operation.direction),
          short_count(operation.iops),
          moves_data(operation) ? short_number(operation.bytes_per_s / 1048576) : "-",
          microseconds(operation.latency.mean_ns),
          optional_us(operation.latency.percentile(50)),
          optional_us(operation.latency.percentile(99)),
          optional_us(operation.latency.percentile(99.9)),
          mean_of(operation, &ProcedureStats::queue),
          mean_of(operation, &ProcedureStats::rtt),
          mean_of(operation, &ProcedureStats::exe),
          row.cpu_us_per_op && moves_data(operation) ? short_number(*row.cpu_us_per_op) : "-",
          retransmissions(operation)};
}

/// Takes out the columns in which no row has anything to say.
void drop_empty_columns(Grid& grid) {
  for (size_t c = grid.rows.front().size(); c-- > grid.left;) {
    const bool is_empty = std::all_of(grid.rows.begin() + 1, grid.rows.end(),
                                      [c](const auto& row) { return row[c] == "-"; });
    if (!is_empty) continue;
    for (auto& row : grid.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
  }
}

bool any_total_latency(const Inputs& inputs, bool wanted) {
  for (const LoadedRun& run : inputs.runs) {
    for (const JobRow& row : run.rows) {
      if (row.total_latency == wanted) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<JobBlock> make_blocks(const Inputs& inputs,
                                  const std::vector<Experiment>& experiments) {
  std::vector<JobBlock> blocks;
  for (const LoadedRun& run : inputs.runs) {
    for (const JobRow& row : run.rows) {
      const std::string title = row.job + ": " + describe_job(row);
      auto it = std::find_if(blocks.begin(), blocks.end(),
                             [&](const JobBlock& block) { return block.title == title; });
      if (it == blocks.end()) it = blocks.insert(blocks.end(), JobBlock{title, {}, false, {}});
      for (const JobRow* other : it->rows) {
        if (other->transport_name() == row.transport_name()) it->several_files = true;
      }
      it->rows.push_back(&row);
    }
  }
  std::set<const Experiment*> shown;
  for (JobBlock& block : blocks) {
    for (const Experiment* experiment : experiments_of(*block.rows.front(), experiments)) {
      if (shown.insert(experiment).second) block.experiments.push_back(experiment);
    }
  }
  return blocks;
}

bool moves_data(const OperationRow& operation) {
  return operation.direction != Direction::kSync;
}

Grid block_grid(const JobBlock& block) {
  Grid grid;
  grid.left = 3;
  grid.rows.push_back(header());
  for (const JobRow* row : block.rows) {
    for (const OperationRow& operation : row->operations) {
      grid.rows.push_back(cells(*row, operation));
      if (block.several_files) grid.rows.back().push_back(row->file);
    }
  }
  if (block.several_files) grid.rows.front().push_back("file");
  drop_empty_columns(grid);
  return grid;
}

Grid published_grid(const Experiment& experiment) {
  Grid grid;
  grid.left = 2;
  grid.rows.push_back({"transport", "configuration"});
  const auto columns = figure_columns(experiment);
  for (const auto& [name, title] : columns) grid.rows.front().push_back(title);
  for (const PublishedRow& row : experiment.rows) {
    std::vector<std::string> line{row.transport.empty() ? "-" : row.transport, row.config};
    for (const auto& [name, title] : columns) line.push_back(figure_text(name, row));
    grid.rows.push_back(std::move(line));
  }
  return grid;
}

std::string published_heading(const Experiment& experiment) {
  return "published " + experiment.id + " (other hardware: " + experiment.hardware + "; " +
         experiment.source() + ")";
}

std::string legend(const Inputs& inputs) {
  std::string which = "fio's completion latency (from issue)";
  if (any_total_latency(inputs, true)) {
    which = any_total_latency(inputs, false)
                ? "fio's total latency where the run has its percentiles, else completion latency"
                : "fio's total latency (from fio's queue)";
  }
  return "Times in us. mean and percentiles: " + which +
         ".\nCPU/op: user and system time of the client's processes per read or write.\n";
}

std::string describe_job(const JobRow& row) {
  const auto option = [&](const char* key, const char* fallback) {
    const auto it = row.options.find(key);
    return it == row.options.end() ? std::string(fallback) : it->second;
  };
  std::string text = option("rw", "read");
  if (text.ends_with("rw") || text == "readwrite") {
    text += " " + option("rwmixread", "50") + " % read";
  }
  text += ", bs=" + option("bs", "4k") + ", iodepth=" + option("iodepth", "1") + ", " +
          std::to_string(row.numjobs) + (row.numjobs == 1 ? " job" : " jobs");
  if (row.options.contains("direct")) text += ", direct=" + option("direct", "1");
  return text;
}

}  // namespace nfsrdma::results
