// SPDX-License-Identifier: GPL-2.0-or-later
#include "stats_json.h"

#include <cerrno>

#include "json_read.h"

namespace nfsrdma::results {
namespace {

using nlohmann::json;

ProcedureStats read_procedure(const json& object) {
  ProcedureStats stats;
  stats.ops = count_or(object, "ops", 0);
  stats.errors = count_or(object, "errors", 0);
  stats.retrans = count_or(object, "retrans", 0);
  stats.bytes = count_or(object, "bytes", 0);
  stats.queue = read_latency(object_at(object, "queue_ns"));
  stats.rtt = read_latency(object_at(object, "rtt_ns"));
  stats.exe = read_latency(object_at(object, "exe_ns"));
  return stats;
}

SeriesPoint read_point(const json& object) {
  SeriesPoint point;
  point.t_ms = number_or(object, "t_ms", 0);
  for (const auto& [key, value] : object.items()) {
    if (key == "t_ms") continue;
    if (value.is_number()) point.ops[key] = value.get<double>();
    if (!value.is_object()) continue;
    point.ops[key] = number_or(value, "ops", 0);
    if (value.contains("exe_ns")) point.mean_ns[key] = number_or(value, "exe_ns", 0);
  }
  return point;
}

TransportStats read_transport(const json& object) {
  TransportStats stats;
  stats.transport = text_or(object, "transport", "");
  stats.fabric = text_or(object, "fabric", "");
  stats.server = text_or(object, "server", "");
  for (const auto& [key, value] : object_at(object, "negotiated").items()) {
    stats.negotiated[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  for (const auto& [key, value] : object_at(object, "procedures").items()) {
    if (value.is_object()) stats.procedures[key] = read_procedure(value);
  }
  stats.connects = count_or(object, "connects", 0);
  stats.reconnects = count_or(object, "reconnects", 0);
  stats.credit_stalls = count_or(object, "credit_stalls", 0);
  stats.send_calls = count_or(object, "send_calls", 0);
  stats.recv_calls = count_or(object, "recv_calls", 0);
  stats.depth_asked = count_or(object, "depth_asked", 0);
  stats.depth_reached = count_or(object, "depth_reached", 0);
  const auto series = object.find("series");
  if (series == object.end() || !series->is_array()) return stats;
  for (const json& point : *series) {
    if (point.is_object()) stats.series.push_back(read_point(point));
  }
  return stats;
}

}  // namespace

uint64_t TransportStats::retransmissions() const {
  uint64_t sum = 0;
  for (const auto& [name, procedure] : procedures) sum += procedure.retrans;
  return sum;
}

bool looks_like_stats(const json& document) {
  return document.contains("transports");
}

Result<StatsFile> read_stats(const std::string& file, const json& document) {
  const auto transports = document.find("transports");
  if (transports == document.end() || !transports->is_array()) {
    return fail(EBADMSG, file + ": is not a stats_json file (no array \"transports\")");
  }
  StatsFile stats;
  stats.file = file;
  uint64_t ops = 0;
  for (const json& entry : *transports) {
    if (!entry.is_object()) {
      return fail(EBADMSG, file + ": an entry of \"transports\" is not an object");
    }
    stats.transports.push_back(read_transport(entry));
    if (stats.transports.back().transport.empty()) {
      return fail(EBADMSG, file + ": an entry of \"transports\" does not name its transport");
    }
    for (const auto& [name, procedure] : stats.transports.back().procedures) ops += procedure.ops;
  }
  if (ops == 0) return fail(EINVAL, file + ": counts no operation: the run did no I/O");
  return stats;
}

}  // namespace nfsrdma::results
