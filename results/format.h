// SPDX-License-Identifier: GPL-2.0-or-later
// Numbers as the mailing lists print them, and text laid out in columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nfsrdma::results {

/// Three significant digits: "0.94", "4.40", "22.1", "849", "1623", "46.6k", "109k", "1.02M".
std::string short_number(double value);
/// A whole number below 10000, else as short_number: fio's way with IOPS.
std::string short_count(double value);
/// Nanoseconds in microseconds: "0.94", "221", "7601", "154k" (= 154 ms).
std::string microseconds(double ns);
/// "849MiB/s (890MB/s)".
std::string bandwidth(double bytes_per_s);
/// "11.2GiB".
std::string amount(uint64_t bytes);
/// A fixed number of decimals.
std::string fixed(double value, int decimals);
/// "+4.1 %", "-0.3 %"; from a ratio.
std::string percent_change(double ratio);

/// The characters a terminal shows: UTF-8 counted by code points.
size_t display_width(const std::string& text);

/// Rows of equally many cells, the first the header. In text the columns are padded (all but
/// `left` to the right) and set two spaces apart, or one where that keeps within `width`.
struct Grid {
  std::vector<std::vector<std::string>> rows;
  size_t left = 1;

  std::string text(size_t width = 100, const std::string& indent = "") const;
  std::string markdown() const;
  std::string html() const;
};

/// Fields quoted as RFC 4180 has it.
std::string csv_line(const std::vector<std::string>& fields);
std::string escape_markup(const std::string& text);  ///< for XML and HTML, attributes too

}  // namespace nfsrdma::results
