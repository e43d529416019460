// SPDX-License-Identifier: GPL-2.0-or-later
#include "html_charts.h"

#include <algorithm>
#include <map>

#include "html.h"
#include "svg.h"

namespace nfsrdma::results {
namespace {

constexpr size_t kPointsMax = 220;

/// The same colour for a transport throughout the page.
std::string colour_of(const std::string& transport) {
  if (transport == "tcp") return "c0";
  if (transport == "rdma/verbs") return "c2";
  return transport.starts_with("rdma") ? "c1" : "c3";
}

std::string series_name(const JobBlock& block, const JobRow& row) {
  const size_t slash = row.file.rfind('/');
  return block.several_files ? row.transport_name() + " (" + row.file.substr(slash + 1) + ")"
                             : row.transport_name();
}

std::string figure(const std::string& title, const std::string& svg, const std::string& key,
                   const std::string& caption) {
  if (svg.empty()) return "";
  return "<figure><h3>" + escape_markup(title) + "</h3>\n" + svg + key +
         (caption.empty() ? "" : "<figcaption>" + escape_markup(caption) + "</figcaption>") +
         "</figure>\n";
}

std::string key_of(const std::vector<Curve>& curves) {
  std::string out = "<div class=\"key\">";
  for (const Curve& curve : curves) {
    out +=
        "<span><svg viewBox=\"0 0 26 11\" aria-hidden=\"true\"><line x1=\"1\" y1=\"6\" x2=\"25\" "
        "y2=\"6\" class=\"stroke " +
        curve.css + "\"/></svg>" + escape_markup(curve.name) + "</span>";
  }
  return out + "</div>\n";
}

void add_published(const JobBlock& block, const std::string& figure_name,
                   std::vector<BarGroup>& groups) {
  for (const Experiment* experiment : block.experiments) {
    BarGroup group;
    group.published = true;
    group.heading = "published " + experiment->id + ", other hardware";
    for (const PublishedRow& row : experiment->rows) {
      if (row.figure(figure_name) <= 0) continue;
      group.bars.push_back({(row.transport.empty() ? "" : row.transport + ", ") + row.config,
                            row.figure(figure_name), "published", true});
    }
    if (!group.bars.empty()) groups.push_back(std::move(group));
  }
}

std::vector<std::pair<double, double>> percentile_points(const Latency& latency) {
  std::vector<std::pair<double, double>> points;
  if (latency.bins.empty()) {
    for (const auto& [p, ns] : latency.percentiles) points.emplace_back(p, ns / 1000);
    return points;
  }
  for (const double p :
       {50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9, 99.95, 99.99}) {
    points.emplace_back(p, latency.percentile(p).value_or(0) / 1000);
  }
  return points;
}

/// One curve of operations a second; the last interval is left out, since the run ended in it.
Curve rate_curve(const TransportStats& stats, const std::string& procedure,
                 const std::string& css) {
  Curve curve{procedure, css, {}};
  const std::vector<SeriesPoint>& series = stats.series;
  const double span_ms = series.back().t_ms - series.front().t_ms;
  const double interval_ms = span_ms / static_cast<double>(series.size() - 1);
  if (!(interval_ms > 0)) return curve;
  bool any = false;
  for (size_t i = 0; i + 1 < series.size(); i++) {
    const auto it = series[i].ops.find(procedure);
    const double ops = it == series[i].ops.end() ? 0 : it->second;
    any = any || ops > 0;
    curve.points.emplace_back(series[i].t_ms / 1000, ops * 1000 / interval_ms);
  }
  if (!any) curve.points.clear();
  curve.points = thin_out(curve.points, kPointsMax);
  return curve;
}

/// "tcp", "rdma/iwarp".
std::string full_name(const TransportStats& stats) {
  return stats.fabric.empty() ? stats.transport : stats.transport + "/" + stats.fabric;
}

std::string rate_figure(const TransportStats& stats, const std::string& name,
                        const std::vector<std::string>& procedures, const std::string& title) {
  std::vector<Curve> curves;
  const std::string colour = colour_of(full_name(stats));
  for (const std::string& procedure : procedures) {
    Curve curve = rate_curve(stats, procedure, colour + (procedure == "WRITE" ? " dash" : ""));
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  if (curves.empty()) return "";
  return figure(name + ", " + title, time_chart(name + " " + title, "per second", curves),
                key_of(curves), "");
}

std::string series_latency_figure(const TransportStats& stats, const std::string& name) {
  std::map<std::string, Curve> by_procedure;
  for (const SeriesPoint& point : stats.series) {
    for (const auto& [procedure, ns] : point.mean_ns) {
      Curve& curve = by_procedure[procedure];
      curve.name = procedure;
      curve.css = colour_of(full_name(stats)) + (procedure == "WRITE" ? " dash" : "");
      curve.points.emplace_back(point.t_ms / 1000, ns / 1000);
    }
  }
  std::vector<Curve> curves;
  for (auto& [procedure, curve] : by_procedure) {
    curve.points = thin_out(curve.points, kPointsMax);
    curves.push_back(std::move(curve));
  }
  if (curves.empty()) return "";
  return figure(name + ", latency over time", time_chart(name + " latency", "us", curves),
                key_of(curves), "Mean of each interval.");
}

}  // namespace

std::string iops_figure(const JobBlock& block) {
  std::vector<BarGroup> groups;
  for (const Direction d : {Direction::kRead, Direction::kWrite, Direction::kMixed}) {
    BarGroup group;
    group.heading = std::string(name_of(d)) + " IOPS";
    for (const JobRow* row : block.rows) {
      const OperationRow* operation = row->find(d);
      if (operation == nullptr) continue;
      const std::string shade = d == Direction::kWrite ? "w" : "";
      group.bars.push_back({series_name(block, *row), operation->iops,
                            colour_of(row->transport_name()) + shade, false});
    }
    if (group.bars.empty()) continue;
    groups.push_back(std::move(group));
    add_published(block, std::string(name_of(d)) + "_iops", groups);
  }
  if (groups.empty()) return "";
  std::string caption;
  for (const Experiment* experiment : block.experiments) {
    caption += (caption.empty() ? "Grey: " : "; ") + experiment->id + ", " + experiment->source() +
               ", " + experiment->hardware;
  }
  return figure("IOPS by transport", bar_chart(block.title + ": IOPS by transport", groups), "",
                caption.empty() ? "" : caption + ". Context, not a comparison.");
}

std::string latency_figure(const JobBlock& block) {
  std::vector<Curve> curves;
  for (const JobRow* row : block.rows) {
    for (const OperationRow& operation : row->operations) {
      Curve curve;
      curve.name = series_name(block, *row) + " " + name_of(operation.direction);
      curve.css = colour_of(row->transport_name());
      if (operation.direction != Direction::kRead) curve.css += " dash";
      curve.points = percentile_points(operation.latency);
      if (!curve.points.empty()) curves.push_back(std::move(curve));
    }
  }
  return figure("Latency by percentile", percentile_chart(block.title + ": latency", curves),
                key_of(curves),
                "Logarithmic; each step to the right has a tenth of the I/Os beyond it.");
}

std::string series_figures(const LoadedRun& run) {
  std::string jobs;
  for (const JobRow& row : run.rows) {
    if (jobs.find(row.job) == std::string::npos) jobs += (jobs.empty() ? "" : " and ") + row.job;
  }
  std::string out;
  for (const StatsFile& file : run.stats) {
    for (const TransportStats& stats : file.transports) {
      if (stats.series.size() < 3) continue;
      const std::string name = jobs + " over " + full_name(stats);
      out += rate_figure(stats, name, {"READ", "WRITE"}, "calls");
      out += rate_figure(stats, name, {"COMMIT"}, "COMMITs");
      out += series_latency_figure(stats, name);
    }
  }
  return out;
}

std::string log_figure(const FioLog& log) {
  std::map<int, Curve> by_direction;
  const bool is_time = log.kind.ends_with("lat");
  for (const LogSample& sample : log.samples) {
    Curve& curve = by_direction[sample.direction];
    curve.points.emplace_back(sample.t_ms / 1000, is_time ? sample.value / 1000 : sample.value);
  }
  std::vector<Curve> curves;
  for (auto& [direction, curve] : by_direction) {
    curve.name = direction == 0 ? "read" : direction == 1 ? "write" : "other";
    curve.css = direction == 0 ? "c3" : "c3 dash";
    curve.points = thin_out(curve.points, kPointsMax);
    curves.push_back(curve);
  }
  const std::string name = log.file.substr(log.file.rfind('/') + 1);
  const std::string unit = is_time ? "us" : log.kind == "bw" ? "KiB/s" : "IOPS";
  return figure(name, time_chart(name, unit, curves), key_of(curves),
                "fio's log, " + std::to_string(log.samples.size()) + " samples" +
                    (log.samples.size() > kPointsMax ? "; means of equal spans of time." : "."));
}

}  // namespace nfsrdma::results
