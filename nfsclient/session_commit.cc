// SPDX-License-Identifier: GPL-2.0-or-later
// COMMIT (RFC 1813 section 3.3.21): fsync, commits by amount and age, and what is sent again when
// the write verifier has changed.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "nfs3_status.h"
#include "session.h"

namespace nfsrdma {
namespace {

// COMMITs in a row that found data lost: a server that restarts ever again.
constexpr uint32_t kCommitRoundsMax = 8;
constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kJukebox = static_cast<uint32_t>(Nfs3Status::kJukebox);

}  // namespace

bool Session::sync(void* user, SessionFile* file) {
  const uint32_t index = take_io(user, file, IoKind::kSync);
  if (index == kNoIo) return false;
  if (abandoned_) {
    ios_[index].error = EIO;
    note_error("fsync of '" + file->name + "': the server was given up");
    complete(index);
    return true;
  }
  file->sync_waiting.push_back(index);
  advance_commits(*file);
  return true;
}

// Sends what the file's syncs and commits wait for: first what was lost, then a COMMIT.
void Session::advance_commits(SessionFile& file) {
  if (file.commit_out || abandoned_) return;
  if (file.kept.lost != 0) return send_lost(file);
  if (file.sync_waiting.empty() && !file.commit_wanted) return;
  const Place at = place();
  if (at.slot == kNoSlot) {
    commits_pending_ = true;
    return;
  }
  file.commit_out = true;
  file.commit_wanted = false;
  file.commit_stamp = kept_.stamp();
  file.commit_unkept = std::exchange(file.unkept, {});
  file.sync_covered.swap(file.sync_waiting);
  CallState& call = at.connection->calls[at.slot];
  call = CallState{};
  call.kind = CallKind::kCommitFile;
  call.file = &file;
  call.queued_ns = file.sync_covered.empty() ? now_ns() : ios_[file.sync_covered.front()].queued_ns;
  send_commit(at);
}

void Session::send_commit(const Place& at) {
  const CallState& call = at.connection->calls[at.slot];
  prepare_head(at, NfsProcedure::kCommit);
  XdrWriter to(Bytes(arguments(at), kDataArgumentsMax));
  encode_commit_args(to, call.file->handle, call.offset, call.length);
  submit(at, to.size(), {}, {});
}

// O_DIRECT above wtmax: the I/O's own range, before it completes.
void Session::start_range_commit(uint32_t index) {
  Io& io = ios_[index];
  if (io.verifier_mixed) return range_committed(index, 0, io.verifier);
  const Place at = place();  // the slot of the reply just taken is free
  if (at.slot == kNoSlot) {
    io.error = EIO;
    note_error("no call slot for a COMMIT of '" + io.file->name + "'");
    return complete(index);
  }
  ++io.calls;
  CallState& call = at.connection->calls[at.slot];
  call = CallState{};
  call.kind = CallKind::kCommitRange;
  call.io = index;
  call.file = io.file;
  call.offset = io.offset;
  call.length = io.length;
  call.queued_ns = now_ns();
  send_commit(at);
}

void Session::commit_reply(Connection& connection, uint32_t slot, const Reply& reply) {
  const CallState call = connection.calls[slot];
  CommitResult result;
  size_t results_at = 0;
  int error = reply_error(reply, call, &results_at);
  if (error == 0) {
    if (!decode_commit_result(XdrReader(reply.head.subspan(results_at)), &result)) {
      error = EPROTO;
      note_error(describe(call) + ": the reply is no COMMIT3res");
    } else if (result.status == kJukebox && delay(connection, call)) {
      return;
    } else if (result.status != 0) {
      error = nfs3_errno(result.status);
      note_status(call, result.status);
    }
  }
  count(call, reply, error != 0, 0);
  if (error == 0) saw_verifier(result.verifier);
  if (call.kind == CallKind::kCommitFile) return file_committed(*call.file, error, result.verifier);
  --ios_[call.io].calls;
  range_committed(call.io, error, result.verifier);
}

void Session::saw_verifier(WriteVerifier verifier) {
  if (verifier_known_ && verifier == verifier_) return;
  // A late reply may still bring the one before: over several connections replies overtake.
  if (verifier_known_ && verifier != previous_verifier_) ++statistics_->verifier_changes;
  previous_verifier_ = verifier_known_ ? verifier_ : verifier;
  verifier_known_ = true;
  verifier_ = verifier;
}

// All WRITEs of the range must have had the COMMIT's verifier; else the buffer, which is still
// fio's own, is written once more.
void Session::range_committed(uint32_t index, int error, WriteVerifier verifier) {
  Io& io = ios_[index];
  if (error == 0 && (io.verifier_mixed || io.verifier != verifier)) {
    if (++io.rounds <= kCommitRoundsMax) {
      ++statistics_->resent_writes;
      statistics_->resent_bytes += io.length;
      io.started = 0;
      io.verifier_seen = io.verifier_mixed = false;
      return start(index);
    }
    error = EIO;
    note_error("COMMIT of '" + io.file->name + "': the server's write verifier changed " +
               std::to_string(kCommitRoundsMax) + " times in a row");
  }
  if (error != 0) io.error = error;
  complete(index);
}

void Session::file_committed(SessionFile& file, int error, WriteVerifier verifier) {
  file.commit_out = false;
  stalled_changed_ = true;
  file.kept_since_ns = 0;
  const UnkeptWrites unkept = std::exchange(file.commit_unkept, {});
  if (error == 0 && unkept.count != 0 && (unkept.mixed || unkept.verifier != verifier)) {
    error = EIO;
    statistics_->lost_writes += unkept.count;
    note_error("COMMIT of '" + file.name + "': the server restarted and lost " +
               std::to_string(unkept.count) +
               " unstable writes, which uncommitted_max=0 does not keep");
  }

  if (error == 0 && kept_.committed(file.kept, file.commit_stamp, verifier) != 0) {
    if (++file.commit_rounds <= kCommitRoundsMax) {
      // What waited for this COMMIT waits for the one behind the resends.
      file.sync_waiting.insert(file.sync_waiting.begin(), file.sync_covered.begin(),
                               file.sync_covered.end());
      file.sync_covered.clear();
      file.commit_wanted = true;
      return advance_commits(file);
    }
    error = EIO;
    note_error("COMMIT of '" + file.name + "': the server's write verifier changed " +
               std::to_string(kCommitRoundsMax) + " times in a row");
  }
  if (error != 0) {
    statistics_->lost_writes += kept_.drop(file.kept);
    file.write_error = error;
  }
  file.commit_rounds = 0;
  finish_syncs(file, file.write_error);
  if (file.kept.kept_bytes != 0) {  // written while the COMMIT was on its way
    file.kept_since_ns = now_ns();
    commit_check_ns_ = std::min(commit_check_ns_, file.kept_since_ns + config_.commit_ms * kMs);
  }
  advance_commits(file);
}

void Session::finish_syncs(SessionFile& file, int error) {
  if (file.sync_covered.empty()) return;  // a lost write is told by the next sync
  for (const uint32_t index : file.sync_covered) {
    ios_[index].error = error;
    complete(index);
  }
  file.sync_covered.clear();
  file.write_error = 0;
}

void Session::send_lost(SessionFile& file) {
  while (file.kept.lost != file.kept.resending) {
    const Place at = place();
    if (at.slot == kNoSlot) {
      commits_pending_ = true;
      return;
    }
    Extent* extent = kept_.next_lost(file.kept);
    CallState& call = at.connection->calls[at.slot];
    call = CallState{};
    call.kind = CallKind::kResend;
    call.file = &file;
    call.extent = extent;
    call.data = kept_.data(*extent).data();
    call.offset = extent->start;
    call.length = static_cast<uint32_t>(extent->end - extent->start);
    call.queued_ns = now_ns();
    send_write(at);
  }
}

void Session::resend_failed(SessionFile& file, Extent* extent, int error) {
  kept_.forget(file.kept, extent);
  ++statistics_->lost_writes;
  file.write_error = error;
}

// The room for kept data is used up, or nearly so.
void Session::want_commits() {
  for (auto& file : files_) {
    if ((file->kept.kept_bytes == 0 && file->kept.lost == 0) || file->commit_out) continue;
    file->commit_wanted = true;
    commits_pending_ = true;
  }
}

void Session::commit_by_age(uint64_t now) {
  commit_check_ns_ = kNever;
  for (auto& file : files_) {
    if (file->kept_since_ns == 0) continue;
    const uint64_t due = file->kept_since_ns + config_.commit_ms * kMs;
    if (now < due) {
      commit_check_ns_ = std::min(commit_check_ns_, due);
    } else if (!file->commit_out) {
      file->commit_wanted = true;
      advance_commits(*file);
    }
  }
}

void Session::forget_unlinked(const std::string& name) {
  for (auto& file : files_)
    if (file->name == name) file->unlinked = true;
}

Result<void> Session::close_file(SessionFile* file) {
  const auto dirty = [file] {
    return !file->kept.extents.empty() || file->unkept.count != 0 || file->commit_out;
  };
  while (file->unlinked && dirty()) {
    // A COMMIT would find a stale handle. What is on its way still has to come back.
    kept_.drop(file->kept);
    file->unkept = {};
    file->commit_wanted = false;
    if (!dirty()) break;
    progress();
    if (dirty()) sleep(kNever);
  }
  if (abandoned_ && dirty()) {
    statistics_->lost_writes += file->kept.extents.size() + file->unkept.count;
    kept_.drop(file->kept);
    file->write_error = EIO;
    note_error("the server did not answer, so they were not committed");
  }
  while (!abandoned_ && dirty()) {
    if (!file->commit_out) {
      file->commit_wanted = true;
      advance_commits(*file);
    }
    flush();
    progress();
    if (dirty()) sleep(kNever);
  }
  const int error = file->unlinked ? 0 : file->write_error;
  const std::string name = file->name;
  std::erase_if(files_, [file](const auto& each) { return each.get() == file; });
  if (error != 0)
    return fail(error, "data written to '" + name +
                           "' were lost before they were stable: " + take_error_text());
  return {};
}

}  // namespace nfsrdma
