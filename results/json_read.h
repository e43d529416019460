// SPDX-License-Identifier: GPL-2.0-or-later
// JSON files as they are found: with text before, between and after the documents, and cut short.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "latency.h"
#include "result.h"

namespace nfsrdma::results {

/// Reads a whole file of at most 512 MiB. The error names the file.
Result<std::string> read_file(const std::string& path);

/// The JSON objects in `text`, in order. An object begins with '{' at the start of a line; lines
/// outside objects are skipped, since fio prints notes there. Fails, naming `file` and the line,
/// if an object is cut short or is not JSON, or if there is none.
Result<std::vector<nlohmann::json>> json_objects(const std::string& file, const std::string& text);

/// A member as a number or text, or the fallback if it is missing or of another kind.
double number_or(const nlohmann::json& object, const char* key, double fallback);
uint64_t count_or(const nlohmann::json& object, const char* key, uint64_t fallback);
std::string text_or(const nlohmann::json& object, const char* key, const std::string& fallback);
/// A member that is an object, or an empty object.
const nlohmann::json& object_at(const nlohmann::json& object, const char* key);

/// fio's latency object ("min", "max", "mean", "N", "percentile", "bins"), which stats_json shares.
Latency read_latency(const nlohmann::json& object);

}  // namespace nfsrdma::results
