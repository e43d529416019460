// SPDX-License-Identifier: GPL-2.0-or-later
// Figures that were posted to public mailing lists: context, never a yardstick.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "result.h"
#include "rows.h"

namespace nfsrdma::results {

struct PublishedRow {
  std::string config;
  std::string transport;  ///< empty where the post does not say
  std::map<std::string, double> figures;
  double figure(const std::string& name) const;  ///< 0 if absent
};

struct Experiment {
  std::string id;  ///< "E1"
  std::string title;
  std::string list, subject, author, date, hardware, note;
  std::map<std::string, std::string> workload;  ///< fio's options, where the post gives them
  std::vector<PublishedRow> rows;

  std::string source() const;  ///< "linux-nfs, C. Lever, 2018-09-10"
};

/// The experiments of results/published/, which the build puts into the tool.
Result<std::vector<Experiment>> published_experiments();
/// Reads one file of that form.
Result<Experiment> read_experiment(const std::string& file, const std::string& text);

/// The experiments that a job reproduces: the one its name begins with ("E1", "e1-8k"), else
/// each of the same rw, rwmixread and bs.
std::vector<const Experiment*> experiments_of(const JobRow& row,
                                              const std::vector<Experiment>& all);

/// Header texts of figures ("read_iops" is "read IOPS") in the order to show them.
std::vector<std::pair<std::string, std::string>> figure_columns(const Experiment& experiment);
std::string figure_text(const std::string& name, const PublishedRow& row);

}  // namespace nfsrdma::results
