// SPDX-License-Identifier: GPL-2.0-or-later
// Set-up, waiting, completions, and what READ, WRITE and COMMIT calls have in common.
#include "session.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nfs3_status.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kProcedureAt = 5 * kXdrUnit;  // RFC 5531 section 9: the sixth word of a call
constexpr uint32_t kGatherCalls = 32;
constexpr uint64_t kGatherBytes = 64 * 1024;
constexpr uint64_t kSecond = 1'000'000'000;
// Hybrid polling spins for about as long as a sleep and a wake-up cost.
constexpr uint64_t kSpinNs = 20'000;
// Beyond this many calls on the wire a sleep costs no latency that anybody would notice.
constexpr uint32_t kSpinDepthMax = 4;
constexpr uint32_t kSpareSlots = 4;  // COMMITs, resends, control calls beside the I/Os
constexpr uint32_t kSlotsCap = 1024 + kSpareSlots;
constexpr uint64_t kSmallestExtent = 512;
constexpr uint64_t kExtentsMax = 1u << 18;

uint32_t extents_for(uint64_t kept_bytes, uint32_t depth) {
  const uint64_t by_size = std::min(kept_bytes / kSmallestExtent, kExtentsMax);
  return static_cast<uint32_t>(std::max<uint64_t>(by_size, depth));
}

}  // namespace

StatProcedure Session::procedure_of(CallKind kind) {
  constexpr std::array<StatProcedure, 6> kOf = {StatProcedure::kRead,   StatProcedure::kWrite,
                                                StatProcedure::kWrite,  StatProcedure::kCommit,
                                                StatProcedure::kCommit, StatProcedure::kOther};
  return kOf[static_cast<size_t>(kind)];
}

uint32_t Session::slots_per_connection(const SessionConfig& config, uint32_t connections,
                                       uint64_t block_max) {
  const uint64_t piece = std::max<uint32_t>(1, std::min(config.rtmax, config.wtmax));
  const uint64_t calls = std::max<uint64_t>(1, (block_max + piece - 1) / piece) * config.depth;
  return static_cast<uint32_t>(
      std::min<uint64_t>((calls + connections - 1) / connections + kSpareSlots, kSlotsCap));
}

Session::Session(const SessionConfig& config, std::vector<std::unique_ptr<Transport>> connections,
                 const Credential& credential, SessionStatistics* statistics, IssueSink* issues)
    : config_(config),
      statistics_(statistics),
      issues_(issues),
      kept_(config.uncommitted_max, extents_for(config.uncommitted_max, config.depth)),
      credential_(credential),
      ios_(config.depth),
      waiting_(config.depth),
      ready_(config.depth) {
  for (uint32_t io = config.depth; io-- > 0;) free_ios_.push_back(io);
  stalled_.reserve(config.depth);
  // Half of the room for what is on its way to be committed, half for what comes meanwhile.
  if (kept_.enabled())
    config_.commit_bytes = std::min(config.commit_bytes, config.uncommitted_max / 2);

  size_t slots_in_all = 0;
  for (auto& transport : connections) {
    auto connection = std::make_unique<Connection>();
    connection->session = this;
    connection->index = static_cast<uint32_t>(connections_.size());
    connection->transport = std::move(transport);
    connection->transport->set_sink(connection.get());
    // Every head begins with the same call header; only xid and procedure change.
    std::vector<uint32_t> slots;
    for (uint32_t slot; (slot = connection->transport->acquire()) != kNoSlot;) {
      XdrWriter head(connection->transport->head(slot));
      encode_call_header(head, 0, kNfsProgram, kNfsVersion, 0, credential_);
      arguments_at_ = head.size();
      slots.push_back(slot);
    }
    for (const uint32_t slot : slots) connection->transport->release(slot);
    connection->calls.resize(slots.size());
    slots_in_all += slots.size();
    connections_.push_back(std::move(connection));
  }
  delayed_.reserve(slots_in_all);
  polls_.resize(connections_.size());
  statistics_->start_ns = now_ns();
  statistics_->seconds = 0;
}

Session::~Session() {
  update_counters();
  for (auto& connection : connections_) {
    connection->session = nullptr;  // nobody hears of calls that die with the connection
    connection->transport.reset();
  }
}

