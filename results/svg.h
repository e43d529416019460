// SPDX-License-Identifier: GPL-2.0-or-later
// Pictures: shapes, scales, and the three kinds of chart of the report.
#pragma once

#include <string>
#include <vector>

namespace nfsrdma::results {

/// An SVG under construction. Coordinates in units of which a chart is 440 wide; the page scales
/// it, colours come from CSS classes, so that one picture serves light and dark.
class Svg {
 public:
  Svg(double width, double height, const std::string& label);

  void rect(double x, double y, double width, double height, const std::string& css,
            const std::string& tooltip = "");
  void line(double x1, double y1, double x2, double y2, const std::string& css);
  /// `anchor` is start, middle or end.
  void text(double x, double y, const std::string& text, const std::string& css,
            const std::string& anchor = "start");
  /// The figure in bold, the rest after it.
  void text_with_figure(double x, double y, const std::string& figure, const std::string& text,
                        const std::string& css);
  void polyline(const std::vector<std::pair<double, double>>& points, const std::string& css,
                const std::string& tooltip);
  void dot(double x, double y, const std::string& css, const std::string& tooltip);
  std::string finish() const;

 private:
  std::string body_;
};

constexpr double kChartWidth = 440;

/// 1, 2 or 5 times a power of ten, so that about `count` steps reach `top`.
double nice_step(double top, int count);

struct Bar {
  std::string label;
  double value = 0;
  std::string css;  ///< class of the colour; "published" bars are thin and grey
  bool published = false;
};

/// Bars with their values as text; a heading stands above each group.
struct BarGroup {
  std::string heading;
  std::vector<Bar> bars;
  bool published = false;
};
std::string bar_chart(const std::string& label, const std::vector<BarGroup>& groups);

struct Curve {
  std::string name;
  std::string css;
  std::vector<std::pair<double, double>> points;
};

/// Latency (microseconds, logarithmic) over percentile (50 to 99.99, by nines).
std::string percentile_chart(const std::string& label, const std::vector<Curve>& curves);

/// Anything from zero up over seconds.
std::string time_chart(const std::string& label, const std::string& unit,
                       const std::vector<Curve>& curves);

}  // namespace nfsrdma::results
