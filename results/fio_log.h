// SPDX-License-Identifier: GPL-2.0-or-later
// fio's logs (write_lat_log, write_iops_log, ...): one line a sample.
#pragma once

#include <string>
#include <vector>

#include "result.h"

namespace nfsrdma::results {

struct LogSample {
  double t_ms = 0;
  double value = 0;   ///< ns in latency logs
  int direction = 0;  ///< 0 read, 1 write, 2 trim
};

struct FioLog {
  std::string file;
  std::string kind;  ///< lat, clat, slat, iops or bw; from the file's name
  std::vector<LogSample> samples;
};

/// Fails, naming file and line, at a line that is not "time, value, direction, ...", at a name
/// that does not tell the kind, or if there is no sample.
Result<FioLog> read_fio_log(const std::string& file, const std::string& text);

}  // namespace nfsrdma::results