Result<void> Session::add_memory(Bytes memory) {
  for (auto& connection : connections_) {
    auto added = connection->transport->add_memory(memory);
    if (added && kept_.enabled() && !kept_added_)
      added = connection->transport->add_memory(kept_.memory());
    if (!added) return added;
  }
  kept_added_ = true;
  return {};
}

SessionFile* Session::open_file(std::string name, const FileHandle& handle) {
  auto file = std::make_unique<SessionFile>(std::move(name), handle, kept_.new_file());
  file->sync_waiting.reserve(config_.depth);
  file->sync_covered.reserve(config_.depth);
  files_.push_back(std::move(file));
  return files_.back().get();
}

uint32_t Session::take_io(void* user, SessionFile* file, IoKind kind) {
  // A completion that was not taken yet holds its place, so that ready_ is never too small.
  if (free_ios_.empty() || ios_used_ + ready_count_ >= ios_.size()) return kNoIo;
  const uint32_t index = free_ios_.back();
  free_ios_.pop_back();
  ++ios_used_;
  Io& io = ios_[index];
  io = Io{};
  io.user = user;
  io.file = file;
  io.kind = kind;
  io.queued_ns = now_ns();
  return index;
}

void Session::complete(uint32_t index) {
  const Io& io = ios_[index];
  const uint32_t at = (ready_head_ + ready_count_++) % static_cast<uint32_t>(ready_.size());
  ready_[at] = {.user = io.user, .error = io.error, .bytes = io.error != 0 ? 0 : io.good};
  free_ios_.push_back(index);
  --ios_used_;
}

IoCompletion Session::take() {
  const IoCompletion completion = ready_[ready_head_];
  ready_head_ = (ready_head_ + 1) % static_cast<uint32_t>(ready_.size());
  --ready_count_;
  return completion;
}

// A free slot, of the connections in turn.
Session::Place Session::place() {
  const auto count = static_cast<uint32_t>(connections_.size());
  for (uint32_t i = 0; i < count; ++i) {
    Connection* connection = connections_[next_connection_].get();
    if (++next_connection_ == count) next_connection_ = 0;
    const uint32_t slot = connection->transport->acquire();
    if (slot != kNoSlot) return {connection, slot};
  }
  return {};
}

std::byte* Session::arguments(const Place& at) const {
  return at.connection->transport->head(at.slot).data() + arguments_at_;
}

void Session::prepare_head(const Place& at, NfsProcedure procedure) {
  std::byte* head = at.connection->transport->head(at.slot).data();
  store_be32(head, at.connection->transport->xid(at.slot));
  store_be32(head + kProcedureAt, static_cast<uint32_t>(procedure));
}

void Session::submit(const Place& at, size_t arguments_length, ConstBytes out, Bytes in) {
  Call call;
  call.head_length = static_cast<uint32_t>(arguments_at_ + arguments_length);
  call.bulk_out = out;
  call.bulk_in = in;
  call.split = split_read_reply;
  at.connection->transport->submit(at.slot, call);
  ++gathered_calls_;
  gathered_bytes_ += out.size();
}

void Session::commit() {
  if (gathered_calls_ == 0) return;
  if (gathered_calls_ >= kGatherCalls || gathered_bytes_ >= kGatherBytes || on_wire_ == 0) flush();
}

void Session::flush() {
  if (gathered_calls_ == 0) return;
  gathered_calls_ = 0;
  gathered_bytes_ = 0;
  for (auto& connection : connections_) connection->transport->flush();
}

uint32_t Session::wait(uint32_t min, uint64_t deadline_ns) {
  // fio asks for one event at a time by default. Those that are ready cost it no send call; what
  // it queues meanwhile gathers, and leaves with commit(), or when the last one was taken.
  if (min != 0 && ready_count_ >= min) return ready_count_;
  pump();
  flush();
  const uint64_t begin = now_ns();
  for (uint64_t now = begin;;) {
    // Spinning pays where the answer is likely to come before a sleep would have ended.
    const bool spin = min == 0 || config_.poll == PollMode::kBusy ||
                      (config_.poll == PollMode::kHybrid && on_wire_ <= kSpinDepthMax &&
                       expected_wait_ns_ < kSpinNs && now - begin < kSpinNs);
    // Where the sleep is a receive call, it needs no other before it that finds nothing.
    const bool slept = !spin && sleep_receiving(now, deadline_ns);
    progress();
    now = now_ns();
    if (ready_count_ >= min || now >= deadline_ns) {
      expected_wait_ns_ = (expected_wait_ns_ * 7 + (now - begin)) / 8;
      return ready_count_;
    }
    if (!spin && !slept) sleep(deadline_ns);
  }
}

