// SPDX-License-Identifier: GPL-2.0-or-later
// What the reports share: jobs set side by side, and their figures as cells.
#pragma once

#include <string>
#include <vector>

#include "format.h"
#include "inputs.h"
#include "published.h"

namespace nfsrdma::results {

/// Rows of one job name with the same workload: what a reader sets side by side.
struct JobBlock {
  std::string title;
  std::vector<const JobRow*> rows;
  bool several_files = false;
  /// Published figures of this workload, unless an earlier block shows them already.
  std::vector<const Experiment*> experiments;
};

std::vector<JobBlock> make_blocks(const Inputs& inputs, const std::vector<Experiment>& experiments);

/// What a job ran, in a line: "randrw 70 % read, bs=8k, iodepth=16, 4 jobs, direct=1".
std::string describe_job(const JobRow& row);

/// A line for each transport and kind of operation, without the columns that would be empty.
Grid block_grid(const JobBlock& block);
Grid published_grid(const Experiment& experiment);
/// "published E1 (other hardware: ...; linux-nfs, C. Lever, 2018-09-10)".
std::string published_heading(const Experiment& experiment);
/// What the columns mean, in two lines.
std::string legend(const Inputs& inputs);
/// False for fsync, which has no bandwidth.
bool moves_data(const OperationRow& operation);

}  // namespace nfsrdma::results
