// SPDX-License-Identifier: GPL-2.0-or-later
#include "fio_json.h"

#include <gtest/gtest.h>

#include "samples.h"

namespace nfsrdma::results {
namespace {

using testing::Test;

void expect_error(const Result<FioRun>& run, const std::string& file, const std::string& reason) {
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().text.find(file + ": "), 0U) << run.error().text;
  EXPECT_NE(run.error().text.find(reason), std::string::npos) << run.error().text;
}

TEST(FioJson, ReadsGroupedRun) {
  auto run = sample_run("grouped.json");
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_EQ(run->fio_version, "fio-3.33");
  ASSERT_EQ(run->jobs.size(), 1U);
  const FioJob& job = run->jobs[0];
  EXPECT_EQ(job.option("ioengine"), "libaio");
  EXPECT_EQ(job[Direction::kRead].ios + job[Direction::kWrite].ios, 256U);
  EXPECT_EQ(job[Direction::kRead].bytes, job[Direction::kRead].ios * 8192);
}

// fio prints both its percentiles and its bins: what we read from the bins must be the former.
TEST(FioJson, PercentilesOfBinsAreThoseOfFio) {
  for (const char* name : {"grouped.json", "client.json", "ungrouped-bins.json"}) {
    auto run = sample_run(name);
    ASSERT_TRUE(run) << run.error().text;
    for (const FioJob& job : run->jobs) {
      for (const Direction d : {Direction::kRead, Direction::kWrite}) {
        const Latency& latency = job[d].clat;
        if (latency.count == 0) continue;
        ASSERT_FALSE(latency.bins.empty());
        for (const auto& [p, value] : latency.percentiles) {
          EXPECT_EQ(latency.percentile(p), value) << name << " p" << p;
        }
      }
    }
  }
}

TEST(FioJson, ClientSumIsLeftOutAndHostsAreKept) {
  auto run = sample_run("client.json");
  ASSERT_TRUE(run) << run.error().text;
  ASSERT_EQ(run->jobs.size(), 6U);
  for (const FioJob& job : run->jobs) {
    EXPECT_EQ(job.host, "127.0.0.1:18765");
    EXPECT_NE(job.name, "All clients");
  }
}

TEST(FioJson, SkipsWhatFioPrintsAroundTheJson) {
  auto run = sample_run("mixed-output.txt");
  ASSERT_TRUE(run) << run.error().text;
  ASSERT_EQ(run->jobs.size(), 1U);
  EXPECT_EQ(run->jobs[0][Direction::kWrite].ios, 128U);
  EXPECT_GT(run->jobs[0][Direction::kSync].ios, 0U);
  EXPECT_TRUE(run->jobs[0][Direction::kSync].clat.has_percentiles());
}

TEST(FioJson, LastStatusCounts) {
  auto run = sample_run("status-interval.json");
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_NEAR(static_cast<double>(run->jobs[0][Direction::kRead].ios), 3000, 30);
}

TEST(FioJson, SeveralRunsInAFileAreRefused) {
  const std::string text = engine_run(engine_job("a", "")) + "\n" + engine_run(engine_job("b", ""));
  expect_error(parse("two.json", text), "two.json", "several runs");
}

TEST(FioJson, FailedRunIsRefused) {
  expect_error(sample_run("failed.json"), "failed.json", "error 28 (No space left on device)");
}

TEST(FioJson, IoErrorsAreRefused) {
  std::string text = engine_run(engine_job("a", ""));
  text.insert(text.find("\"error\":0"), "\"total_err\":3,");
  expect_error(parse("e.json", text), "e.json", "3 I/O errors");
}

TEST(FioJson, RunWithoutIoIsRefused) {
  expect_error(sample_run("zero.json"), "zero.json", "zero operations");
  expect_error(parse("x.json", engine_run("")), "x.json", "no job");
}

TEST(FioJson, GroupOfUnlikeJobsIsRefused) {
  expect_error(sample_run("unlike-group.json"), "unlike-group.json", "mixes unlike jobs");
}

TEST(FioJson, TooShortToMeasureIsRefused) {
  expect_error(parse("x.json", engine_run(engine_job("a", "", 10, 0))), "x.json", "millisecond");
}

// Cut at every place: never a run, always the file's name, never a crash.
TEST(FioJson, EveryTruncationIsRefused) {
  const std::string whole = engine_run(engine_job("a", ""));
  ASSERT_TRUE(parse("x.json", whole));
  for (size_t size = 0; size < whole.size(); size++) {
    const auto run = parse("x.json", whole.substr(0, size));
    ASSERT_FALSE(run.has_value()) << size;
    ASSERT_EQ(run.error().text.find("x.json: "), 0U);
  }
}

TEST(FioJson, OtherOutputInsideTheJsonIsNamedByLine) {
  std::string text = engine_run(engine_job("a", ""));
  text.insert(text.find("\"jobs\""), "\nfio: server went away\n");
  expect_error(parse("x.json", text), "x.json", "line 2");
}

TEST(FioJson, WrongKindsOfMembersAreNoCrash) {
  for (const char* text :
       {"{}", "{\"jobs\":3}", "{\"jobs\":[3]}", "{\"jobs\":[]}", "[1]",
        "{\"jobs\":[{\"read\":7,\"job options\":[]}]}", "{\"client_stats\":{}}"}) {
    EXPECT_FALSE(parse("x.json", text).has_value()) << text;
  }
}

TEST(FioJson, SizesInFiosWords) {
  EXPECT_EQ(parse_size("8k"), 8192U);
  EXPECT_EQ(parse_size("8KiB"), 8192U);
  EXPECT_EQ(parse_size("1m"), 1048576U);
  EXPECT_EQ(parse_size("4096"), 4096U);
  EXPECT_EQ(parse_size("4k,8k"), 0U);
  EXPECT_EQ(parse_size("huge"), 0U);
}

}  // namespace
}  // namespace nfsrdma::results