void Session::progress() {
  for (auto& connection : connections_) connection->transport->progress();
  pump();
  flush();
}

// What had to wait and may be able to go on.
void Session::pump() {
  if (waiting_count_ != 0) restart_waiting();
  if (stalled_changed_ && !stalled_.empty()) restart_stalled();
  if (commits_pending_) {
    commits_pending_ = false;
    for (auto& file : files_) advance_commits(*file);
  }
  if (delayed_due_ns_ == kNever && commit_check_ns_ == kNever) return;
  const uint64_t now = now_ns();
  if (now >= delayed_due_ns_) send_delayed(now);
  if (now >= commit_check_ns_) commit_by_age(now);
}

bool Session::sleep_receiving(uint64_t now, uint64_t until_ns) {
  until_ns = std::min({until_ns, delayed_due_ns_, commit_check_ns_});
  return connections_.size() == 1 &&
         connections_.front()->transport->sleep_receiving(now, until_ns);
}

void Session::sleep(uint64_t until_ns) {
  until_ns = std::min({until_ns, delayed_due_ns_, commit_check_ns_});
  for (size_t i = 0; i < connections_.size(); ++i) {
    Transport& transport = *connections_[i]->transport;
    if (!transport.prepare_wait(polls_[i])) return;
    until_ns = std::min(until_ns, transport.next_timer_ns());
  }
  const uint64_t now = now_ns();
  if (now >= until_ns) return;
  const uint64_t left = std::min(until_ns - now, kSecond);
  const timespec timeout{.tv_sec = static_cast<time_t>(left / kSecond),
                         .tv_nsec = static_cast<long>(left % kSecond)};
  ppoll(polls_.data(), polls_.size(), &timeout, nullptr);
}

void Session::Connection::on_sent(uint32_t slot, uint64_t sent_ns) {
  if (session == nullptr) return;
  CallState& call = calls[slot];
  call.sent_ns = sent_ns;
  ++session->on_wire_;
  const auto issued = [this](uint32_t index) {
    Io& io = session->ios_[index];
    if (io.issued) return;
    io.issued = true;
    session->issues_->on_issued(io.user);
  };
  if (call.io != kNoIo) issued(call.io);
  if (call.kind == CallKind::kCommitFile)
    for (const uint32_t io : call.file->sync_covered) issued(io);
}

void Session::Connection::on_reply(uint32_t slot, const Reply& reply) {
  if (session == nullptr) return;
  if (calls[slot].sent_ns != 0) --session->on_wire_;
  switch (calls[slot].kind) {
    case CallKind::kRead:
      return session->read_reply(*this, slot, reply);
    case CallKind::kWrite:
    case CallKind::kResend:
      return session->write_reply(*this, slot, reply);
    case CallKind::kCommitFile:
    case CallKind::kCommitRange:
      return session->commit_reply(*this, slot, reply);
    case CallKind::kControl:
      return session->control_reply(*this, slot, reply);
  }
}

void Session::count(const CallState& call, const Reply& reply, bool failed, uint64_t bytes) {
  const StatProcedure procedure = procedure_of(call.kind);
  ProcedureStatistics& statistics = statistics_->of(procedure);
  ++statistics.ops;
  statistics.retrans += reply.retransmissions;
  statistics.bytes += bytes;
  if (failed) ++statistics.errors;
  if (reply.error != nullptr) return;  // no reply: no times
  statistics.queue.add(call.sent_ns - call.queued_ns);
  statistics.rtt.add(reply.received_ns - call.sent_ns);
  statistics.exe.add(reply.received_ns - call.queued_ns);
  if (procedure == StatProcedure::kOther) return;
  while (reply.received_ns >= series_end_ns_) {
    series_end_ns_ =
        series_end_ns_ == 0 ? statistics_->start_ns + kSecond : series_end_ns_ + kSecond;
    if (statistics_->seconds < kSeriesSeconds) ++statistics_->seconds;
  }
  ++statistics_->series[statistics_->seconds - 1].ops[static_cast<size_t>(procedure)];
}

