// SPDX-License-Identifier: GPL-2.0-or-later
// The summary behind a run and stats_json: the records of all jobs, added up for each server and
// transport, with the names of nfsiostat and mountstats.
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "run_statistics.h"

namespace nfsrdma {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kUs = 1000;
constexpr double kMiB = 1024 * 1024;

struct Group {
  const JobRecord* first = nullptr;
  uint32_t jobs = 0;
  uint32_t connections = 0;
  uint64_t depth = 0;  // iodepth, summed
  std::unique_ptr<SessionStatistics> sum = std::make_unique<SessionStatistics>();
};

std::vector<Group> groups() {
  std::vector<Group> found;
  for (uint32_t number = 1; number <= kJobsMax; ++number) {
    const JobRecord* job = job_record(number);
    if (job == nullptr) break;
    if (job->state == JobState::kUnused || job->transport[0] == '\0') continue;
    Group* group = nullptr;
    for (Group& each : found)
      if (std::string_view(each.first->transport) == job->transport &&
          std::string_view(each.first->fabric) == job->fabric &&
          std::string_view(each.first->server) == job->server)
        group = &each;
    if (group == nullptr) {
      group = &found.emplace_back();
      group->first = job;
    }
    ++group->jobs;
    group->connections += job->connections;
    group->depth += job->depth;
    group->sum->merge(job->statistics);
  }
  return found;
}

__attribute__((format(printf, 2, 3))) void append(std::string& to, const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  to += line;
}

void append_procedure(std::string& to, const char* name, const ProcedureStatistics& of) {
  append(to, "  %-6s  %10" PRIu64 " ops  %9.1f MiB  errors %" PRIu64 "  retrans %" PRIu64 "\n",
         name, of.ops, static_cast<double>(of.bytes) / kMiB, of.errors, of.retrans);
  if (of.exe.count() == 0) return;
  const auto us = [](double ns) { return ns / kUs; };
  append(to,
         "          mean us: queue %.1f, rtt %.1f, exe %.1f;  p99 us: queue %.1f, rtt %.1f, exe "
         "%.1f\n",
         us(of.queue.mean()), us(of.rtt.mean()), us(of.exe.mean()),
         us(static_cast<double>(of.queue.percentile(99))),
         us(static_cast<double>(of.rtt.percentile(99))),
         us(static_cast<double>(of.exe.percentile(99))));
}

void append_group(std::string& to, const Group& group) {
  const SessionStatistics& sum = *group.sum;
  const JobRecord& first = *group.first;
  append(to, "\nnfsrdma: %s%s%s to %s: %u job%s, %u connection%s\n", first.transport,
         first.fabric[0] != '\0' ? "/" : "", first.fabric, first.server, group.jobs,
         group.jobs == 1 ? "" : "s", group.connections, group.connections == 1 ? "" : "s");
  for (size_t i = 0; i < kStatProcedures; ++i)
    if (sum.procedures[i].ops != 0) append_procedure(to, kStatProcedureNames[i], sum.procedures[i]);
  append(to,
         "  depth reached %" PRIu64 " of %" PRIu64 " asked;  reconnects %" PRIu64
         "  credit stalls %" PRIu64 "  system calls: send %" PRIu64 ", receive %" PRIu64 "\n",
         sum.depth_max, group.depth, sum.reconnects, sum.credit_stalls, sum.send_calls,
         sum.recv_calls);
  if (sum.verifier_changes != 0 || sum.resent_writes != 0 || sum.lost_writes != 0)
    append(to,
           "  server restarts seen %" PRIu64 ";  unstable writes sent again %" PRIu64
           " (%.1f MiB), lost %" PRIu64 "\n",
           sum.verifier_changes, sum.resent_writes, static_cast<double>(sum.resent_bytes) / kMiB,
           sum.lost_writes);
  if (sum.bad_replies != 0)
    append(to, "  replies dropped (late, repeated or unknown) %" PRIu64 "\n", sum.bad_replies);
  std::string agreed;
  for (const char* at = first.negotiated; *at != '\0'; ++at)
    agreed += *at == '\n' ? std::string(at[1] != '\0' ? ", " : "") : std::string(1, *at);
  if (!agreed.empty()) append(to, "  %s\n", agreed.c_str());
}

// The form of fio's latency objects in json+.
Json latency(const Histogram& of) {
  Json to;
  to["min"] = of.min();
  to["max"] = of.max();
  to["mean"] = of.mean();
  to["N"] = of.count();
  Json percentiles = Json::object();
  for (const double percent :
       {1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99}) {
    char name[16];
    std::snprintf(name, sizeof name, "%.6f", percent);
    percentiles[name] = of.percentile(percent);
  }
  to["percentile"] = std::move(percentiles);
  Json bins = Json::object();
  for (uint32_t i = 0; i < Histogram::kBuckets; ++i)
    if (of.bucket_count(i) != 0) bins[std::to_string(Histogram::value_of(i))] = of.bucket_count(i);
  to["bins"] = std::move(bins);
  return to;
}

Json procedure(const ProcedureStatistics& of) {
  Json to;
  to["ops"] = of.ops;
  to["errors"] = of.errors;
  to["retrans"] = of.retrans;
  to["bytes"] = of.bytes;
  to["queue_ns"] = latency(of.queue);
  to["rtt_ns"] = latency(of.rtt);
  to["exe_ns"] = latency(of.exe);
  return to;
}

Json negotiated(const char* lines) {
  Json to = Json::object();
  std::string_view left(lines);
  while (!left.empty()) {
    const size_t end = left.find('\n');
    const std::string_view line = left.substr(0, end);
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos)
      to[std::string(line.substr(0, equals))] = line.substr(equals + 1);
    if (end == std::string_view::npos) break;
    left.remove_prefix(end + 1);
  }
  return to;
}

}  // namespace

