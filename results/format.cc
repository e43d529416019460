// SPDX-License-Identifier: GPL-2.0-or-later
#include "format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace nfsrdma::results {

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string short_number(double value) {
  const double size = std::fabs(value);
  if (size >= 9999.5) {
    constexpr const char* kUnits[] = {"k", "M", "G", "T"};
    double scaled = value;
    size_t unit = 0;
    for (scaled /= 1000; std::fabs(scaled) >= 999.5 && unit < 3; unit++) scaled /= 1000;
    const double left = std::fabs(scaled);
    return fixed(scaled, left >= 99.95 ? 0 : left >= 9.995 ? 1 : 2) + kUnits[unit];
  }
  if (size >= 99.95) return fixed(value, 0);
  if (size >= 9.995) return fixed(value, 1);
  return fixed(value, 2);
}

std::string short_count(double value) {
  return std::fabs(value) < 9999.5 && std::fabs(value) >= 10 ? fixed(value, 0)
                                                             : short_number(value);
}

std::string microseconds(double ns) {
  return short_number(ns / 1000);
}

std::string bandwidth(double bytes_per_s) {
  return short_number(bytes_per_s / 1048576) + "MiB/s (" + short_number(bytes_per_s / 1e6) +
         "MB/s)";
}

std::string amount(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit < 5; unit++) value /= 1024;
  if (unit == 0) return fixed(value, 0) + "B";
  return fixed(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2) + kUnits[unit];
}

std::string percent_change(double ratio) {
  const std::string text = fixed((ratio - 1) * 100, 1);
  if (text == "-0.0" || text == "0.0") return "0.0 %";
  return (ratio > 1 ? "+" : "") + text + " %";
}

size_t display_width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Grid::text(size_t width, const std::string& indent) const {
  if (rows.empty()) return "";
  std::vector<size_t> widths(rows.front().size(), 0);
  size_t total = indent.size();
  for (size_t c = 0; c < widths.size(); c++) {
    for (const auto& row : rows) widths[c] = std::max(widths[c], display_width(row[c]));
    total += widths[c];
  }
  const std::string gap(total + 2 * (widths.size() - 1) <= width ? 2 : 1, ' ');
  std::string out;
  for (const auto& row : rows) {
    std::string line = indent;
    for (size_t c = 0; c < row.size(); c++) {
      const std::string pad(widths[c] - display_width(row[c]), ' ');
      line += (c > 0 ? gap : "") + (c < left ? row[c] + pad : pad + row[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string Grid::markdown() const {
  std::string out;
  for (size_t r = 0; r < rows.size(); r++) {
    out += "|";
    for (const std::string& cell : rows[r]) {
      out += ' ';
      for (const char c : cell) {
        if (c == '|') out += '\\';
        out += c;
      }
      out += " |";
    }
    out += "\n";
    if (r > 0) continue;
    out += "|";
    for (size_t c = 0; c < rows[r].size(); c++) out += c < left ? "---|" : "--:|";
    out += "\n";
  }
  return out;
}

std::string Grid::html() const {
  std::string out = "<div class=\"scroll\"><table>\n";
  for (size_t r = 0; r < rows.size(); r++) {
    const std::string tag = r == 0 ? "th" : "td";
    out += "<tr>";
    for (size_t c = 0; c < rows[r].size(); c++) {
      out += "<" + tag + (c < left ? " class=\"left\">" : ">") + escape_markup(rows[r][c]) + "</" +
             tag + ">";
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ",";
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
      line += field;
      continue;
    }
    line += '"';
    for (const char c : field) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + "\n";
}

std::string escape_markup(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters have no place in XML 1.0.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

}  // namespace nfsrdma::results
