// SPDX-License-Identifier: GPL-2.0-or-later
// READ and WRITE: splitting, short results, JUKEBOX, and writes whose data are kept.
#include <algorithm>
#include <cerrno>

#include "nfs3_status.h"
#include "session.h"

namespace nfsrdma {
namespace {

constexpr uint8_t kEmptyRepliesMax = 3;
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kDelayFirstMs = 100;  // JUKEBOX: doubled each time
constexpr uint64_t kDelayLastMs = 5'000;
constexpr uint32_t kJukebox = static_cast<uint32_t>(Nfs3Status::kJukebox);

}  // namespace

bool Session::read(void* user, SessionFile* file, uint64_t offset, Bytes to) {
  const uint32_t index = take_io(user, file, IoKind::kRead);
  if (index == kNoIo) return false;
  Io& io = ios_[index];
  io.buffer = to.data();
  io.offset = offset;
  io.length = io.good = static_cast<uint32_t>(to.size());
  start(index);
  return true;
}

bool Session::write(void* user, SessionFile* file, uint64_t offset, ConstBytes from,
                    StableHow stable, bool commit_after) {
  const uint32_t index = take_io(user, file, IoKind::kWrite);
  if (index == kNoIo) return false;
  // A stable write over kept bytes replaces them, or they would be sent again over its own.
  const bool over_kept = kept_.enabled() && !file->kept.extents.empty();
  if (over_kept && commit_after) {
    stable = StableHow::kFileSync;
    commit_after = false;
  }
  Io& io = ios_[index];
  io.buffer = const_cast<std::byte*>(from.data());  // only read from
  io.offset = offset;
  io.length = io.good = static_cast<uint32_t>(from.size());
  io.stable = commit_after ? StableHow::kUnstable : stable;
  io.commit_after = commit_after;
  io.kept = over_kept || (!commit_after && stable == StableHow::kUnstable && kept_.enabled());
  start(index);
  return true;
}

// Makes the calls of an I/O, as many as there are slots; what is left waits its turn.
void Session::start(uint32_t index) {
  if (ios_[index].length == 0) return complete(index);
  Progress progress = Progress::kNoSlot;
  if (waiting_count_ == 0) progress = start_calls(index);  // those that came before go first
  put_aside(index, progress);
}

Session::Progress Session::start_calls(uint32_t index) {
  Io& io = ios_[index];
  if (io.error != 0) io.started = io.length;  // what has not been sent stays so
  while (io.started < io.length) {
    const Progress progress = start_next_call(index);
    if (progress != Progress::kStarted) return progress;
  }
  return Progress::kStarted;
}

// Into the list where an I/O goes on, or out of all lists.
void Session::put_aside(uint32_t index, Progress progress) {
  Io& io = ios_[index];
  io.listed = progress != Progress::kStarted;
  if (progress == Progress::kNoSlot)
    waiting_[(waiting_head_ + waiting_count_++) % waiting_.size()] = index;
  else if (progress == Progress::kStalled)
    stalled_.push_back(index);
  else if (io.calls == 0)
    complete(index);  // failed while it waited
}

void Session::restart_waiting() {
  while (waiting_count_ != 0) {
    const uint32_t index = waiting_[waiting_head_];
    const Progress progress = start_calls(index);
    if (progress == Progress::kNoSlot) return;
    waiting_head_ = (waiting_head_ + 1) % static_cast<uint32_t>(waiting_.size());
    --waiting_count_;
    put_aside(index, progress);
  }
}

// Kept writes that wait for room or for an overlapping WRITE hold up nobody else.
void Session::restart_stalled() {
  stalled_changed_ = false;
  size_t still = 0;
  for (size_t i = 0; i < stalled_.size(); ++i) {
    const uint32_t index = stalled_[i];
    const Progress progress = start_calls(index);
    if (progress == Progress::kStalled)
      stalled_[still++] = index;
    else
      put_aside(index, progress);
  }
  stalled_.resize(still);
}

Session::Progress Session::start_next_call(uint32_t index) {
  Io& io = ios_[index];
  const bool is_read = io.kind == IoKind::kRead;
  const uint32_t length = std::min(io.length - io.started, is_read ? config_.rtmax : config_.wtmax);
  const uint64_t offset = io.offset + io.started;
  const Place at = place();
  if (at.slot == kNoSlot) return Progress::kNoSlot;
  CallState& call = at.connection->calls[at.slot];
  call = CallState{};
  call.kind = is_read ? CallKind::kRead : CallKind::kWrite;
  call.io = index;
  call.file = io.file;
  call.data = io.buffer + io.started;
  call.offset = offset;
  call.length = length;
  call.queued_ns = io.queued_ns;
  if (io.kept) {
    const WriteBack::Admission admission = kept_.admit(io.file->kept, offset, length);
    if (admission.refusal != WriteBack::Refusal::kNone) {
      at.connection->transport->release(at.slot);
      if (admission.refusal == WriteBack::Refusal::kFull) want_commits();
      return Progress::kStalled;
    }
    std::copy_n(call.data, length, admission.data.data());
    call.data = admission.data.data();
    call.extent = admission.extent;
  }
  io.started += length;
  ++io.calls;
  resubmit(at);
  return Progress::kStarted;
}

// Sends the call that its CallState describes, with the slot's new xid.
void Session::resubmit(const Place& at) {
  CallState& call = at.connection->calls[at.slot];
  switch (call.kind) {
    case CallKind::kRead:
      call.resends = call.file->resends;
      return send_read(at);
    case CallKind::kWrite:
    case CallKind::kResend:
      return send_write(at);
    case CallKind::kCommitFile:
    case CallKind::kCommitRange:
      return send_commit(at);
    case CallKind::kControl:
      return;
  }
}

void Session::send_read(const Place& at) {
  const CallState& call = at.connection->calls[at.slot];
  prepare_head(at, NfsProcedure::kRead);
  XdrWriter to(Bytes(arguments(at), kDataArgumentsMax));
  encode_read_args(to, call.file->handle, call.offset, call.length);
  submit(at, to.size(), {}, {call.data, call.length});
}

void Session::send_write(const Place& at) {
  const CallState& call = at.connection->calls[at.slot];
  const StableHow stable = call.io == kNoIo ? StableHow::kUnstable : ios_[call.io].stable;
  prepare_head(at, NfsProcedure::kWrite);
  XdrWriter to(Bytes(arguments(at), kDataArgumentsMax));
  encode_write_args(to, call.file->handle, call.offset, call.length, stable);
  submit(at, to.size(), {call.data, call.length}, {});
}

// JUKEBOX (RFC 1813 section 2.6): the same again later, with a new xid. False: it was too often.
bool Session::delay(Connection& connection, const CallState& call) {
  const uint64_t wait_ms =
      std::min(kDelayFirstMs << std::min<uint32_t>(call.delays, 10), kDelayLastMs);
  const uint64_t spent_ns = now_ns() - call.queued_ns;
  const uint64_t most_ns = uint64_t{config_.timeo_ms} * (config_.retrans + 1) * kMs;
  if (config_.soft && spent_ns + wait_ms * kMs > most_ns) return false;
  const uint32_t slot = connection.transport->acquire();
  if (slot == kNoSlot) return false;  // the slot of this reply is free, so there is one
  CallState& again = connection.calls[slot];
  again = call;
  again.sent_ns = 0;
  if (again.delays < UINT8_MAX) ++again.delays;
  const uint64_t due = now_ns() + wait_ms * kMs;
  delayed_.push_back({&connection, slot, due});
  delayed_due_ns_ = std::min(delayed_due_ns_, due);
  ++statistics_->of(procedure_of(call.kind)).retrans;
  return true;
}

void Session::send_delayed(uint64_t now) {
  delayed_due_ns_ = kNever;
  size_t kept = 0;
  for (const Delayed& each : delayed_) {
    if (now >= each.due_ns) {
      resubmit({each.connection, each.slot});
      continue;
    }
    delayed_due_ns_ = std::min(delayed_due_ns_, each.due_ns);
    delayed_[kept++] = each;
  }
  delayed_.resize(kept);
}

void Session::read_reply(Connection& connection, uint32_t slot, const Reply& reply) {
  CallState call = connection.calls[slot];
  ReadResult result;
  size_t results_at = 0;
  int error = reply_error(reply, call, &results_at);
  if (error == 0) {
    if (!decode_read_result(XdrReader(reply.head.subspan(results_at)), &result)) {
      error = EPROTO;
      note_error(describe(call) + ": the reply is no READ3res");
    } else if (result.status == kJukebox && delay(connection, call)) {
      return;
    } else if (result.status != 0) {
      error = nfs3_errno(result.status);
      note_status(call, result.status);
    } else if (result.count != reply.bulk_length || result.data_length != reply.bulk_length) {
      error = EPROTO;
      note_error(describe(call) + ": the reply's count of " + std::to_string(result.count) +
                 " is not the length of its data, " + std::to_string(reply.bulk_length));
    }
  }
  uint32_t got = error == 0 ? reply.bulk_length : 0;
  count(call, reply, error != 0, got);
  const bool stale = call.resends != call.file->resends;
  if (error == 0 && !stale) {
    if (!call.file->kept.extents.empty()) {
      // A restart may have shortened the file too: it ends where its last kept data end.
      if (result.eof && got < call.length) {
        const uint64_t end =
            kept_.end_within(call.file->kept, call.offset + got, call.offset + call.length);
        std::fill(call.data + got, call.data + (end - call.offset), std::byte{0});
        got = static_cast<uint32_t>(end - call.offset);
      }
      kept_.overlay(call.file->kept, call.offset, {call.data, got});
    }
    call.empty_replies = got == 0 ? static_cast<uint8_t>(call.empty_replies + 1) : 0;
    if (got < call.length && !result.eof && call.empty_replies >= kEmptyRepliesMax) {
      error = EIO;
      note_error(describe(call) + ": the server keeps returning no data, and no end of file");
    }
  }
  if (error == 0 && (stale || (got < call.length && !result.eof))) {
    // The rest; or all of it once more, when lost data came back meanwhile: the server may have
    // answered without them, and once they are stable nothing kept lies over the answer.
    const uint32_t done = stale ? 0 : got;
    call.data += done;
    call.offset += done;
    call.length -= done;
    call.sent_ns = 0;
    call.queued_ns = now_ns();
    const Place at{&connection, connection.transport->acquire()};
    connection.calls[at.slot] = call;
    resubmit(at);
    return;
  }
  Io& io = ios_[call.io];
  if (error != 0)
    io.error = io.error != 0 ? io.error : error;
  else if (got < call.length)
    io.good = std::min(io.good, static_cast<uint32_t>(call.offset + got - io.offset));
  call_ended(call.io);
}

void Session::write_reply(Connection& connection, uint32_t slot, const Reply& reply) {
  CallState call = connection.calls[slot];
  WriteResult result;
  size_t results_at = 0;
  const StableHow asked = call.io == kNoIo ? StableHow::kUnstable : ios_[call.io].stable;
  int error = reply_error(reply, call, &results_at);
  if (error == 0) {
    if (!decode_write_result(XdrReader(reply.head.subspan(results_at)), &result)) {
      error = EPROTO;
      note_error(describe(call) + ": the reply is no WRITE3res");
    } else if (result.status == kJukebox && delay(connection, call)) {
      return;
    } else if (result.status != 0) {
      error = nfs3_errno(result.status);
      note_status(call, result.status);
    } else if (result.count > call.length) {
      error = EPROTO;
      note_error(describe(call) + ": the server says it wrote " + std::to_string(result.count));
    } else if (result.committed < asked) {
      error = EPROTO;
      note_error(describe(call) + ": the server committed less than was asked for (stable_how " +
                 std::to_string(static_cast<uint32_t>(result.committed)) + " instead of " +
                 std::to_string(static_cast<uint32_t>(asked)) + ")");
    }
  }
  const uint32_t wrote = error == 0 ? result.count : 0;
  count(call, reply, error != 0, wrote);
  if (error == 0) {
    if (result.committed == StableHow::kUnstable) unstable_written(call, result);
    call.empty_replies = wrote == 0 ? static_cast<uint8_t>(call.empty_replies + 1) : 0;
    if (call.empty_replies >= kEmptyRepliesMax) {
      error = EIO;
      note_error(describe(call) + ": the server accepts 0 bytes, without an error");
    }
  }
  if (error == 0 && wrote < call.length) {
    call.data += wrote;
    call.offset += wrote;
    call.length -= wrote;
    call.sent_ns = 0;
    call.queued_ns = now_ns();
    const Place at{&connection, connection.transport->acquire()};
    connection.calls[at.slot] = call;
    resubmit(at);
    return;
  }
  if (call.extent != nullptr) {
    if (error != 0 && call.kind == CallKind::kResend) {
      resend_failed(*call.file, call.extent, error);
    } else if (error != 0 || !call.unstable) {
      kept_.forget(call.file->kept, call.extent);
    } else {
      if (call.file->kept_since_ns == 0) {
        call.file->kept_since_ns = now_ns();
        commit_check_ns_ =
            std::min(commit_check_ns_, call.file->kept_since_ns + config_.commit_ms * kMs);
      }
      kept_.written(call.file->kept, call.extent, call.verifier);
      if (call.verifier_mixed) kept_.lose(call.file->kept, call.extent);
    }
    stalled_changed_ = true;
    if (kept_.used() >= config_.commit_bytes) want_commits();
  }
  if (call.kind == CallKind::kResend) {
    ++call.file->resends;
    ++statistics_->resent_writes;
    statistics_->resent_bytes += wrote;
    advance_commits(*call.file);
    return;
  }
  if (error != 0) ios_[call.io].error = ios_[call.io].error != 0 ? ios_[call.io].error : error;
  call_ended(call.io);
}

// Notes which verifier guards bytes that the server may still lose.
void Session::unstable_written(CallState& call, const WriteResult& result) {
  saw_verifier(result.verifier);
  if (call.extent != nullptr) {
    if (call.unstable && call.verifier != result.verifier) call.verifier_mixed = true;
    call.unstable = true;
    call.verifier = result.verifier;
    return;
  }
  Io& io = ios_[call.io];
  if (io.commit_after) {
    if (io.verifier_seen && io.verifier != result.verifier) io.verifier_mixed = true;
    io.verifier_seen = true;
    io.verifier = result.verifier;
    return;
  }
  UnkeptWrites& unkept = call.file->unkept;
  if (unkept.count != 0 && unkept.verifier != result.verifier) unkept.mixed = true;
  unkept.verifier = result.verifier;
  ++unkept.count;
}

void Session::call_ended(uint32_t index) {
  Io& io = ios_[index];
  --io.calls;
  if (io.calls != 0 || io.listed) return;
  if (io.error == 0 && io.commit_after && io.verifier_seen) {
    start_range_commit(index);
    return;
  }
  complete(index);
}

}  // namespace nfsrdma
