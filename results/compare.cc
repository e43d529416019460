// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare.h"

#include <algorithm>
#include <cmath>

#include "format.h"

namespace nfsrdma::results {
namespace {

constexpr size_t kRunsMax = 1000;

/// The change in percent towards worse: positive is worse.
double worsening(const std::string& metric, double ratio) {
  const double change = (ratio - 1) * 100;
  return metric_names().at(metric) ? change : -change;
}

/// A worsening must be both significant and beyond the threshold. Where neither that nor its
/// absence can be shown, we say so: a wide interval is no proof that all is well.
Verdict verdict_of(const Judgement& judgement, const CompareOptions& options) {
  const std::string& metric = judgement.samples.metric;
  const double threshold = judgement.threshold_percent;
  const double estimate = worsening(metric, judgement.ratio.estimate);
  const double worst =
      std::max(worsening(metric, judgement.ratio.low), worsening(metric, judgement.ratio.high));
  const bool significant = judgement.p_adjusted < options.alpha;
  if (significant && estimate >= threshold) return Verdict::kRegression;
  if (worst >= threshold && (estimate >= threshold || worst - estimate > threshold)) {
    return Verdict::kNoisy;
  }
  if (significant && estimate <= -threshold) return Verdict::kImproved;
  return Verdict::kUnchanged;
}

/// With `tests` metrics, Holm lets the strongest of them pass at alpha / tests.
bool can_be_significant(size_t n, size_t m, size_t tests, double alpha) {
  return smallest_p(n, m) * static_cast<double>(tests) < alpha;
}

size_t runs_needed(size_t tests, double alpha) {
  size_t runs = 2;
  while (runs < kRunsMax && !can_be_significant(runs, runs, tests, alpha)) runs++;
  return runs;
}

}  // namespace

const std::map<std::string, bool>& metric_names() {
  static const std::map<std::string, bool> kMoreIsWorse{{"iops", false}, {"mean", true},
                                                        {"p50", true},   {"p99", true},
                                                        {"p99.9", true}, {"cpu", true}};
  return kMoreIsWorse;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kUnchanged:
      return "ok";
    case Verdict::kImproved:
      return "better";
    case Verdict::kRegression:
      return "REGRESSION";
    case Verdict::kNoisy:
      return "too noisy";
    case Verdict::kTooFew:
      return "too few";
  }
  return "";
}

Comparison judge(const std::vector<Samples>& samples, const CompareOptions& options) {
  Comparison comparison;
  std::vector<double> p;
  for (const Samples& sample : samples) {
    Judgement judgement;
    judgement.samples = sample;
    judgement.threshold_percent = options.thresholds.at(sample.metric);
    judgement.ratio = ratio_interval(sample.a, sample.b, options.confidence);
    p.push_back(mann_whitney(sample.a, sample.b).p);
    comparison.judgements.push_back(std::move(judgement));
  }
  const std::vector<double> adjusted = holm(p);
  for (size_t i = 0; i < adjusted.size(); i++) {
    Judgement& judgement = comparison.judgements[i];
    judgement.p_adjusted = adjusted[i];
    judgement.verdict = verdict_of(judgement, options);
    const Samples& sample = judgement.samples;
    if (!can_be_significant(sample.a.size(), sample.b.size(), p.size(), options.alpha)) {
      judgement.verdict = Verdict::kTooFew;
      comparison.runs_needed = runs_needed(p.size(), options.alpha);
    }
  }
  return comparison;
}

size_t Comparison::count(Verdict verdict) const {
  return static_cast<size_t>(
      std::count_if(judgements.begin(), judgements.end(),
                    [verdict](const Judgement& j) { return j.verdict == verdict; }));
}

int Comparison::exit_status() const {
  if (count(Verdict::kRegression) > 0) return 1;
  if (count(Verdict::kTooFew) + count(Verdict::kNoisy) > 0) return 3;
  return 0;
}

std::string Comparison::conclusion() const {
  const auto names = [this](Verdict verdict) {
    std::string text;
    for (const Judgement& j : judgements) {
      if (j.verdict != verdict) continue;
      text += (text.empty() ? "" : "; ") + j.samples.job + " over " + j.samples.transport + ": " +
              j.samples.label + " " + percent_change(j.ratio.estimate);
    }
    return text;
  };
  const size_t regressions = count(Verdict::kRegression);
  if (regressions > 0) {
    return std::to_string(regressions) + (regressions == 1 ? " regression: " : " regressions: ") +
           names(Verdict::kRegression);
  }
  if (count(Verdict::kTooFew) > 0) {
    return "Too few runs to tell: with " + std::to_string(judgements.size()) +
           " metrics, at least " + std::to_string(runs_needed) + " runs a side are needed";
  }
  if (count(Verdict::kNoisy) > 0) {
    return "Too noisy to tell (more runs, longer runs or a quieter machine would help): " +
           names(Verdict::kNoisy);
  }
  const std::string better = names(Verdict::kImproved);
  return better.empty() ? "No regression" : "No regression; better: " + better;
}

}  // namespace nfsrdma::results
