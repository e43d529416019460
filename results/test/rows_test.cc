// SPDX-License-Identifier: GPL-2.0-or-later
#include "rows.h"

#include <gtest/gtest.h>

#include "samples.h"

namespace nfsrdma::results {
namespace {

constexpr const char* kStats = R"({"version":1,"transports":[{"transport":"rdma","fabric":"iwarp",
  "server":"127.0.0.1","negotiated":{"credits":32},"procedures":{
    "READ":{"ops":10000,"errors":0,"retrans":2,"bytes":81920000,
            "queue_ns":{"N":10000,"mean":12000.0},"rtt_ns":{"N":10000,"mean":190000.0},
            "exe_ns":{"N":10000,"mean":202000.0}},
    "GETATTR":{"ops":4,"errors":0,"retrans":1}},
  "connects":1,"reconnects":0,"credit_stalls":5,"send_calls":10,"recv_calls":20,
  "series":[{"t_ms":1000,"READ":10000,"WRITE":0,"COMMIT":0}]}]})";

std::vector<JobRow> rows_of(const std::string& text, std::vector<std::string>& notes) {
  auto run = parse("x.json", text);
  EXPECT_TRUE(run) << run.error().text;
  auto rows = make_rows(*run, notes);
  EXPECT_TRUE(rows) << rows.error().text;
  return rows ? *rows : std::vector<JobRow>();
}

StatsFile stats_file() {
  auto documents = json_objects("x.stats.json", kStats);
  EXPECT_TRUE(documents);
  auto stats = read_stats("x.stats.json", documents->back());
  EXPECT_TRUE(stats) << stats.error().text;
  return *stats;
}

TEST(Rows, TransportComesFromTheOptions) {
  std::vector<std::string> notes;
  const auto rows = rows_of(engine_run(engine_job("t", "") + "," +
                                       engine_job("r", R"("transport":"rdma","fabric":"iwarp")")),
                            notes);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].transport_name(), "tcp");
  EXPECT_EQ(rows[1].transport_name(), "rdma/iwarp");
  EXPECT_DOUBLE_EQ(rows[0].operations.at(0).iops, 10000);
  // 8 % of a second over 10000 reads: 8 us each.
  EXPECT_DOUBLE_EQ(rows[0].cpu_us_per_op.value(), 8);
  EXPECT_DOUBLE_EQ(rows[0].usr_us_per_op.value(), 3);
}

TEST(Rows, ProcessesOfAJobAreSummed) {
  std::vector<std::string> notes;
  auto run = sample_run("ungrouped-bins.json");
  ASSERT_TRUE(run);
  auto rows = make_rows(*run, notes);
  ASSERT_TRUE(rows) << rows.error().text;
  ASSERT_EQ(rows->size(), 1U);
  const JobRow& row = rows->front();
  EXPECT_EQ(row.numjobs, 2U);
  const FioJob& a = run->jobs[0];
  const FioJob& b = run->jobs[1];
  const OperationRow* read = row.find(Direction::kRead);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->ios, a[Direction::kRead].ios + b[Direction::kRead].ios);
  EXPECT_EQ(read->runtime_ms,
            std::max(a[Direction::kRead].runtime_ms, b[Direction::kRead].runtime_ms));
  const double p99 = read->latency.percentile(99).value();
  const double p99_a = a[Direction::kRead].clat.percentile(99).value();
  const double p99_b = b[Direction::kRead].clat.percentile(99).value();
  EXPECT_GE(p99, std::min(p99_a, p99_b));
  EXPECT_LE(p99, std::max(p99_a, p99_b));
}

TEST(Rows, PercentilesWithoutBinsAreNotInvented) {
  std::vector<std::string> notes;
  auto run = sample_run("ungrouped.json");
  ASSERT_TRUE(run);
  auto rows = make_rows(*run, notes);
  ASSERT_TRUE(rows);
  EXPECT_FALSE(rows->front().operations.front().latency.percentile(99).has_value());
  ASSERT_FALSE(notes.empty());
  EXPECT_NE(notes[0].find("group_reporting"), std::string::npos);
}

