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

}  // namespace nfsrdma::results
