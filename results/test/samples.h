// SPDX-License-Identifier: GPL-2.0-or-later
// Samples for the tests: fio 3.33's own output in data/, and small documents built in place.
#pragma once

#include <cstdlib>
#include <string>

#include "fio_json.h"
#include "inputs.h"
#include "json_read.h"

namespace nfsrdma::results {

inline std::string sample_path(const std::string& name) {
  const char* folder = std::getenv("RESULTS_DATA");
  return std::string(folder != nullptr ? folder : "results/test/data") + "/" + name;
}

inline Result<FioRun> parse(const std::string& file, const std::string& text) {
  auto documents = json_objects(file, text);
  if (!documents) return tl::unexpected(documents.error());
  return read_fio_run(file, *documents);
}

inline Result<FioRun> sample_run(const std::string& name) {
  auto text = read_file(sample_path(name));
  if (!text) return tl::unexpected(text.error());
  return parse(name, *text);
}

/// One job of our engine: `options` are JSON members, "" or "\"transport\":\"rdma\",...".
inline std::string engine_job(const std::string& name, const std::string& options,
                              uint64_t ios = 10000, uint64_t runtime_ms = 1000) {
  const std::string bytes = std::to_string(ios * 8192);
  const std::string clat =
      R"({"min":1000,"max":900000,"mean":221000.0,"N":)" + std::to_string(ios) +
      R"(,"percentile":{"50.000000":200000,"99.000000":627000,"99.900000":800000}})";
  return R"({"jobname":")" + name + R"(","groupid":0,"error":0,"job options":{)" + options +
         R"(},"read":{"io_bytes":)" + bytes + R"(,"total_ios":)" + std::to_string(ios) +
         R"(,"short_ios":0,"runtime":)" + std::to_string(runtime_ms) + R"(,"clat_ns":)" + clat +
         R"(,"lat_ns":{"min":1,"max":2,"mean":230000.0,"N":)" + std::to_string(ios) +
         R"(}},"write":{"total_ios":0},"sync":{"total_ios":0},"job_runtime":)" +
         std::to_string(runtime_ms) + R"(,"usr_cpu":3.0,"sys_cpu":5.0})";
}

inline std::string engine_run(const std::string& jobs) {
  return R"({"fio version":"fio-3.33","timestamp_ms":1000,"global options":{)"
         R"("ioengine":"external:/x/libnfsrdma.so","bs":"8k","iodepth":"16","rw":"randread",)"
         R"("nfs_url":"nfs://127.0.0.1:2049/export"},"jobs":[)" +
         jobs + "]}";
}

}  // namespace nfsrdma::results
