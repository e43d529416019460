// SPDX-License-Identifier: GPL-2.0-or-later
#include "faults.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace nfsrdma::memd {

namespace {

constexpr std::array<std::string_view, kFaults> kFaultNames = {
    "drop",          "close",          "close-before",   "fragment",  "trickle",      "garbage",
    "bad-xid",       "dup-reply",      "reorder",        "late",      "huge-record",  "grant-zero",
    "grant-huge",    "short-chunk",    "unused-chunk",   "err-vers",  "err-chunk",    "short-read",
    "short-write",   "zero-write",     "jukebox",        "long-read", "commit-error", "auth-error",
    "prog-mismatch", "wrong-verifier", "deny-unreserved"};
static_assert(!kFaultNames.back().empty(), "a name for each fault");

constexpr std::array<std::string_view, kProcIndices> kProcNames = {
    "NULL",    "GETATTR",     "SETATTR", "LOOKUP", "ACCESS",   "READLINK", "READ",      "WRITE",
    "CREATE",  "MKDIR",       "SYMLINK", "MKNOD",  "REMOVE",   "RMDIR",    "RENAME",    "LINK",
    "READDIR", "READDIRPLUS", "FSSTAT",  "FSINFO", "PATHCONF", "COMMIT",   "MOUNTNULL", "MNT",
    "DUMP",    "UMNT",        "UMNTALL", "EXPORT", "OTHER"};
static_assert(!kProcNames.back().empty(), "a name for each procedure");
static_assert(kProcIndices <= 32, "a rule keeps procedures as bits of 32");

constexpr uint32_t bit(Proc proc) {
  return 1u << static_cast<uint32_t>(proc);
}
constexpr uint32_t kNfsBits = (1u << kNfsProcs) - 1;

/// What a kind applies to unless PROCS says less.
uint32_t procs_of(Fault fault) {
  switch (fault) {
    case Fault::kShortChunk:
    case Fault::kUnusedChunk:
    case Fault::kShortRead:
    case Fault::kLongRead:
      return bit(Proc::kRead);
    case Fault::kShortWrite:
    case Fault::kZeroWrite:
    case Fault::kWrongVerifier:
      return bit(Proc::kWrite);
    case Fault::kCommitError:
      return bit(Proc::kCommit);
    case Fault::kJukebox:
      return kNfsBits & ~bit(Proc::kNull);
    case Fault::kAuthError:
    case Fault::kProgMismatch:
      return kNfsBits;
    default:
      return UINT32_MAX;
  }
}

bool parse_number(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

std::string_view next_field(std::string_view& rest, char separator) {
  const size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view field = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return field;
}

bool parse_procs(std::string_view text, uint32_t& procs) {
  procs = 0;
  while (!text.empty()) {
    const std::string_view name = next_field(text, '+');
    const auto found = std::find(kProcNames.begin(), kProcNames.end(), name);
    if (found == kProcNames.end()) return false;
    procs |= 1u << (found - kProcNames.begin());
  }
  return procs != 0;
}

}  // namespace

std::string fault_names() {
  std::string all;
  for (const std::string_view name : kFaultNames) {
    if (!all.empty()) all += ' ';
    all += name;
  }
  return all;
}

std::string_view proc_name(uint32_t proc_index) {
  return kProcNames[proc_index];
}

Result<void> FaultPlan::add(std::string_view spec) {
  std::string_view rest = spec;
  const std::string_view kind = next_field(rest, ':');
  const auto found = std::find(kFaultNames.begin(), kFaultNames.end(), kind);
  if (found == kFaultNames.end()) {
    return fail(EINVAL, "no fault is called '" + std::string(kind) + "': " + fault_names());
  }
  const auto index = static_cast<uint32_t>(found - kFaultNames.begin());
  Rule& rule = rules_[index];
  const uint32_t allowed = procs_of(static_cast<Fault>(index));
  uint32_t wanted = UINT32_MAX;
  const std::string_view every = next_field(rest, ':');
  const std::string_view procs = next_field(rest, ':');
  const std::string_view times = next_field(rest, ':');
  if (!every.empty() && !parse_number(every, rule.every)) {
    return fail(EINVAL, "fault " + std::string(spec) + ": N is a number from 1");
  }
  if (!procs.empty() && !parse_procs(procs, wanted)) {
    return fail(EINVAL, "fault " + std::string(spec) + ": no such procedure (write READ+WRITE)");
  }
  if ((!times.empty() && !parse_number(times, rule.times)) || !rest.empty()) {
    return fail(EINVAL, "fault " + std::string(spec) + ": write KIND[:N[:PROCS[:TIMES]]]");
  }
  rule.procs = allowed & wanted;
  if (rule.procs == 0) {
    return fail(EINVAL, "fault " + std::string(spec) + ": the kind does not apply to these");
  }
  active_ |= 1u << index;
  return {};
}

bool FaultPlan::hit(Fault fault, uint32_t proc_index) {
  Rule& rule = rules_[static_cast<uint32_t>(fault)];
  if ((rule.procs & (1u << proc_index)) == 0) return false;
  if ((rule.seen.fetch_add(1) + 1) % rule.every != 0) return false;
  if (rule.strikes.fetch_add(1) < rule.times) return true;
  rule.strikes.fetch_sub(1);
  return false;
}

bool FaultPlan::jukebox(uint32_t proc_index, uint64_t file, uint64_t offset) {
  constexpr size_t kRefusedMax = 1u << 16;
  if (!has(Fault::kJukebox)) return false;
  const uint64_t key = (offset * uint64_t{0x9e3779b97f4a7c15}) ^ (file << 6) ^ proc_index;
  const std::lock_guard<std::mutex> guard(jukebox_mutex_);
  if (jukebox_refused_.erase(key) > 0) return false;
  if (jukebox_refused_.size() >= kRefusedMax || !hit(Fault::kJukebox, proc_index)) return false;
  jukebox_refused_.insert(key);
  return true;
}

std::string FaultPlan::strikes_json() const {
  std::string text = "{";
  for (uint32_t i = 0; i < kFaults; ++i) {
    if (!has(static_cast<Fault>(i))) continue;
    if (text.size() > 1) text += ", ";
    text.append(1, '"').append(kFaultNames[i]).append("\": ");
    text.append(std::to_string(rules_[i].strikes.load()));
  }
  return text.append(1, '}');
}

std::vector<std::byte> frame_record(ConstBytes message, bool many_fragments) {
  constexpr uint32_t kLast = 1u << 31;
  constexpr size_t kSizes[] = {1, 3, 4, 17, 2, 61, 5, 333, 7, 1021};
  constexpr size_t kFragmentsMax = 64;  // the last one takes what is left
  std::vector<std::byte> record;
  size_t fragments = 0;
  do {
    size_t length = message.size();
    if (many_fragments && ++fragments < kFragmentsMax) {
      length = std::min(length, kSizes[fragments % std::size(kSizes)]);
    }
    std::byte marker[4];
    store_be32(marker, static_cast<uint32_t>(length) | (length == message.size() ? kLast : 0));
    record.insert(record.end(), marker, marker + sizeof marker);
    record.insert(record.end(), message.begin(), message.begin() + static_cast<ptrdiff_t>(length));
    message = message.subspan(length);
  } while (!message.empty());
  return record;
}

void fill_with_garbage(Bytes message) {
  size_t at = std::min<size_t>(message.size(), 4);
  while (at < message.size()) {
    const size_t chunk = std::min<size_t>(message.size() - at, 256);
    if (getrandom(message.data() + at, chunk, 0) < 0) break;
    at += chunk;
  }
}

}  // namespace nfsrdma::memd
