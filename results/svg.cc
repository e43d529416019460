// SPDX-License-Identifier: GPL-2.0-or-later
#include "svg.h"

#include <algorithm>
#include <cmath>

#include "format.h"

namespace nfsrdma::results {
namespace {

constexpr double kHeight = 250;
constexpr double kLeft = 46;
constexpr double kRight = kChartWidth - 14;
constexpr double kTop = 22;
constexpr double kBottom = kHeight - 34;

std::string number(double value) {
  return fixed(value, 1);
}

std::string tooltip_element(const std::string& tooltip) {
  return tooltip.empty() ? "" : "<title>" + escape_markup(tooltip) + "</title>";
}

/// Maps [low, high] to the pixels between two borders.
struct Scale {
  double low;
  double high;
  double from;
  double to;
  double operator()(double value) const {
    return high > low ? from + (value - low) / (high - low) * (to - from) : from;
  }
};

/// "20k", not "20.0k".
std::string tick_text(double value, int decimals) {
  if (value < 1000) return fixed(value, decimals);
  std::string text = short_number(value);
  const size_t zero = text.find(".0");
  if (zero != std::string::npos) text.erase(zero, text.find_first_not_of("0", zero + 1) - zero);
  return text;
}

/// Nines: 50 % is 0.30, 90 % is 1, 99 % is 2.
double nines(double percentile) {
  return -std::log10(1 - percentile / 100);
}

}  // namespace

Svg::Svg(double width, double height, const std::string& label) {
  body_ = "<svg viewBox=\"0 0 " + number(width) + " " + number(height) +
          "\" role=\"img\" aria-label=\"" + escape_markup(label) +
          "\" xmlns=\"http://www.w3.org/2000/svg\">\n";
}

void Svg::rect(double x, double y, double width, double height, const std::string& css,
               const std::string& tooltip) {
  body_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
           "\" height=\"" + number(height) + "\" rx=\"2\" class=\"fill " + css + "\">" +
           tooltip_element(tooltip) + "</rect>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string& css) {
  body_ += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
           "\" y2=\"" + number(y2) + "\" class=\"" + css + "\"/>\n";
}

void Svg::text(double x, double y, const std::string& text, const std::string& css,
               const std::string& anchor) {
  body_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" class=\"" + css +
           "\" text-anchor=\"" + anchor + "\">" + escape_markup(text) + "</text>\n";
}

void Svg::text_with_figure(double x, double y, const std::string& figure, const std::string& text,
                           const std::string& css) {
  body_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" class=\"" + css +
           "\"><tspan class=\"figure\">" + escape_markup(figure) + "</tspan> " +
           escape_markup(text) + "</text>\n";
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, const std::string& css,
                   const std::string& tooltip) {
  std::string list;
  for (const auto& [x, y] : points) list += number(x) + "," + number(y) + " ";
  body_ += "<polyline points=\"" + list + "\" class=\"stroke " + css + "\">" +
           tooltip_element(tooltip) + "</polyline>\n";
}

void Svg::dot(double x, double y, const std::string& css, const std::string& tooltip) {
  body_ += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"3.5\" class=\"fill " +
           css + "\">" + tooltip_element(tooltip) + "</circle>\n";
}

std::string Svg::finish() const {
  return body_ + "</svg>\n";
}

double nice_step(double top, int count) {
  if (!(top > 0) || count < 1) return 1;
  const double raw = top / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power * 1.0001) return factor * power;
  }
  return 10 * power;
}

std::string bar_chart(const std::string& label, const std::vector<BarGroup>& groups) {
  constexpr double kBarMax = 200;
  double top = 0;
  double height = 4;
  for (const BarGroup& group : groups) {
    height += 24;
    for (const Bar& bar : group.bars) {
      top = std::max(top, bar.value);
      height += bar.published ? 17 : 26;
    }
    height += 8;
  }
  Svg svg(kChartWidth, height, label);
  double y = 4;
  for (const BarGroup& group : groups) {
    svg.text(0, y + 14, group.heading, group.published ? "small quiet" : "heading");
    y += 24;
    for (const Bar& bar : group.bars) {
      const double thick = bar.published ? 9 : 19;
      const double length = top > 0 ? std::max(1.0, bar.value / top * kBarMax) : 1;
      svg.rect(0, y, length, thick, bar.css, bar.label + ": " + fixed(bar.value, 0));
      svg.text_with_figure(length + 7, y + (bar.published ? 8.5 : 14), short_count(bar.value),
                           bar.label, bar.published ? "small quiet" : "value");
      y += bar.published ? 17 : 26;
    }
    y += 8;
  }
  return svg.finish();
}

