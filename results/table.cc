// SPDX-License-Identifier: GPL-2.0-or-later
#include "table.h"

#include "blocks.h"

namespace nfsrdma::results {
namespace {

std::string wrap(const std::string& text, const std::string& indent, size_t width) {
  std::string out;
  std::string line = indent;
  size_t at = 0;
  while (at < text.size()) {
    const size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (line.size() > indent.size() && display_width(line) + word.size() + 1 > width) {
      out += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + word;
    at = space + 1;
  }
  return out + line + "\n";
}

std::string make_text(const Inputs& inputs, const std::vector<Experiment>& experiments) {
  std::string out;
  for (const JobBlock& block : make_blocks(inputs, experiments)) {
    out += block.title + "\n" + block_grid(block).text();
    for (const Experiment* experiment : block.experiments) {
      out += "\n" + wrap(published_heading(*experiment), "  ", 100);
      out += published_grid(*experiment).text(100, "  ");
    }
    out += "\n";
  }
  return out + legend(inputs);
}

std::string make_markdown(const Inputs& inputs, const std::vector<Experiment>& experiments) {
  std::string out;
  for (const JobBlock& block : make_blocks(inputs, experiments)) {
    out += "**" + block.title + "**\n\n" + block_grid(block).markdown() + "\n";
    for (const Experiment* experiment : block.experiments) {
      out += "*" + published_heading(*experiment) + "*\n\n" +
             published_grid(*experiment).markdown() + "\n";
    }
  }
  return out + legend(inputs);
}

std::string exact(const std::optional<double>& value) {
  return value ? fixed(*value, 3) : "";
}

std::string exact_us(const std::optional<double>& ns) {
  return ns ? fixed(*ns / 1000, 3) : "";
}

std::string procedure_us(const OperationRow& operation, Latency ProcedureStats::*part) {
  if (!operation.procedure || ((*operation.procedure).*part).count == 0) return "";
  return fixed(((*operation.procedure).*part).mean_ns / 1000, 3);
}

std::string csv_row(const JobRow& row, const OperationRow& operation) {
  const Latency& latency = operation.latency;
  const bool data = moves_data(operation);
  return csv_line({"measured",
                   row.file,
                   row.transport,
                   row.fabric,
                   row.job,
                   name_of(operation.direction),
                   fixed(operation.iops, 3),
                   data ? fixed(operation.bytes_per_s, 0) : "",
                   data ? std::to_string(operation.bytes) : "",
                   std::to_string(operation.runtime_ms),
                   row.total_latency ? "total" : "completion",
                   fixed(latency.mean_ns / 1000, 3),
                   exact_us(latency.percentile(50)),
                   exact_us(latency.percentile(99)),
                   exact_us(latency.percentile(99.9)),
                   procedure_us(operation, &ProcedureStats::queue),
                   procedure_us(operation, &ProcedureStats::rtt),
                   procedure_us(operation, &ProcedureStats::exe),
                   data ? exact(row.cpu_us_per_op) : "",
                   operation.procedure ? std::to_string(operation.procedure->retrans) : ""});
}

std::string csv_published(const Experiment& experiment, const std::string& job) {
  std::string out;
  for (const PublishedRow& row : experiment.rows) {
    for (const char* op : {"read", "write"}) {
      const std::string prefix = op;
      const double iops = row.figure(prefix + "_iops");
      const double mib = row.figure(prefix + "_mib_s");
      const double mean_us =
          row.figure(prefix + "_us_mean") + 1e6 * row.figure(prefix + "_latency_s");
      const double runtime_ms = row.figure("runtime_ms");
      if (iops == 0 && mib == 0 && mean_us == 0) continue;
      const auto given = [](double value) { return value > 0 ? fixed(value, 0) : std::string(); };
      out += csv_line({"published, other hardware",
                       experiment.id + " " + row.config + " (" + experiment.source() + ")",
                       row.transport,
                       "",
                       job,
                       op,
                       given(iops),
                       given(mib * 1048576),
                       "",
                       given(runtime_ms),
                       "",
                       given(mean_us),
                       "",
                       "",
                       "",
                       "",
                       "",
                       "",
                       "",
                       ""});
    }
  }
  return out;
}

std::string make_csv(const Inputs& inputs, const std::vector<Experiment>& experiments) {
  std::string out =
      csv_line({"kind",     "source",  "transport",   "fabric",        "job",
                "op",       "iops",    "bytes_per_s", "bytes",         "runtime_ms",
                "latency",  "mean_us", "p50_us",      "p99_us",        "p99.9_us",
                "queue_us", "rtt_us",  "exe_us",      "cpu_us_per_op", "retransmissions"});
  for (const JobBlock& block : make_blocks(inputs, experiments)) {
    for (const JobRow* row : block.rows) {
      for (const OperationRow& operation : row->operations) out += csv_row(*row, operation);
    }
    for (const Experiment* experiment : block.experiments) {
      out += csv_published(*experiment, block.rows.front()->job);
    }
  }
  return out;
}

std::string list_line(const JobRow& row, const OperationRow& operation) {
  std::string line = std::string("  - ") + row.transport_name() + " " +
                     name_of(operation.direction) + ": IOPS=" + short_count(operation.iops);
  if (!moves_data(operation)) return line + "\n";
  return line + ", BW=" + bandwidth(operation.bytes_per_s) + " (" + amount(operation.bytes) + "/" +
         std::to_string(operation.runtime_ms) + "msec)\n";
}

std::string list_published(const Experiment& experiment) {
  std::string out = wrap(published_heading(experiment), "  ", 100);
  for (const PublishedRow& row : experiment.rows) {
    std::string line = row.transport + (row.transport.empty() ? "" : " ") + row.config + ":";
    for (const auto& [name, title] : figure_columns(experiment)) {
      if (row.figures.contains(name)) line += " " + title + "=" + figure_text(name, row);
    }
    out += "  - " + line + "\n";
  }
  return out;
}

/// As fio results are quoted in posts: a bullet for each direction.
std::string make_list(const Inputs& inputs, const std::vector<Experiment>& experiments) {
  std::string out;
  for (const JobBlock& block : make_blocks(inputs, experiments)) {
    out += "- " + block.title + "\n";
    for (const JobRow* row : block.rows) {
      for (const OperationRow& operation : row->operations) out += list_line(*row, operation);
    }
    for (const Experiment* experiment : block.experiments) {
      out += list_published(*experiment);
    }
  }
  return out;
}

}  // namespace

std::string make_table(const Inputs& inputs, TableFormat format,
                       const std::vector<Experiment>& experiments) {
  switch (format) {
    case TableFormat::kText:
      return make_text(inputs, experiments);
    case TableFormat::kMarkdown:
      return make_markdown(inputs, experiments);
    case TableFormat::kCsv:
      return make_csv(inputs, experiments);
    case TableFormat::kList:
      return make_list(inputs, experiments);
  }
  return "";
}

}  // namespace nfsrdma::results
