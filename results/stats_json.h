// SPDX-License-Identifier: GPL-2.0-or-later
// The engine's own statistics file (option stats_json=), one a fio run.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "latency.h"
#include "result.h"

namespace nfsrdma::results {

/// One NFS procedure over one transport, summed over the jobs of the run. As nfsiostat: queue is
/// the wait before the call was sent, rtt the wait for the reply, exe both.
struct ProcedureStats {
  uint64_t ops = 0;
  uint64_t errors = 0;
  uint64_t retrans = 0;
  uint64_t bytes = 0;
  Latency queue;
  Latency rtt;
  Latency exe;
};

/// Operations that ended in the interval before `t_ms`, by procedure.
struct SeriesPoint {
  double t_ms = 0;
  std::map<std::string, double> ops;
  std::map<std::string, double> mean_ns;  ///< exe in that interval, where the file tells it
};

struct TransportStats {
  std::string transport;
  std::string fabric;
  std::string server;
  std::map<std::string, std::string> negotiated;
  std::map<std::string, ProcedureStats> procedures;
  uint64_t connects = 0;
  uint64_t reconnects = 0;
  uint64_t credit_stalls = 0;
  uint64_t send_calls = 0;
  uint64_t recv_calls = 0;
  uint64_t depth_asked = 0;  ///< 0 where the file does not tell
  uint64_t depth_reached = 0;
  std::vector<SeriesPoint> series;

  uint64_t retransmissions() const;
};

struct StatsFile {
  std::string file;
  std::vector<TransportStats> transports;
};

bool looks_like_stats(const nlohmann::json& document);
/// Fails, naming the file, if it has no transport, or no operation at all.
Result<StatsFile> read_stats(const std::string& file, const nlohmann::json& document);

}  // namespace nfsrdma::results