void Session::note_error(const std::string& text) {
  if (error_text_.empty()) error_text_ = text;
}

void Session::note_status(const CallState& call, uint32_t status) {
  note_error(describe(call) + ": " + nfs3_words(status) +
             nfs3_hint(status, credential_.uid, credential_.gid));
}

std::string Session::take_error_text() {
  return std::exchange(error_text_, {});
}

std::string Session::describe(const CallState& call) const {
  if (call.kind == CallKind::kControl || call.file == nullptr) return "a control call";
  const std::string where = " '" + call.file->name + "' at " + std::to_string(call.offset);
  switch (call.kind) {
    case CallKind::kRead:
      return "READ of " + std::to_string(call.length) + " bytes from" + where;
    case CallKind::kCommitFile:
      return "COMMIT of '" + call.file->name + "'";
    case CallKind::kCommitRange:
      return "COMMIT of " + std::to_string(call.length) + " bytes of" + where;
    case CallKind::kResend:
      return "WRITE, sent again after a restart of the server, of " + std::to_string(call.length) +
             " bytes to" + where;
    default:
      return "WRITE of " + std::to_string(call.length) + " bytes to" + where;
  }
}

// 0 and where the results begin, or the errno value of a call that brought no results.
int Session::reply_error(const Reply& reply, const CallState& call, size_t* results_at) {
  if (reply.error != nullptr) {
    note_error(describe(call) + ": " + reply.error->text);
    return reply.error->code;
  }
  if (is_plain_success(reply.head)) {
    *results_at = kPlainReplyHeader;
    return 0;
  }
  auto results = decode_reply_header(reply.head);
  if (!results) {
    note_error(describe(call) + ": " + results.error().text);
    return results.error().code;
  }
  *results_at = *results;
  return 0;
}

void Session::abandon(const Error& error) {
  abandoned_ = true;
  for (auto& connection : connections_) connection->transport->abandon(error);
  // What the transports do not know of: calls put off after JUKEBOX, I/Os that wait.
  Reply reply;
  reply.error = &error;
  delayed_due_ns_ = kNever;
  for (const Delayed& each : std::exchange(delayed_, {})) {
    each.connection->transport->release(each.slot);
    each.connection->on_reply(each.slot, reply);
  }
  for (; waiting_count_ != 0; --waiting_count_) {
    end_unstarted(waiting_[waiting_head_], error);
    waiting_head_ = (waiting_head_ + 1) % static_cast<uint32_t>(waiting_.size());
  }
  for (const uint32_t index : std::exchange(stalled_, {})) end_unstarted(index, error);
  for (auto& file : files_) {
    file->commit_wanted = false;
    for (const uint32_t index : std::exchange(file->sync_waiting, {})) end_unstarted(index, error);
  }
}

// An abandoned I/O whose calls, if it had any, have ended.
void Session::end_unstarted(uint32_t index, const Error& error) {
  Io& io = ios_[index];
  io.listed = false;
  if (io.error == 0) io.error = error.code;
  note_error(error.text);
  complete(index);
}

void Session::update_counters() {
  SessionStatistics& to = *statistics_;
  to.connects = to.reconnects = to.credit_stalls = to.send_calls = to.recv_calls = 0;
  to.bad_replies = to.depth_max = 0;
  for (const auto& connection : connections_) {
    if (connection->transport == nullptr) continue;
    const TransportCounters& from = connection->transport->counters();
    to.connects += from.connects;
    to.reconnects += from.reconnects;
    to.credit_stalls += from.credit_stalls;
    to.send_calls += from.send_calls;
    to.recv_calls += from.recv_calls;
    to.bad_replies += from.bad_replies;
    to.depth_max += from.depth_max;
  }
}

}  // namespace nfsrdma
