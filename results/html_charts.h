// SPDX-License-Identifier: GPL-2.0-or-later
// The figures of the page: which curves and bars there are, their colours and their keys.
#pragma once

#include <string>
#include <vector>

#include "blocks.h"
#include "fio_log.h"

namespace nfsrdma::results {

/// A <figure> each, or nothing where the runs do not tell.
std::string iops_figure(const JobBlock& block);
std::string latency_figure(const JobBlock& block);
std::string series_figures(const LoadedRun& run);
std::string log_figure(const FioLog& log);

}  // namespace nfsrdma::results
