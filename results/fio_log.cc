// SPDX-License-Identifier: GPL-2.0-or-later
#include "fio_log.h"

#include <cerrno>
#include <cstdlib>

namespace nfsrdma::results {
namespace {

/// "e1_clat.3.log" is "clat"; empty if the name does not tell.
std::string kind_of(const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1);
  for (const char* kind : {"clat", "slat", "lat", "iops", "bw"}) {
    if (name.find(std::string("_") + kind + ".") != std::string::npos) return kind;
  }
  return "";
}

/// Reads "1005, 221000, 0, 8192, 0, 0x0000".
bool read_line(const char* line, LogSample& sample) {
  char* end = nullptr;
  sample.t_ms = std::strtod(line, &end);
  if (end == line || *end != ',') return false;
  const char* at = end + 1;
  sample.value = std::strtod(at, &end);
  if (end == at || *end != ',') return false;
  at = end + 1;
  sample.direction = static_cast<int>(std::strtol(at, &end, 10));
  return end != at && (*end == ',' || *end == '\n' || *end == '\0') && sample.t_ms >= 0 &&
         sample.value >= 0;
}

}  // namespace

Result<FioLog> read_fio_log(const std::string& file, const std::string& text) {
  FioLog log;
  log.file = file;
  log.kind = kind_of(file);
  if (log.kind.empty()) {
    return fail(EINVAL, file +
                            ": its name does not tell which of fio's logs it is (NAME_lat.1.log, "
                            "_clat, _slat, _iops or _bw)");
  }
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    number++;
    LogSample sample;
    if (!read_line(text.c_str() + at, sample)) {
      return fail(EBADMSG, file + ": line " + std::to_string(number) +
                               " is not a line of a fio log (time, value, direction, ...)");
    }
    log.samples.push_back(sample);
    const size_t newline = text.find('\n', at);
    if (newline == std::string::npos) {
      return fail(EBADMSG, file + ": truncated: line " + std::to_string(number) + " has no end");
    }
    at = newline + 1;
  }
  if (log.samples.empty()) return fail(EINVAL, file + ": holds no sample");
  return log;
}

}  // namespace nfsrdma::results
