// SPDX-License-Identifier: GPL-2.0-or-later
#include "table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "format.h"
#include "samples.h"

namespace nfsrdma::results {
namespace {

Inputs both_transports() {
  Inputs inputs;
  LoadedRun run;
  auto fio =
      parse("x.json", engine_run(engine_job("e1", "") + "," +
                                 engine_job("e1", R"("transport":"rdma","fabric":"iwarp")")));
  EXPECT_TRUE(fio) << fio.error().text;
  run.fio = *fio;
  auto rows = make_rows(run.fio, inputs.notes);
  EXPECT_TRUE(rows) << rows.error().text;
  run.rows = *rows;
  ProcedureStats procedure;
  procedure.ops = 10000;
  procedure.retrans = 12345;
  procedure.queue.count = procedure.rtt.count = procedure.exe.count = 10000;
  procedure.queue.mean_ns = 123456;
  procedure.rtt.mean_ns = 1234567;
  procedure.exe.mean_ns = 12345678;
  run.rows[1].operations[0].procedure = procedure;
  inputs.runs.push_back(run);
  return inputs;
}

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(display_width(line), 100U) << line;
  }
}

TEST(Table, TextFitsIntoAHundredColumns) {
  const auto published = published_experiments();
  ASSERT_TRUE(published) << published.error().text;
  const std::string text = make_table(both_transports(), TableFormat::kText, *published);
  expect_narrow(text);
  EXPECT_NE(text.find("rdma       iwarp   read"), std::string::npos) << text;
  EXPECT_NE(text.find("v4.19-rc2 stock"), std::string::npos);
  EXPECT_NE(text.find("other hardware"), std::string::npos);
}

TEST(Table, EveryFigureIsThere) {
  const std::string csv = make_table(both_transports(), TableFormat::kCsv, {});
  EXPECT_NE(csv.find("measured,x.json,rdma,iwarp,e1,read,10000.000,81920000,81920000,1000,"
                     "completion,221.000,200.000,627.000,800.000,123.456,1234.567,12345.678,8.000,"
                     "12345\n"),
            std::string::npos)
      << csv;
}

TEST(Table, ListLooksLikeAPost) {
  const std::string list = make_table(both_transports(), TableFormat::kList, {});
  EXPECT_EQ(list,
            "- e1: randread, bs=8k, iodepth=16, 1 job\n"
            "  - tcp read: IOPS=10.0k, BW=78.1MiB/s (81.9MB/s) (78.1MiB/1000msec)\n"
            "  - rdma/iwarp read: IOPS=10.0k, BW=78.1MiB/s (81.9MB/s) (78.1MiB/1000msec)\n");
}

TEST(Table, MarkdownHasAHeaderAndEscapes) {
  Grid grid;
  grid.rows = {{"a", "b"}, {"x|y", "1"}};
  EXPECT_EQ(grid.markdown(), "| a | b |\n|---|--:|\n| x\\|y | 1 |\n");
}

TEST(Format, NumbersAsOnTheLists) {
  EXPECT_EQ(short_number(0.944), "0.94");
  EXPECT_EQ(short_number(22.06), "22.1");
  EXPECT_EQ(short_number(849), "849");
  EXPECT_EQ(short_number(9999), "9999");
  EXPECT_EQ(short_number(9999.9), "10.0k");
  EXPECT_EQ(short_number(46600), "46.6k");
  EXPECT_EQ(short_number(109000), "109k");
  EXPECT_EQ(short_number(999900), "1.00M");
  EXPECT_EQ(short_number(10.5e6), "10.5M");
  EXPECT_EQ(short_count(16), "16");
  EXPECT_EQ(amount(12025908429), "11.2GiB");
  EXPECT_EQ(percent_change(0.95), "-5.0 %");
  EXPECT_EQ(percent_change(1.00001), "0.0 %");
  EXPECT_EQ(csv_line({"a,b", "say \"x\""}), "\"a,b\",\"say \"\"x\"\"\"\n");
  EXPECT_EQ(escape_markup("<a b=\"c\">&\x01"), "&lt;a b=&quot;c&quot;&gt;&amp; ");
}

// The figures as posted: a slip of the pen in the JSON would go unnoticed for ever.
TEST(Published, FiguresAreThoseOfThePosts) {
  const auto all = published_experiments();
  ASSERT_TRUE(all) << all.error().text;
  ASSERT_EQ(all->size(), 7U);
  double e1_read = 0;
  double e1_runtime = 0;
  for (const PublishedRow& row : (*all)[0].rows) {
    e1_read += row.figure("read_iops");
    e1_runtime += row.figure("runtime_ms");
    // Amount moved is 16 GiB in each run, as far as rounding lets one tell.
    const double mib =
        (row.figure("read_mib_s") + row.figure("write_mib_s")) * row.figure("runtime_ms") / 1000;
    EXPECT_NEAR(mib, 16384, 16384 * 0.02) << row.config << " " << row.transport;
  }
  EXPECT_DOUBLE_EQ(e1_read, 109e3 + 83e3 + 90.5e3 + 118e3 + 23.8e3 + 25.9e3 + 25e3 + 27.4e3);
  EXPECT_DOUBLE_EQ(e1_runtime, 13506 + 17676 + 16216 + 12469 + 61635 + 56710 + 56492 + 53650);
  for (const PublishedRow& row : (*all)[1].rows) {
    EXPECT_NEAR(row.figure("read_iops") * 4 / 1024, row.figure("read_mib_s"),
                row.figure("read_mib_s") * 0.01)
        << row.config << " " << row.transport;
  }
  for (const Experiment& experiment : *all) {
    EXPECT_FALSE(experiment.list.empty() || experiment.subject.empty() ||
                 experiment.author.empty() || experiment.date.empty() ||
                 experiment.hardware.empty())
        << experiment.id;
  }
}

TEST(Published, AJobFindsItsExperiment) {
  const auto all = published_experiments();
  ASSERT_TRUE(all);
  JobRow row;
  row.job = "e2-deep";
  ASSERT_EQ(experiments_of(row, *all).size(), 1U);
  EXPECT_EQ(experiments_of(row, *all)[0]->id, "E2");
  row.job = "e22";
  EXPECT_TRUE(experiments_of(row, *all).empty());
  row.job = "mine";
  row.options = {{"rw", "randrw"}, {"rwmixread", "70"}, {"bs", "8192"}};
  EXPECT_EQ(experiments_of(row, *all).size(), 3U);
  row.options["rwmixread"] = "50";
  EXPECT_TRUE(experiments_of(row, *all).empty());
}

}  // namespace
}  // namespace nfsrdma::results
