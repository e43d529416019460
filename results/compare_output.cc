// SPDX-License-Identifier: GPL-2.0-or-later
#include <cmath>

#include "compare.h"
#include "format.h"

namespace nfsrdma::results {
namespace {

std::string title_of(const Samples& samples) {
  return samples.job + " over " + samples.transport;
}

std::string p_text(double p) {
  return p < 0.0001 ? "<0.0001" : fixed(p, 4);
}

std::string interval_text(const Interval& ratio) {
  return fixed((ratio.low - 1) * 100, 1) + " to " + fixed((ratio.high - 1) * 100, 1);
}

/// "3", "2.5".
std::string plain(double percent) {
  return fixed(percent, percent == std::floor(percent) ? 0 : 1);
}

std::vector<std::string> header() {
  return {"metric", "A", "B", "change", "95 % interval", "p (Holm)", "limit", "verdict"};
}

std::vector<std::string> cells(const Judgement& judgement) {
  const Samples& samples = judgement.samples;
  const bool more_is_worse = metric_names().at(samples.metric);
  return {samples.label,
          short_number(median(samples.a)),
          short_number(median(samples.b)),
          percent_change(judgement.ratio.estimate),
          interval_text(judgement.ratio),
          p_text(judgement.p_adjusted),
          (more_is_worse ? "+" : "-") + plain(judgement.threshold_percent) + " %",
          name_of(judgement.verdict)};
}

constexpr const char* kLegend =
    "A, B: medians. change: Hodges-Lehmann estimate (the median of all ratios B/A) and its\n"
    "confidence interval. p: Mann-Whitney U, two-sided, corrected by Holm over all rows. A\n"
    "regression is significant and beyond its limit.\n";

/// Calls `begin` at the first row of each job, `row` at each.
template <typename Begin, typename Row>
void for_each_job(const Comparison& comparison, Begin begin, Row row) {
  std::string title;
  for (const Judgement& judgement : comparison.judgements) {
    if (title_of(judgement.samples) != title) {
      title = title_of(judgement.samples);
      begin(judgement, title);
    }
    row(judgement);
  }
}

std::string sizes(const Judgement& judgement) {
  return std::to_string(judgement.samples.a.size()) + " against " +
         std::to_string(judgement.samples.b.size()) + " runs";
}

std::string sets(const Comparison& comparison) {
  return "A: " + comparison.name_a + "\nB: " + comparison.name_b + "\n";
}

}  // namespace

std::string compare_text(const Comparison& comparison) {
  std::string out = sets(comparison);
  Grid grid;
  const auto flush = [&] {
    if (!grid.rows.empty()) out += grid.text();
    grid.rows.clear();
  };
  for_each_job(
      comparison,
      [&](const Judgement& judgement, const std::string& title) {
        flush();
        out += "\n" + title + ", " + sizes(judgement) + "\n";
        grid.rows.push_back(header());
      },
      [&](const Judgement& judgement) { grid.rows.push_back(cells(judgement)); });
  flush();
  return out + "\n" + kLegend + "\n" + comparison.conclusion() + "\n";
}

std::string compare_markdown(const Comparison& comparison) {
  std::string out = "### " + comparison.conclusion() + "\n\n";
  out += "A: `" + comparison.name_a + "`, B: `" + comparison.name_b + "`\n";
  Grid grid;
  const auto flush = [&] {
    if (!grid.rows.empty()) out += grid.markdown();
    grid.rows.clear();
  };
  for_each_job(
      comparison,
      [&](const Judgement& judgement, const std::string& title) {
        flush();
        out += "\n**" + title + "**, " + sizes(judgement) + "\n\n";
        grid.rows.push_back(header());
      },
      [&](const Judgement& judgement) {
        grid.rows.push_back(cells(judgement));
        std::string& verdict = grid.rows.back().back();
        if (judgement.verdict == Verdict::kRegression) verdict = "**" + verdict + "**";
      });
  flush();
  return out + "\n<sub>" + kLegend + "</sub>\n";
}

/// A test case for each metric; what cannot be told is skipped, not passed.
std::string compare_junit(const Comparison& comparison) {
  std::string cases;
  for (const Judgement& judgement : comparison.judgements) {
    const std::string figures = escape_markup(
        judgement.samples.label + " " + percent_change(judgement.ratio.estimate) + " (" +
        interval_text(judgement.ratio) + " %), p " + p_text(judgement.p_adjusted) + ", median " +
        short_number(median(judgement.samples.a)) + " to " +
        short_number(median(judgement.samples.b)));
    cases += "    <testcase classname=\"" + escape_markup(title_of(judgement.samples)) +
             "\" name=\"" + escape_markup(judgement.samples.label) + "\">";
    if (judgement.verdict == Verdict::kRegression) {
      cases += "<failure message=\"" + figures + "\"/>";
    } else if (judgement.verdict == Verdict::kNoisy || judgement.verdict == Verdict::kTooFew) {
      cases +=
          std::string("<skipped message=\"") + name_of(judgement.verdict) + ": " + figures + "\"/>";
    } else {
      cases += "<system-out>" + figures + "</system-out>";
    }
    cases += "</testcase>\n";
  }
  const std::string counts =
      "tests=\"" + std::to_string(comparison.judgements.size()) + "\" failures=\"" +
      std::to_string(comparison.count(Verdict::kRegression)) + "\" skipped=\"" +
      std::to_string(comparison.count(Verdict::kNoisy) + comparison.count(Verdict::kTooFew)) +
      "\" errors=\"0\"";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"" +
         escape_markup("nfsrdma-results compare " + comparison.name_a + " " + comparison.name_b) +
         "\" " + counts + ">\n" + cases + "  </testsuite>\n</testsuites>\n";
}

}  // namespace nfsrdma::results
