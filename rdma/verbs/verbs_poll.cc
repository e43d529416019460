// SPDX-License-Identifier: GPL-2.0-or-later
// Completions, waiting for them, and how a connection fails.
#include <algorithm>
#include <cerrno>

#include "transport.h"
#include "verbs_connection.h"
#include "verbs_words.h"

namespace nfsrdma::verbs {
namespace {

constexpr uint32_t kPollBatch = 32;
// The connection manager's channel costs a system call to look at, so a busy poller does so rarely.
constexpr uint32_t kPollsPerLook = 1024;
// Acknowledging takes a lock, so it is done for many at once.
constexpr uint32_t kAckBatch = 64;
constexpr uint64_t kWakeFirstNs = 5'000'000;
constexpr uint64_t kWakeMostNs = 1'280'000'000;

}  // namespace

void VerbsConnection::fail_with(Error error) {
  if (state_ == ConnectionState::kFailed || state_ == ConnectionState::kIdle) return;
  error_ = {error.code != 0 ? error.code : EIO, peer_name_ + ": " + error.text};
  state_ = ConnectionState::kFailed;
  phase_ = Phase::kNone;
  report_disconnected_ = true;
}

void VerbsConnection::look_at_events() {
  CmEvent event;
  while (state_ != ConnectionState::kFailed && channel_ && next_event(channel_.get(), event))
    take_event(event);
}

bool VerbsConnection::retire(uint64_t number, Completion& out) {
  const Request* request = posted_.retire(number);
  if (request == nullptr || request->quiet) return false;
  out = Completion{};
  out.context = request->context;
  switch (request->kind) {
    case RequestKind::kSend:
      out.kind = CompletionKind::kSendDone;
      return true;
    case RequestKind::kWrite:
      out.kind = CompletionKind::kWriteDone;
      return true;
    case RequestKind::kRead:
      out.kind = CompletionKind::kReadDone;
      return true;
    case RequestKind::kInvalidate:
      windows_.give_back(request->key_slot);
      out.kind = CompletionKind::kUnbound;
      return true;
    case RequestKind::kBind:
    case RequestKind::kWake:
      break;
  }
  return false;
}

bool VerbsConnection::take_receive(const ibv_wc& wc, Completion& out) {
  if (receives_posted_ > 0) --receives_posted_;
  heard_ = true;
  out = Completion{};
  out.kind = CompletionKind::kReceive;
  out.buffer = static_cast<uint32_t>(wc.wr_id & ~kReceiveBit);
  out.bytes = wc.byte_len;
  if ((wc.wc_flags & fabric_->limits().invalidated_flags) != 0) {
    out.invalidated = true;
    out.key = wc.invalidated_rkey;
    const uint32_t slot = windows_.find(wc.invalidated_rkey);
    if (slot != kNoKeySlot) windows_.give_back(slot);
  }
  return true;
}

bool VerbsConnection::take_completion(const ibv_wc& wc, Completion& out) {
  if (wc.status == IBV_WC_SUCCESS)
    return is_receive(wc.wr_id) ? take_receive(wc, out) : retire(wc.wr_id, out);
  if (is_receive(wc.wr_id) && receives_posted_ > 0) --receives_posted_;
  // These say only that the connection has ended: the connection manager may know why.
  if (wc.status == IBV_WC_WR_FLUSH_ERR || wc.status == IBV_WC_LOC_QP_OP_ERR) look_at_events();
  fail_with(completion_error(wc.status));
  return false;
}

void VerbsConnection::take_wakeup() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(completions_, &cq, &context) != 0) return;
  armed_ = false;
  if (++unacked_ < kAckBatch) return;
  ibv_ack_cq_events(cq_, unacked_);
  unacked_ = 0;
}

