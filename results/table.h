// SPDX-License-Identifier: GPL-2.0-or-later
// The report per transport: a line for each job, transport and kind of operation.
#pragma once

#include <string>
#include <vector>

#include "inputs.h"
#include "published.h"

namespace nfsrdma::results {

enum class TableFormat { kText, kMarkdown, kCsv, kList };

/// `experiments` are set beside the jobs that reproduce them; empty: none.
std::string make_table(const Inputs& inputs, TableFormat format,
                       const std::vector<Experiment>& experiments);

/// What a job ran, in a line: "randrw 70 % read, bs=8k, iodepth=16, 4 jobs, direct=1".
std::string describe_job(const JobRow& row);

}  // namespace nfsrdma::results