std::string percentile_chart(const std::string& label, const std::vector<Curve>& curves) {
  double low = 1e300;
  double high = 0;
  for (const Curve& curve : curves) {
    for (const auto& [p, us] : curve.points) {
      if (!(us > 0) || p < 50 || p > 99.99) continue;
      low = std::min(low, us);
      high = std::max(high, us);
    }
  }
  if (!(high > 0)) return "";
  // Whole decades would waste most of the height on a narrow spread: limits at 1, 2 or 5.
  const auto limit = [](double value, bool up) {
    const double power = std::pow(10, std::floor(std::log10(value)));
    double below = power;
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
      if (up && factor * power >= value * 0.9999) return factor * power;
      if (factor * power <= value * 1.0001) below = factor * power;
    }
    return below;
  };
  low = limit(low, false);
  high = limit(high, true);
  if (high <= low) high = 2 * low;
  Svg svg(kChartWidth, kHeight, label);
  const Scale x{nines(50), nines(99.99), kLeft, kRight};
  const Scale y{std::log10(low), std::log10(high), kBottom, kTop};
  svg.text(0, 12, "us", "small quiet");
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * power;
      if (tick < low * 0.999 || tick > high * 1.001) continue;
      svg.line(kLeft, y(std::log10(tick)), kRight, y(std::log10(tick)), "grid");
      svg.text(kLeft - 6, y(std::log10(tick)) + 4, tick_text(tick, tick < 1 ? 1 : 0), "small quiet",
               "end");
    }
  }
  for (const double p : {50.0, 90.0, 99.0, 99.9, 99.99}) {
    svg.line(x(nines(p)), kTop, x(nines(p)), kBottom, "grid");
    std::string name = fixed(p, 2);
    while (name.ends_with('0') && name.find('.') != std::string::npos) name.pop_back();
    if (name.ends_with('.')) name.pop_back();
    svg.text(x(nines(p)), kBottom + 18, "p" + name, "small quiet", p == 99.99 ? "end" : "middle");
  }
  for (const Curve& curve : curves) {
    std::vector<std::pair<double, double>> points;
    for (const auto& [p, us] : curve.points) {
      if (us > 0 && p >= 50 && p <= 99.99) points.emplace_back(x(nines(p)), y(std::log10(us)));
    }
    svg.polyline(points, curve.css, curve.name);
    for (const auto& [p, us] : curve.points) {
      if (!(us > 0) || (p != 50 && p != 99 && p != 99.9)) continue;
      svg.dot(x(nines(p)), y(std::log10(us)), curve.css,
              curve.name + " p" + fixed(p, p == 99.9 ? 1 : 0) + ": " + short_number(us) + " us");
    }
  }
  return svg.finish();
}

std::string time_chart(const std::string& label, const std::string& unit,
                       const std::vector<Curve>& curves) {
  double top = 0;
  double end = 0;
  double begin = 1e300;
  for (const Curve& curve : curves) {
    for (const auto& [seconds, value] : curve.points) {
      top = std::max(top, value);
      end = std::max(end, seconds);
      begin = std::min(begin, seconds);
    }
  }
  if (!(end > 0)) return "";
  if (begin >= end) begin = 0;
  const double step = nice_step(top, 4);
  top = std::max(step, std::ceil(top / step - 1e-9) * step);
  Svg svg(kChartWidth, kHeight, label);
  const Scale x{std::min(begin, end), end, kLeft, kRight};
  const Scale y{0, top, kBottom, kTop};
  svg.text(0, 12, unit, "small quiet");
  for (double tick = 0; tick <= top * 1.0001; tick += step) {
    svg.line(kLeft, y(tick), kRight, y(tick), "grid");
    svg.text(kLeft - 6, y(tick) + 4,
             tick_text(tick, step < 0.1 ? 2
                             : step < 1 ? 1
                                        : 0),
             "small quiet", "end");
  }
  const double seconds = nice_step(end - x.low, 5);
  for (double tick = std::ceil(x.low / seconds) * seconds; tick <= end * 1.0001; tick += seconds) {
    svg.text(x(tick), kBottom + 18, fixed(tick, seconds < 1 ? 1 : 0) + " s", "small quiet",
             "middle");
  }
  for (const Curve& curve : curves) {
    std::vector<std::pair<double, double>> points;
    for (const auto& [t, value] : curve.points) points.emplace_back(x(t), y(value));
    svg.polyline(points, curve.css, curve.name);
  }
  return svg.finish();
}

}  // namespace nfsrdma::results