TEST(Rows, HostsOfAClientRunAreSummed) {
  std::vector<std::string> notes;
  auto run = sample_run("client.json");
  ASSERT_TRUE(run);
  auto rows = make_rows(*run, notes);
  ASSERT_TRUE(rows) << rows.error().text;
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[0].numjobs, 4U);
  // Two servers ran two processes of 1 MiB in 8 KiB blocks each.
  EXPECT_EQ((*rows)[0].operations[0].ios + (*rows)[0].operations[1].ios, 4U * 128);
}

TEST(Rows, TooLittleCpuTimeIsNotDivided) {
  std::vector<std::string> notes;
  const auto rows = rows_of(engine_run(engine_job("a", "", 100, 10)), notes);
  EXPECT_FALSE(rows.at(0).cpu_us_per_op.has_value());
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("CPU time"), std::string::npos);
}

TEST(Rows, SameNameWithUnlikeOptionsIsRefused) {
  auto run = parse("x.json", engine_run(engine_job("a", R"("iodepth":"16")") + "," +
                                        engine_job("a", R"("iodepth":"32")")));
  ASSERT_TRUE(run) << run.error().text;
  std::vector<std::string> notes;
  auto rows = make_rows(*run, notes);
  ASSERT_FALSE(rows.has_value());
  EXPECT_EQ(rows.error().text.find("x.json: "), 0U);
}

TEST(Rows, StatisticsGoToTheJobOfTheirTransport) {
  std::vector<std::string> notes;
  auto rows = rows_of(engine_run(engine_job("t", "") + "," +
                                 engine_job("r", R"("transport":"rdma","fabric":"auto")")),
                      notes);
  add_stats(rows, stats_file(), notes);
  EXPECT_FALSE(rows[0].operations[0].procedure.has_value());
  ASSERT_TRUE(rows[1].operations[0].procedure.has_value());
  EXPECT_EQ(rows[1].fabric, "iwarp");  // auto, resolved by what really ran
  EXPECT_EQ(rows[1].operations[0].procedure->retrans, 2U);
  EXPECT_EQ(rows[1].retransmissions, 3U);
  EXPECT_DOUBLE_EQ(rows[1].operations[0].procedure->queue.mean_ns, 12000);
  EXPECT_TRUE(notes.empty());
}

TEST(Rows, SharedStatisticsAreNotDivided) {
  std::vector<std::string> notes;
  auto rows = rows_of(engine_run(engine_job("a", R"("transport":"rdma")") + "," +
                                 engine_job("b", R"("transport":"rdma")")),
                      notes);
  add_stats(rows, stats_file(), notes);
  EXPECT_FALSE(rows[0].operations[0].procedure.has_value());
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("2 jobs share rdma/iwarp"), std::string::npos);
}

TEST(Stats, EmptyOrStrangeFilesAreRefused) {
  for (const char* text : {R"({"transports":3})", R"({"transports":[]})", R"({"transports":[7]})",
                           R"({"transports":[{"transport":"tcp","procedures":{}}]})",
                           R"({"transports":[{"procedures":{"READ":{"ops":1}}}]})"}) {
    auto stats = read_stats("s.json", nlohmann::json::parse(text));
    ASSERT_FALSE(stats.has_value()) << text;
    EXPECT_EQ(stats.error().text.find("s.json: "), 0U);
  }
}

TEST(Latency, MergeWeighsMeansAndAddsBins) {
  Latency a;
  a.count = 1;
  a.mean_ns = 100;
  a.min_ns = a.max_ns = 100;
  a.bins = {{100, 1}};
  Latency b;
  b.count = 3;
  b.mean_ns = 200;
  b.min_ns = b.max_ns = 200;
  b.bins = {{200, 3}};
  a.merge(b);
  EXPECT_EQ(a.count, 4U);
  EXPECT_DOUBLE_EQ(a.mean_ns, 175);
  EXPECT_EQ(a.percentile(25), 100);
  EXPECT_EQ(a.percentile(26), 200);
  b.bins.clear();
  b.percentiles = {{50, 200}};
  a.merge(b);
  EXPECT_FALSE(a.percentile(50).has_value());
}

}  // namespace
}  // namespace nfsrdma::results
