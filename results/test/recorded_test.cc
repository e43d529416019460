// SPDX-License-Identifier: GPL-2.0-or-later
// Recorded runs of this engine against nfsrdma-memd over tcp, a run a line, reduced to what the
// comparison reads. base: --delay-us 2000, one job at depth 16, 40 runs; slow: --delay-us 2120,
// which costs 5 % of IOPS, 20 runs, recorded in turns with base; busy: no delay, two jobs, 40 runs
// while other builds loaded the machine up to a factor of fifty.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "compare.h"
#include "samples.h"

namespace nfsrdma::results {
namespace {

std::vector<LoadedRun> recorded(const std::string& name) {
  std::vector<LoadedRun> runs;
  auto text = read_file(sample_path(name));
  EXPECT_TRUE(text) << text.error().text;
  std::istringstream lines(text ? *text : "");
  std::vector<std::string> notes;
  for (std::string line; std::getline(lines, line);) {
    LoadedRun run;
    auto fio = parse(name + ":" + std::to_string(runs.size() + 1), line);
    EXPECT_TRUE(fio) << fio.error().text;
    run.fio = *fio;
    auto rows = make_rows(run.fio, notes);
    EXPECT_TRUE(rows) << rows.error().text;
    run.rows = *rows;
    runs.push_back(run);
  }
  return runs;
}

/// Two sets of ten runs, drawn without a run twice, by a fixed seed.
std::pair<Inputs, Inputs> draw(std::vector<LoadedRun> from, unsigned seed) {
  std::mt19937 random(seed);
  // std::shuffle differs between libraries; this does not.
  for (size_t i = from.size() - 1; i > 0; i--) std::swap(from[i], from[random() % (i + 1)]);
  std::pair<Inputs, Inputs> sets;
  sets.first.runs.assign(from.begin(), from.begin() + 10);
  sets.second.runs.assign(from.begin() + 10, from.begin() + 20);
  return sets;
}

Comparison compare(const Inputs& a, const Inputs& b) {
  std::vector<std::string> notes;
  const CompareOptions options;
  auto samples = collect_samples(a, b, options, notes);
  EXPECT_TRUE(samples) << samples.error().text;
  return samples ? judge(*samples, options) : Comparison{};
}

TEST(Recorded, AgainstItselfIsFlaggedInNoneOfTwenty) {
  for (const char* name : {"recorded-base.jsonl", "recorded-busy.jsonl"}) {
    const std::vector<LoadedRun> runs = recorded(name);
    ASSERT_EQ(runs.size(), 40U);
    for (unsigned seed = 1; seed <= 20; seed++) {
      const auto [a, b] = draw(runs, seed);
      const Comparison comparison = compare(a, b);
      ASSERT_FALSE(comparison.judgements.empty());
      EXPECT_NE(comparison.exit_status(), 1) << name << " " << seed << "\n"
                                             << compare_text(comparison);
    }
  }
}

TEST(Recorded, ASlowDownOfFivePercentIsFlaggedInEachOfTwenty) {
  const std::vector<LoadedRun> base = recorded("recorded-base.jsonl");
  const std::vector<LoadedRun> slow = recorded("recorded-slow.jsonl");
  ASSERT_EQ(slow.size(), 20U);
  for (unsigned seed = 1; seed <= 20; seed++) {
    const Comparison comparison = compare(draw(base, seed).first, draw(slow, seed).second);
    EXPECT_EQ(comparison.exit_status(), 1) << seed << "\n" << compare_text(comparison);
    // The other way round it is an improvement.
    EXPECT_NE(compare(draw(slow, seed).first, draw(base, seed).second).exit_status(), 1) << seed;
  }
}

// A machine so busy must not be taken for one on which nothing changed.
TEST(Recorded, ABusyMachineIsCalledTooNoisy) {
  const auto [a, b] = draw(recorded("recorded-busy.jsonl"), 1);
  EXPECT_EQ(compare(a, b).exit_status(), 3);
}

}  // namespace
}  // namespace nfsrdma::results