std::string summary_text() {
  std::string text;
  for (const Group& group : groups()) append_group(text, group);
  return text;
}

std::string statistics_json() {
  Json root;
  root["version"] = 1;
  root["transports"] = Json::array();
  for (const Group& group : groups()) {
    const SessionStatistics& sum = *group.sum;
    Json to;
    to["transport"] = group.first->transport;
    to["fabric"] = group.first->fabric;
    to["server"] = group.first->server;
    to["jobs"] = group.jobs;
    to["connections"] = group.connections;
    to["negotiated"] = negotiated(group.first->negotiated);
    Json procedures = Json::object();
    for (size_t i = 0; i < kStatProcedures; ++i)
      if (sum.procedures[i].ops != 0)
        procedures[kStatProcedureNames[i]] = procedure(sum.procedures[i]);
    to["procedures"] = std::move(procedures);
    to["connects"] = sum.connects;
    to["reconnects"] = sum.reconnects;
    to["credit_stalls"] = sum.credit_stalls;
    to["send_calls"] = sum.send_calls;
    to["recv_calls"] = sum.recv_calls;
    to["bad_replies"] = sum.bad_replies;
    to["depth_asked"] = group.depth;
    to["depth_reached"] = sum.depth_max;
    to["verifier_changes"] = sum.verifier_changes;
    to["resent_writes"] = sum.resent_writes;
    to["resent_bytes"] = sum.resent_bytes;
    to["lost_writes"] = sum.lost_writes;
    to["series"] = Json::array();
    for (uint32_t second = 0; second < sum.seconds; ++second) {
      const SeriesPoint& point = sum.series[second];
      to["series"].push_back({{"t_ms", second * 1000},
                              {"READ", point.ops[0]},
                              {"WRITE", point.ops[1]},
                              {"COMMIT", point.ops[2]}});
    }
    root["transports"].push_back(std::move(to));
  }
  return root.dump(1) + "\n";
}

}  // namespace nfsrdma
