// SPDX-License-Identifier: GPL-2.0-or-later
// The files of a command line: which are fio's, which are the engine's, and which belong together.
#pragma once

#include <string>
#include <vector>

#include "result.h"
#include "rows.h"

namespace nfsrdma::results {

/// One fio run: its rows, with what its stats_json file added.
struct LoadedRun {
  FioRun fio;
  std::vector<JobRow> rows;
  std::vector<StatsFile> stats;
};

struct Inputs {
  std::vector<LoadedRun> runs;
  /// Sentences on what could not be told, for standard error.
  std::vector<std::string> notes;
};

/// Reads files, and the *.json files of folders (and of theirs). A stats_json file goes to the
/// run that named it in its stats_json= option, else to the run whose file has the same name up
/// to the first dot, else to the only run; if none of these holds, loading fails.
Result<Inputs> load_inputs(const std::vector<std::string>& paths);

}  // namespace nfsrdma::results
