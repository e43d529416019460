// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "samples.h"

namespace nfsrdma::results {
namespace {

/// `count` runs around `iops` that vary by `spread` (relative standard deviation).
Inputs make_set(const std::string& name, size_t count, double iops, double spread,
                const std::string& options = "", unsigned seed = 1) {
  Inputs set;
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, spread);
  for (size_t i = 0; i < count; i++) {
    const auto ios = static_cast<uint64_t>(iops * std::exp(noise(random)));
    const std::string file = name + "/" + std::to_string(i) + ".json";
    auto fio = parse(file, engine_run(engine_job("E1", options, ios)));
    EXPECT_TRUE(fio) << fio.error().text;
    LoadedRun run;
    run.fio = *fio;
    run.fio.timestamp_ms = 1000 * (i + 1) + seed;
    auto rows = make_rows(run.fio, set.notes);
    EXPECT_TRUE(rows) << rows.error().text;
    run.rows = *rows;
    set.runs.push_back(run);
  }
  return set;
}

CompareOptions only(const std::string& metric, double percent) {
  CompareOptions options;
  options.thresholds = {{metric, percent}};
  return options;
}

Result<Comparison> compare(const Inputs& a, const Inputs& b, const CompareOptions& options) {
  std::vector<std::string> notes;
  auto samples = collect_samples(a, b, options, notes);
  if (!samples) return tl::unexpected(samples.error());
  return judge(*samples, options);
}

int status(const Inputs& a, const Inputs& b, const CompareOptions& options) {
  auto comparison = compare(a, b, options);
  return comparison ? comparison->exit_status() : 2;
}

void expect_refused(const Inputs& a, const Inputs& b, const std::string& file,
                    const std::string& reason, const CompareOptions& options = {}) {
  auto comparison = compare(a, b, options);
  ASSERT_FALSE(comparison.has_value());
  EXPECT_EQ(comparison.error().text.find(file), 0U) << comparison.error().text;
  EXPECT_NE(comparison.error().text.find(reason), std::string::npos) << comparison.error().text;
}

TEST(Compare, ASlowDownBeyondTheThresholdIsARegression) {
  const Inputs a = make_set("A", 10, 100000, 0.01);
  EXPECT_EQ(status(a, make_set("B", 10, 95000, 0.01, "", 2), only("iops", 3)), 1);
  // Towards better there is no regression, however large the change.
  EXPECT_EQ(status(a, make_set("B", 10, 105000, 0.01, "", 2), only("iops", 3)), 0);
  // Significant, but below the threshold.
  EXPECT_EQ(status(a, make_set("B", 10, 95000, 0.01, "", 2), only("iops", 8)), 0);
}

TEST(Compare, MoreIsWorseForLatencyAndCpu) {
  // Equal CPU time for fewer operations: CPU per operation rises by 1/0.9.
  const Inputs a = make_set("A", 10, 100000, 0.01);
  const Inputs slow = make_set("B", 10, 90000, 0.01, "", 2);
  EXPECT_EQ(status(a, slow, only("cpu", 5)), 1);
  EXPECT_EQ(status(slow, a, only("cpu", 5)), 0);
}

TEST(Compare, NoiseIsNotTakenForARegression) {
  const Inputs a = make_set("A", 10, 100000, 0.2);
  const Inputs b = make_set("B", 10, 95000, 0.2, "", 2);
  EXPECT_EQ(status(a, b, only("iops", 3)), 3);
}

TEST(Compare, TooFewRunsSayHowMany) {
  const Inputs a = make_set("A", 3, 100000, 0.01);
  auto comparison = compare(a, make_set("B", 3, 50000, 0.01, "", 2), only("iops", 3));
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->exit_status(), 3);
  EXPECT_EQ(comparison->runs_needed, 4U);
  EXPECT_NE(comparison->conclusion().find("at least 4 runs a side"), std::string::npos)
      << comparison->conclusion();
}

TEST(Compare, OneSampleIsRefused) {
  const Inputs many = make_set("A", 10, 100000, 0.01);
  expect_refused(make_set("B", 1, 100000, 0.01, "", 2), many, "B/0.json", "one sample");
  expect_refused(many, make_set("B", 1, 100000, 0.01, "", 2), "B/0.json", "one sample");
}

