// SPDX-License-Identifier: GPL-2.0-or-later
// The report as one page that needs nothing but itself: no script, no network.
#pragma once

#include <string>
#include <vector>

#include "fio_log.h"
#include "inputs.h"
#include "published.h"

namespace nfsrdma::results {

struct PageInputs {
  Inputs runs;
  std::vector<FioLog> logs;
  std::vector<Experiment> experiments;
  std::string title;
};

std::string make_page(const PageInputs& inputs);

/// At most `count` points: means over equal spans of time, so that a spike is not lost between
/// the points drawn but shows in its mean.
std::vector<std::pair<double, double>> thin_out(
    const std::vector<std::pair<double, double>>& points, size_t count);

}  // namespace nfsrdma::results
