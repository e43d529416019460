// SPDX-License-Identifier: GPL-2.0-or-later
#include "html.h"

#include <algorithm>
#include <set>

#include "blocks.h"
#include "html_charts.h"
#include "html_style.h"

namespace nfsrdma::results {
namespace {

/// "rdma/iwarp against tcp: read IOPS +8.1 %, p99 -3.0 %": what a reader asks first.
std::string versus_tcp(const JobBlock& block) {
  const auto tcp = std::find_if(block.rows.begin(), block.rows.end(),
                                [](const JobRow* row) { return row->transport == "tcp"; });
  if (tcp == block.rows.end() || block.several_files) return "";
  std::string out;
  for (const JobRow* row : block.rows) {
    if (row->transport != "rdma") continue;
    std::string changes;
    for (const OperationRow& operation : row->operations) {
      const OperationRow* other = (*tcp)->find(operation.direction);
      if (other == nullptr || !moves_data(operation) || !(other->iops > 0)) continue;
      const std::string op = name_of(operation.direction);
      changes += (changes.empty() ? "" : ", ") + op + " IOPS " +
                 percent_change(operation.iops / other->iops);
      const auto p99 = operation.latency.percentile(99);
      const auto p99_tcp = other->latency.percentile(99);
      if (p99 && p99_tcp && *p99_tcp > 0) {
        changes += ", " + op + " p99 " + percent_change(*p99 / *p99_tcp);
      }
    }
    if (!changes.empty()) {
      out += "<p class=\"lead\">" +
             escape_markup(row->transport_name() + " against tcp: " + changes) + ".</p>\n";
    }
  }
  return out;
}

std::string facts(const Inputs& inputs) {
  std::set<std::string> versions;
  std::set<std::string> servers;
  for (const LoadedRun& run : inputs.runs) {
    versions.insert(run.fio.fio_version);
    for (const StatsFile& file : run.stats) {
      for (const TransportStats& stats : file.transports) servers.insert(stats.server);
    }
  }
  std::string out =
      std::to_string(inputs.runs.size()) + (inputs.runs.size() == 1 ? " run of " : " runs of ");
  for (const std::string& version : versions) out += version + " ";
  for (const std::string& server : servers) {
    if (!server.empty()) out += (server == *servers.begin() ? "against " : "and ") + server + " ";
  }
  out.pop_back();
  return "<p class=\"quiet\">" + escape_markup(out) + "</p>\n";
}

std::string block_section(const JobBlock& block) {
  const size_t colon = block.title.find(": ");
  std::string out = "<section>\n<h2>" + escape_markup(block.title.substr(0, colon)) + "</h2>\n";
  out += "<p class=\"quiet\">" + escape_markup(block.title.substr(colon + 2)) + "</p>\n";
  out += versus_tcp(block);
  out += "<div class=\"charts\">\n" + iops_figure(block) + latency_figure(block) + "</div>\n";
  out += block_grid(block).html();
  for (const Experiment* experiment : block.experiments) {
    out += "<details><summary>" + escape_markup(published_heading(*experiment)) +
           "</summary>\n<p>" +
           escape_markup("\"" + experiment->subject + "\". " + experiment->note) + "</p>\n" +
           published_grid(*experiment).html() + "</details>\n";
  }
  return out + "</section>\n";
}

/// What the engine counted, beyond what fio knows.
std::string counters(const Inputs& inputs) {
  Grid grid;
  grid.rows.push_back({"transport", "run", "negotiated", "depth reached", "connects", "reconnects",
                       "credit stalls", "send calls", "receive calls", "retransmissions"});
  grid.left = 3;
  for (const LoadedRun& run : inputs.runs) {
    for (const StatsFile& file : run.stats) {
      for (const TransportStats& stats : file.transports) {
        std::string negotiated;
        for (const auto& [key, value] : stats.negotiated) {
          negotiated += (negotiated.empty() ? "" : ", ") + key + " " + value;
        }
        grid.rows.push_back(
            {stats.fabric.empty() ? stats.transport : stats.transport + "/" + stats.fabric,
             run.fio.jobs.front().name, negotiated,
             stats.depth_asked > 0
                 ? std::to_string(stats.depth_reached) + " of " + std::to_string(stats.depth_asked)
                 : "-",
             std::to_string(stats.connects), std::to_string(stats.reconnects),
             std::to_string(stats.credit_stalls), std::to_string(stats.send_calls),
             std::to_string(stats.recv_calls), std::to_string(stats.retransmissions())});
      }
    }
  }
  return grid.rows.size() > 1 ? grid.html() : "";
}

std::string over_time(const PageInputs& inputs) {
  std::string charts;
  for (const LoadedRun& run : inputs.runs.runs) charts += series_figures(run);
  for (const FioLog& log : inputs.logs) charts += log_figure(log);
  if (charts.empty()) return "";
  return "<section>\n<h2>Over time</h2>\n<div class=\"charts\">\n" + charts +
         "</div>\n</section>\n";
}

}  // namespace

std::vector<std::pair<double, double>> thin_out(
    const std::vector<std::pair<double, double>>& points, size_t count) {
  if (points.size() <= count || count == 0) return points;
  const auto [first, last] = std::minmax_element(points.begin(), points.end());
  const double begin = first->first;
  const double span = last->first - begin;
  if (!(span > 0)) return {points.front()};
  std::vector<double> x(count, 0);
  std::vector<double> y(count, 0);
  std::vector<size_t> n(count, 0);
  for (const auto& [t, value] : points) {
    const auto at =
        std::min(count - 1, static_cast<size_t>((t - begin) / span * static_cast<double>(count)));
    x[at] += t;
    y[at] += value;
    n[at]++;
  }
  std::vector<std::pair<double, double>> thinned;
  for (size_t i = 0; i < count; i++) {
    const double size = static_cast<double>(n[i]);
    if (n[i] > 0) thinned.emplace_back(x[i] / size, y[i] / size);
  }
  return thinned;
}

std::string make_page(const PageInputs& inputs) {
  const std::string title = escape_markup(inputs.title);
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      title + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>" + title + "</h1>\n";
  out += facts(inputs.runs);
  for (const JobBlock& block : make_blocks(inputs.runs, inputs.experiments)) {
    out += block_section(block);
  }
  out += over_time(inputs);
  const std::string engine = counters(inputs.runs);
  if (!engine.empty()) out += "<section>\n<h2>Transports</h2>\n" + engine + "</section>\n";
  out += "<p class=\"quiet\">" + escape_markup(legend(inputs.runs)) + "</p>\n";
  for (const std::string& note : inputs.runs.notes) {
    out += "<p class=\"quiet\">Note: " + escape_markup(note) + "</p>\n";
  }
  return out + "</body>\n</html>\n";
}

}  // namespace nfsrdma::results
