// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include "fio_log.h"
#include "html.h"
#include "samples.h"
#include "svg.h"

namespace nfsrdma::results {
namespace {

TEST(Svg, StepsAreOneTwoOrFive) {
  EXPECT_DOUBLE_EQ(nice_step(100, 4), 50);
  EXPECT_DOUBLE_EQ(nice_step(400, 4), 100);
  EXPECT_DOUBLE_EQ(nice_step(0.7, 4), 0.2);
  EXPECT_DOUBLE_EQ(nice_step(0, 4), 1);
}

TEST(Svg, BarsAreInProportionAndTextIsEscaped) {
  const std::string svg = bar_chart(
      "a & b", {{"read IOPS", {{"<tcp>", 1000, "c0", false}, {"rdma", 2000, "c1", false}}, false}});
  EXPECT_NE(svg.find("width=\"100.0\" height=\"19.0\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("width=\"200.0\" height=\"19.0\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("&lt;tcp&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("<tcp>"), std::string::npos);
}

TEST(Svg, EmptyOrDegenerateDataDrawNothingOrSomethingFinite) {
  EXPECT_EQ(percentile_chart("x", {}), "");
  EXPECT_EQ(time_chart("x", "us", {}), "");
  const std::string flat = percentile_chart("x", {{"tcp", "c0", {{50, 100}, {99, 100}}}});
  EXPECT_NE(flat, "");
  for (const std::string& svg : {flat, time_chart("x", "us", {{"a", "c0", {{1, 0}, {2, 0}}}}),
                                 time_chart("x", "us", {{"a", "c0", {{5, 7}}}})}) {
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
  }
}

TEST(ThinOut, KeepsTheMeanAndTheEnds) {
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i < 1000; i++) points.emplace_back(i, i == 500 ? 1000 : 0);
  const auto thinned = thin_out(points, 10);
  ASSERT_EQ(thinned.size(), 10U);
  double sum = 0;
  for (const auto& [x, y] : thinned) sum += y * 100;
  EXPECT_NEAR(sum, 1000, 20);
  EXPECT_EQ(thin_out(points, 2000), points);
}

TEST(FioLog, ReadsFiosLines) {
  auto log =
      read_fio_log("x/e1_clat.3.log", "12, 221000, 0, 8192, 0, 0x0000\n15, 90, 1, 8192, 0\n");
  ASSERT_TRUE(log) << log.error().text;
  EXPECT_EQ(log->kind, "clat");
  ASSERT_EQ(log->samples.size(), 2U);
  EXPECT_DOUBLE_EQ(log->samples[0].value, 221000);
  EXPECT_EQ(log->samples[1].direction, 1);
}

TEST(FioLog, BadLogsAreNamedByLine) {
  const struct {
    const char* file;
    const char* text;
    const char* reason;
  } kCases[] = {{"a_lat.1.log", "1, 2, 0, 4\n1, x, 0\n", "a_lat.1.log: line 2"},
                {"a_lat.1.log", "1, 2, 0, 4\n1, 2", "a_lat.1.log: line 2"},
                {"a_lat.1.log", "1, 2, 0, 4\n1, 2, 0", "a_lat.1.log: truncated"},
                {"a_lat.1.log", "", "a_lat.1.log: holds no sample"},
                {"messages", "1, 2, 0, 4\n", "messages: its name"}};
  for (const auto& bad : kCases) {
    auto log = read_fio_log(bad.file, bad.text);
    ASSERT_FALSE(log.has_value()) << bad.text;
    EXPECT_EQ(log.error().text.find(bad.reason), 0U) << log.error().text;
  }
}

}  // namespace
}  // namespace nfsrdma::results
