// SPDX-License-Identifier: GPL-2.0-or-later
// Options and settings that contradict each other, or ask for what cannot be: each with a sentence
// that says what to write instead.
#include <cerrno>
#include <string>

#include "engine_api.h"
#include "run_statistics.h"
#include "target.h"

namespace nfsrdma {
namespace {

constexpr unsigned long long kUncommittedLeast = 64 * 1024;
constexpr unsigned kDepthMax = 65536;
constexpr unsigned long long kBlockMax = 1ull << 30;

Result<Target> check(const nfsrdma_options& options, const nfsrdma_settings& settings) {
  if (settings.trims)
    return fail(EOPNOTSUPP,
                "rw=trim, randtrim, trimwrite: NFSv3 has no call that trims: write rw=write or "
                "rw=randwrite instead");
  if (settings.pre_read)
    return fail(EOPNOTSUPP,
                "pre_read=1 reads local files before any engine runs: leave it out, and put a job "
                "with rw=read and stonewall before this one instead");
  if (settings.offload)
    return fail(EOPNOTSUPP,
                "io_submit_mode=offload would need a connection for each I/O worker: leave it out, "
                "this engine submits without blocking");
  if (settings.depth > kDepthMax)
    return fail(EINVAL, "iodepth=" + std::to_string(settings.depth) + ": at most " +
                            std::to_string(kDepthMax) + "; use more jobs (numjobs=)");
  if (settings.block_max > kBlockMax)
    return fail(EINVAL, "bs=" + std::to_string(settings.block_max) + ": at most 1g");
  if (options.uncommitted_max != 0 && options.uncommitted_max < kUncommittedLeast)
    return fail(EINVAL, "uncommitted_max=" + std::to_string(options.uncommitted_max) +
                            ": write 0 to keep nothing, or at least 64k");
  return target_of(options);
}

}  // namespace
}  // namespace nfsrdma

extern "C" int nfsrdma_check(const nfsrdma_options* options, const nfsrdma_settings* settings) {
  const auto target = nfsrdma::check(*options, *settings);
  if (!target) {
    if (nfsrdma::first_to_say(target.error().text)) nfsrdma_log_error(target.error().text.c_str());
    return target.error().code;
  }
  if (settings->number == 1)  // once a run, not once a job
    for (const auto& warning : target->url.warnings) nfsrdma_log_info(warning.c_str());
  return 0;
}