uint32_t VerbsConnection::poll(std::span<Completion> out) {
  uint32_t count = 0;
  if (state_ == ConnectionState::kConnecting) drive_setup();
  if (report_established_ && count < out.size()) {
    report_established_ = false;
    out[count] = Completion{};
    out[count++].kind = CompletionKind::kEstablished;
  }
  bool empty = true;
  if (was_connected_ && qp_ != nullptr && !report_established_ &&
      (state_ == ConnectionState::kEstablished || report_disconnected_)) {
    if (state_ == ConnectionState::kEstablished) push_receives();
    std::array<ibv_wc, kPollBatch> done;
    while (count < out.size()) {
      const auto wanted = std::min<uint32_t>(kPollBatch, static_cast<uint32_t>(out.size()) - count);
      ++counters_.recv_calls;
      const int got = ibv_poll_cq(cq_, static_cast<int>(wanted), done.data());
      if (got < 0) fail_with({EIO, "the completion queue of the RDMA device failed"});
      for (int i = 0; i < got; ++i) {
        if (take_completion(done[static_cast<size_t>(i)], out[count])) ++count;
      }
      if (got > 0) idle_polls_ = 0;
      more_ = got == static_cast<int>(wanted);
      if (!more_) break;
    }
    empty = !more_;
  }
  if (state_ == ConnectionState::kEstablished) {
    if (armed_ && (slept_ || count > 0)) take_wakeup();
    const bool look = (slept_ && count == 0) || ++idle_polls_ >= kPollsPerLook;
    slept_ = false;
    if (look) {
      idle_polls_ = 0;
      look_at_events();
    }
    wake_peer();
    // The completions that came before the end go first.
    if (state_ == ConnectionState::kFailed) empty = false;
  }
  if (report_disconnected_ && empty && count < out.size()) {
    report_disconnected_ = false;
    out[count] = Completion{};
    out[count++].kind = CompletionKind::kDisconnected;
  }
  return count;
}

bool VerbsConnection::prepare_wait(pollfd& wait) {
  wait = {-1, 0, 0};
  if (report_established_ || report_disconnected_) return false;
  switch (state_) {
    case ConnectionState::kConnecting:
      wait = {wake_fd_.get(), POLLIN, 0};
      return true;
    case ConnectionState::kEstablished:
      break;
    case ConnectionState::kIdle:
    case ConnectionState::kRequested:
    case ConnectionState::kFailed:
      return true;
  }
  if (!push_receives() || more_) return false;
  if (!armed_) {
    // What came before the queue was armed wakes nobody: it must be polled for once more.
    const int code = ibv_req_notify_cq(cq_, 0);
    if (code != 0) {
      fail_with({code, "the completion queue of the RDMA device can't be waited for"});
      return false;
    }
    armed_ = true;
    return false;
  }
  wait = {wake_fd_.get(), POLLIN, 0};
  slept_ = true;
  return true;
}

// siw's server side looks at a first message that comes right behind its reply only when more
// bytes follow, in about one set-up of ten. A zero-length RDMA Write names no memory and makes it
// look: sent while the peer has been silent since its set-up, at growing intervals.
void VerbsConnection::wake_peer() {
  if (!client_ || heard_ || !sent_ || !fabric_->limits().iwarp) return;
  const uint64_t now = now_ns();
  if (wake_at_ns_ == 0) {
    wake_delay_ns_ = kWakeFirstNs;
  } else if (now < wake_at_ns_) {
    return;
  } else {
    send_wake();
    wake_delay_ns_ = std::min(2 * wake_delay_ns_, kWakeMostNs);
  }
  wake_at_ns_ = now + wake_delay_ns_;
}

uint64_t VerbsConnection::next_timer_ns() const {
  if (state_ == ConnectionState::kConnecting) return deadline_ns_;
  if (state_ != ConnectionState::kEstablished || !client_ || heard_ || fabric_ == nullptr ||
      !fabric_->limits().iwarp)
    return UINT64_MAX;
  if (wake_at_ns_ != 0) return wake_at_ns_;
  return sent_ ? 0 : UINT64_MAX;
}

}  // namespace nfsrdma::verbs