TEST(Compare, SetsOfUnlikeRunsAreRefused) {
  const Inputs a = make_set("A", 5, 100000, 0.01);
  const struct {
    const char* options;
    const char* reason;
    const char* allow;
  } kCases[] = {
      {R"("iodepth":"32")", "iodepth 32, but in A/0.json with 16", "iodepth"},
      {R"("numjobs":"4")", "numjobs 4, but in A/0.json with 1", "numjobs"},
      {R"("nfs_url":"nfs://other:2049/export")", "server other/export", "server"},
      {R"("nfs_url":"nfs://127.0.0.1:2049/else")", "server 127.0.0.1/else", "server"},
      {R"("rw":"randwrite")", "rw randwrite", "rw"},
      {R"("ioengine":"external:/y/other.so","transport":"tcp")", "different jobs", "transport"},
      {R"("transport":"rdma")", "different jobs", "transport"},
  };
  for (const auto& wrong : kCases) {
    const Inputs b = make_set("B", 5, 100000, 0.01, wrong.options, 2);
    auto comparison = compare(a, b, {});
    ASSERT_FALSE(comparison.has_value()) << wrong.options;
    EXPECT_NE(comparison.error().text.find(wrong.reason), std::string::npos)
        << comparison.error().text;
    EXPECT_NE(comparison.error().text.find(".json: "), std::string::npos);
    CompareOptions told;
    told.allowed = {wrong.allow, "engine"};
    EXPECT_TRUE(compare(a, b, told).has_value()) << wrong.options;
  }
}

TEST(Compare, BlockSizeAndFioVersionMustAgree) {
  const Inputs a = make_set("A", 5, 100000, 0.01);
  Inputs b = make_set("B", 5, 100000, 0.01, "", 2);
  b.runs[3].rows[0].fio_version = "fio-3.36";
  expect_refused(a, b, "B/3.json: ", "fio fio-3.36, but in A/0.json with fio-3.33");
  b = make_set("B", 5, 100000, 0.01, "", 2);
  b.runs[4].rows[0].options["bs"] = "4k";
  expect_refused(a, b, "B/4.json: ", "bs 4096, but in A/0.json with 8192");
  // The same size in other words is the same; so is another port of the same server.
  b.runs[4].rows[0].options["bs"] = "8192";
  b.runs[4].rows[0].options["nfs_url"] = "nfs://127.0.0.1:4711/export?mountport=1";
  EXPECT_TRUE(compare(a, b, {}).has_value());
}

TEST(Compare, ARunCopiedIsNoSecondSample) {
  const Inputs a = make_set("A", 5, 100000, 0.01);
  Inputs b = make_set("B", 5, 100000, 0.01, "", 2);
  b.runs[2] = b.runs[0];
  b.runs[2].rows[0].file = "B/2.json";
  expect_refused(a, b, "B/2.json: ", "same run as B/0.json");
}

TEST(Compare, WideIntervalOnTheGoodSideIsNoNoise) {
  const Inputs a = make_set("A", 10, 100000, 0.08);
  auto comparison = compare(a, make_set("B", 10, 150000, 0.08, "", 2), only("iops", 3));
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->exit_status(), 0);
  EXPECT_NE(comparison->conclusion().find("better"), std::string::npos);
}

TEST(Compare, SplitTakesTurnsInOrderOfTime) {
  Inputs all = make_set("A", 6, 100000, 0.01);
  std::swap(all.runs[0], all.runs[5]);
  const auto [odd, even] = split_in_two(all);
  ASSERT_EQ(odd.runs.size(), 3U);
  EXPECT_EQ(odd.runs[0].fio.file, "A/0.json");
  EXPECT_EQ(even.runs[0].fio.file, "A/1.json");
  EXPECT_EQ(odd.runs[2].fio.file, "A/4.json");
}

// Holm: with many metrics, the chance that any of them is flagged stays below 5 %.
TEST(Compare, ManySplitsOfTheSameRarelyFlag) {
  int flagged = 0;
  for (unsigned seed = 0; seed < 200; seed++) {
    const Inputs a = make_set("A", 10, 100000, 0.05, "", 2 * seed + 1);
    const Inputs b = make_set("B", 10, 100000, 0.05, "", 2 * seed + 2);
    flagged += status(a, b, CompareOptions{}) == 1 ? 1 : 0;
  }
  EXPECT_LE(flagged, 10);
}

TEST(CompareOutput, TextMarkdownAndJunitSayTheSame) {
  auto comparison = compare(make_set("A", 10, 100000, 0.01), make_set("B", 10, 90000, 0.01, "", 2),
                            only("iops", 3));
  ASSERT_TRUE(comparison);
  comparison->name_a = "A";
  comparison->name_b = "<B>";
  const std::string text = compare_text(*comparison);
  EXPECT_NE(text.find("1 regression: E1 over tcp: read IOPS -"), std::string::npos) << text;
  const std::string markdown = compare_markdown(*comparison);
  EXPECT_NE(markdown.find("### 1 regression"), std::string::npos) << markdown;
  EXPECT_NE(markdown.find("**REGRESSION** |"), std::string::npos) << markdown;
  const std::string junit = compare_junit(*comparison);
  EXPECT_NE(junit.find("tests=\"1\" failures=\"1\" skipped=\"0\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("<failure message=\"read IOPS -"), std::string::npos) << junit;
  EXPECT_EQ(junit.find("<B>"), std::string::npos);
}

}  // namespace
}  // namespace nfsrdma::results
