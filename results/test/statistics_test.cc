// SPDX-License-Identifier: GPL-2.0-or-later
// Facts from R 4.2.2 (wilcox.test, p.adjust) and, for p values, scipy 1.10.1 (mannwhitneyu).
#include "statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nfsrdma::results {
namespace {

const std::vector<double> kA{101.2, 99.8, 100.5, 102.3, 98.7, 101.9, 100.1, 99.2, 103.4, 100.9};
const std::vector<double> kB{96.1, 95.3, 97.2, 94.8, 98.1, 95.9, 96.7, 99.0, 94.2, 97.8};
const std::vector<double> kC{12.1, 15.3, 11.8, 14.9, 13.3};
const std::vector<double> kD{13.9, 16.2, 12.7, 17.1, 14.1, 15.8, 18.0};

std::vector<double> series(double base, int step, int count, double divisor) {
  std::vector<double> values;
  for (int i = 0; i < count; i++) values.push_back(base + (i * step % count) / divisor);
  return values;
}

TEST(MannWhitney, ExactAsInR) {
  const MannWhitney ab = mann_whitney(kA, kB);
  EXPECT_TRUE(ab.exact);
  EXPECT_DOUBLE_EQ(ab.u, 99);
  EXPECT_NEAR(ab.p, 2.1650176448938059e-05, 1e-16);
  const MannWhitney cd = mann_whitney(kC, kD);
  EXPECT_TRUE(cd.exact);
  EXPECT_DOUBLE_EQ(cd.u, 7);
  EXPECT_NEAR(cd.p, 0.10606060606060606, 1e-13);
}

TEST(MannWhitney, ExactUpToItsLargestSizes) {
  std::vector<double> a = series(100, 37, 60, 7);
  std::vector<double> b = series(101.13, 23, 55, 6.5);
  a.resize(49);
  b.resize(45);
  const MannWhitney test = mann_whitney(a, b);
  EXPECT_TRUE(test.exact);
  EXPECT_DOUBLE_EQ(test.u, 855);
  EXPECT_NEAR(test.p, 0.061345016049888207, 1e-10);
}

TEST(MannWhitney, TiesAndLargeSamplesAsInR) {
  const MannWhitney tied = mann_whitney({200, 204, 204, 208, 212, 200, 204, 208, 208, 216},
                                        {208, 212, 212, 216, 220, 208, 212, 204, 224, 216});
  EXPECT_FALSE(tied.exact);
  EXPECT_DOUBLE_EQ(tied.u, 19);
  EXPECT_NEAR(tied.p, 0.018996174076850038, 1e-12);
  const MannWhitney large = mann_whitney(series(100, 37, 60, 7), series(101.13, 23, 55, 6.5));
  EXPECT_FALSE(large.exact);
  EXPECT_DOUBLE_EQ(large.u, 1262);
  EXPECT_NEAR(large.p, 3.0038413985904774e-02, 1e-12);
}

TEST(MannWhitney, EqualValuesTellNothing) {
  EXPECT_DOUBLE_EQ(mann_whitney({5, 5, 5}, {5, 5, 5}).p, 1);
  EXPECT_DOUBLE_EQ(mann_whitney({1}, {2}).p, 1);
}

TEST(MannWhitney, IsSymmetric) {
  const MannWhitney ab = mann_whitney(kA, kB);
  const MannWhitney ba = mann_whitney(kB, kA);
  EXPECT_DOUBLE_EQ(ab.p, ba.p);
  EXPECT_DOUBLE_EQ(ab.u + ba.u, 100);
}

// 2 / (n+m choose n)
TEST(MannWhitney, SmallestP) {
  EXPECT_NEAR(smallest_p(5, 5), 2.0 / 252, 1e-15);
  EXPECT_NEAR(smallest_p(10, 10), 2.0 / 184756, 1e-18);
  EXPECT_NEAR(smallest_p(3, 4), 2.0 / 35, 1e-15);
  EXPECT_DOUBLE_EQ(smallest_p(0, 4), 1);
}

// wilcox.test(log(b), log(a), conf.int=TRUE), the estimate and limits through exp.
TEST(RatioInterval, AsInR) {
  const Interval ab = ratio_interval(kA, kB, 0.95);
  EXPECT_NEAR(ab.estimate, 0.95774433704750039, 1e-12);
  EXPECT_NEAR(ab.low, 0.94308145240431784, 1e-12);
  EXPECT_NEAR(ab.high, 0.97224975222993060, 1e-12);
  const Interval cd = ratio_interval(kC, kD, 0.90);
  EXPECT_NEAR(cd.estimate, 1.14876033057851235, 1e-12);
  EXPECT_NEAR(cd.low, 0.95488721804511278, 1e-12);
  EXPECT_NEAR(cd.high, 1.33898305084745739, 1e-12);
}

TEST(RatioInterval, LargeSamplesByTheNormalApproximation) {
  const Interval wide = ratio_interval(series(100, 37, 60, 7), series(101.13, 23, 55, 6.5), 0.95);
  EXPECT_NEAR(wide.estimate, 1.0102622685141074, 1e-9);
  EXPECT_NEAR(wide.low, 1.0010516743340110, 5e-4);
  EXPECT_NEAR(wide.high, 1.0195658796648897, 5e-4);
}

// The interval leaves 1 out just when the test rejects at that level.
TEST(RatioInterval, AgreesWithTheTest) {
  for (double shift = 0.90; shift < 1.10; shift += 0.005) {
    std::vector<double> b = kA;
    for (double& value : b) value *= shift + 0.0001;
    const bool rejects = mann_whitney(kA, b).p <= 0.05;
    const Interval interval = ratio_interval(kA, b, 0.95);
    EXPECT_EQ(rejects, interval.low > 1 || interval.high < 1) << shift;
  }
}

TEST(RatioInterval, TooFewValuesGiveTheWidest) {
  const Interval interval = ratio_interval({1, 2}, {3, 8}, 0.95);
  EXPECT_NEAR(interval.low, 1.5, 1e-12);
  EXPECT_NEAR(interval.high, 8, 1e-12);
}

TEST(Holm, AsInR) {
  const std::vector<double> adjusted = holm({.01, .04, .03, .005, .2, .011});
  const std::vector<double> wanted{0.05, 0.09, 0.09, 0.03, 0.2, 0.05};
  ASSERT_EQ(adjusted.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); i++) EXPECT_NEAR(adjusted[i], wanted[i], 1e-12) << i;
  EXPECT_NEAR(holm({.6, .5, .02})[0], 1, 1e-12);
  EXPECT_TRUE(holm({}).empty());
}

TEST(Median, OddEvenAndEmpty) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

}  // namespace
}  // namespace nfsrdma::results
