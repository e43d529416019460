// SPDX-License-Identifier: GPL-2.0-or-later
#include "json_read.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace nfsrdma::results {
namespace {

constexpr off_t kFileBytesMax = off_t{512} << 20;

size_t line_of(const std::string& text, size_t offset) {
  return 1 + static_cast<size_t>(std::count(
                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

/// Where the object that begins at `begin` ends (one past its '}'), or npos if it does not.
size_t object_end(const std::string& text, size_t begin) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = begin; i < text.size(); i++) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') i++;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      depth++;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string::npos;
}

size_t object_begin(const std::string& text, size_t from) {
  while (from < text.size()) {
    if (text[from] == '{') return from;
    const size_t newline = text.find('\n', from);
    if (newline == std::string::npos) break;
    from = newline + 1;
  }
  return std::string::npos;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0)
    return fail(errno, path + ": cannot be read: " + std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return fail(EISDIR, path + ": is a folder, not a file");
  if (info.st_size > kFileBytesMax) return fail(EFBIG, path + ": larger than 512 MiB, refused");
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in && info.st_size > 0) return fail(EIO, path + ": cannot be read: " + std::strerror(errno));
  return std::move(text).str();
}

Result<std::vector<nlohmann::json>> json_objects(const std::string& file, const std::string& text) {
  std::vector<nlohmann::json> found;
  size_t at = object_begin(text, 0);
  if (text.empty()) return fail(EBADMSG, file + ": is empty");
  if (at == std::string::npos) return fail(EBADMSG, file + ": holds no JSON object");
  while (at != std::string::npos) {
    const size_t end = object_end(text, at);
    if (end == std::string::npos) {
      return fail(EBADMSG, file + ": truncated: the JSON object that begins in line " +
                               std::to_string(line_of(text, at)) + " has no end");
    }
    try {
      found.push_back(nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(at),
                                            text.begin() + static_cast<std::ptrdiff_t>(end)));
    } catch (const nlohmann::json::parse_error& error) {
      const size_t where = std::min(at + (error.byte > 0 ? error.byte - 1 : 0), end - 1);
      return fail(EBADMSG, file + ": not JSON at line " + std::to_string(line_of(text, where)) +
                               " (was other output mixed into it?)");
    }
    at = object_begin(text, std::min(text.find('\n', end), text.size()));
    // The search above starts on the newline itself; object_begin moves on from there.
  }
  return found;
}

double number_or(const nlohmann::json& object, const char* key, double fallback) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : fallback;
}

uint64_t count_or(const nlohmann::json& object, const char* key, uint64_t fallback) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number()) return fallback;
  if (it->is_number_unsigned()) return it->get<uint64_t>();
  const double value = it->get<double>();
  return value > 0 && value < 1.8e19 ? static_cast<uint64_t>(value) : 0;
}

std::string text_or(const nlohmann::json& object, const char* key, const std::string& fallback) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : fallback;
}

const nlohmann::json& object_at(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  const auto it = object.find(key);
  return it != object.end() && it->is_object() ? *it : kEmpty;
}

Latency read_latency(const nlohmann::json& object) {
  Latency latency;
  latency.count = count_or(object, "N", 0);
  latency.mean_ns = number_or(object, "mean", 0);
  latency.min_ns = number_or(object, "min", 0);
  latency.max_ns = number_or(object, "max", 0);
  for (const auto& [key, value] : object_at(object, "percentile").items()) {
    if (value.is_number()) {
      latency.percentiles[std::strtod(key.c_str(), nullptr)] = value.get<double>();
    }
  }
  for (const auto& [key, value] : object_at(object, "bins").items()) {
    if (value.is_number_unsigned()) {
      latency.bins[std::strtoull(key.c_str(), nullptr, 10)] += value.get<uint64_t>();
    }
  }
  return latency;
}

}  // namespace nfsrdma::results
