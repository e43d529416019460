// SPDX-License-Identifier: GPL-2.0-or-later
#include "iwarp_connection.h"

#include <algorithm>
#include <cerrno>

#include "socket_io.h"
#include "transport.h"

namespace nfsrdma::iwarp {
namespace {

constexpr uint64_t kWakeFirstNs = 5'000'000;
constexpr uint64_t kWakeMostNs = 1'280'000'000;

}  // namespace

IwarpConnection::IwarpConnection(IwarpFabric& fabric, const ConnectionConfig& config) {
  configure(fabric, config);
}

void IwarpConnection::configure(IwarpFabric& fabric, const ConnectionConfig& config) {
  fabric_ = &fabric;
  config_ = config;
  keys_.regions = &fabric.regions();
  keys_.bound = StagTable(StagClass::kBound, config.key_count);
  tx_.emplace(config_, keys_);
  rx_.emplace(config_, keys_, *tx_);
  unbound_.reserve(config.key_count);
}

void IwarpConnection::fail_with(int code, std::string text) {
  if (state_ == ConnectionState::kFailed) return;
  error_ = {code, peer_name_ + ": " + std::move(text)};
  state_ = ConnectionState::kFailed;
  phase_ = Phase::kNone;
  report_disconnected_ = true;
}

// The Receiver has found a fault, or the end of the stream.
void IwarpConnection::stream_failed() {
  const StreamFailure& failure = rx_->failure();
  if (failure.terminate) {
    tx_->terminate(failure.code, {failure.blamed.data(), failure.blamed_bytes}, counters_);
    fail_with(failure.error.code,
              failure.error.text + "; ended with Terminate: " + to_string(failure.code));
  } else {
    fail_with(failure.error.code, failure.error.text);
  }
  // The peer sees the end at once, also when close() comes later.
  shutdown(socket_.get(), SHUT_WR);
}

void IwarpConnection::ring() {
  if (state_ != ConnectionState::kEstablished) return;
  tx_->ring();
  tx_->push(counters_);
}

// siw looks at a first FPDU that comes right behind its MPA reply only when more bytes follow, in
// about one set-up of ten. A zero-length RDMA Write names no memory and makes it look. Sent while
// the peer has been silent since its reply, at growing intervals.
void IwarpConnection::wake_peer() {
  if (!client_ || rx_->heard() || !tx_->sent_anything()) return;
  const uint64_t now = now_ns();
  if (wake_at_ns_ == 0) {
    wake_delay_ns_ = kWakeFirstNs;
  } else if (now < wake_at_ns_) {
    return;
  } else {
    tx_->wake();
    tx_->push(counters_);
    wake_delay_ns_ = std::min(2 * wake_delay_ns_, kWakeMostNs);
  }
  wake_at_ns_ = now + wake_delay_ns_;
}

uint32_t IwarpConnection::poll(std::span<Completion> out) {
  if (state_ == ConnectionState::kConnecting) drive_setup();
  uint32_t count = 0;
  if (report_established_ && count < out.size()) {
    report_established_ = false;
    out[count] = Completion{};
    out[count++].kind = CompletionKind::kEstablished;
  }
  if (state_ == ConnectionState::kEstablished) {
    count += tx_->completions(out.subspan(count));
    if (count < out.size()) count += rx_->run(out.subspan(count), counters_);
    if (rx_->failed()) {
      stream_failed();
    } else {
      tx_->push(counters_);
      wake_peer();
      // What the peer said last may still wait to be read: its reason goes before the socket's.
      if (tx_->broken() == EACCES) {
        rx_->fail_stream(term::kReadStag, "an RDMA Read of memory that is no longer offered");
        stream_failed();
      } else if (tx_->broken() != 0 && !rx_->more()) {
        fail_with(tx_->broken(), "the connection is lost");
      }
    }
  }
  if (tx_ && count < out.size()) count += tx_->completions(out.subspan(count));
  if (!unbound_.empty()) count += report_unbound(out.subspan(count));
  if (report_disconnected_ && count < out.size() && !tx_->has_completions()) {
    report_disconnected_ = false;
    out[count] = Completion{};
    out[count++].kind = CompletionKind::kDisconnected;
  }
  return count;
}

uint32_t IwarpConnection::report_unbound(std::span<Completion> out) {
  uint32_t count = 0;
  while (count < out.size() && can_report_unbound()) {
    out[count] = Completion{};
    out[count].kind = CompletionKind::kUnbound;
    out[count++].context = unbound_.front().context;
    unbound_.erase(unbound_.begin());
  }
  return count;
}

bool IwarpConnection::prepare_wait(pollfd& wait) {
  wait = {socket_.get(), POLLIN, 0};
  if (report_established_ || report_disconnected_) return false;
  switch (state_) {
    case ConnectionState::kConnecting:
      wait.events = phase_ == Phase::kTcp ? POLLOUT : POLLIN;
      return true;
    case ConnectionState::kEstablished:
      if (rx_->more() || tx_->has_completions() || tx_->broken() != 0) return false;
      if (tx_->blocked()) wait.events = POLLIN | POLLOUT;
      return !can_report_unbound();
    case ConnectionState::kIdle:
    case ConnectionState::kRequested:
    case ConnectionState::kFailed:
      break;
  }
  wait = {-1, 0, 0};
  return true;
}

// Unlike prepare_wait() with Sends done that nobody has polled for: what waits for a message can
// wait for them too.
bool IwarpConnection::sleep_receiving(uint64_t now, uint64_t until_ns) {
  if (!may_sleep_ || state_ != ConnectionState::kEstablished || report_established_ ||
      rx_->more() || tx_->broken() != 0 || tx_->blocked() || !unbound_.empty() ||
      !may_sleep_receiving(now, std::min(until_ns, next_timer_ns())))
    return false;
  rx_->sleep(counters_);
  return true;
}

uint64_t IwarpConnection::next_timer_ns() const {
  if (state_ == ConnectionState::kConnecting) return deadline_ns_;
  if (state_ != ConnectionState::kEstablished || !client_ || rx_->heard()) return UINT64_MAX;
  if (wake_at_ns_ != 0) return wake_at_ns_;
  return tx_->sent_anything() ? 0 : UINT64_MAX;
}

Result<RemoteMemory> IwarpConnection::bind_key(RegionId region, ConstBytes memory, Access access) {
  if (state_ != ConnectionState::kEstablished) return fail(ENOTCONN, "not connected");
  const LocalSpan span{const_cast<std::byte*>(memory.data()), static_cast<uint32_t>(memory.size()),
                       region};
  if (memory.size() > kMessageMax || !keys_.holds(span, access)) {
    return fail(EINVAL, "a key for memory outside its region, or with more rights than that has");
  }
  const uint32_t stag = keys_.bound.insert({span.address, memory.size()}, access);
  if (stag == 0) return fail(ENOSPC, "all keys of the connection are bound");
  return RemoteMemory{stag, 0};
}

bool IwarpConnection::unbind_key(RemoteKey key, uint64_t context) {
  if (!keys_.bound.erase(key) || !tx_->answering_from(key)) return true;
  // Bytes that the peer asked for are in a batch that the socket has not taken yet.
  unbound_.push_back({context, tx_->built_position()});
  return false;
}

void IwarpConnection::close() {
  socket_.reset();
  keys_.bound.erase_all();
  unbound_.clear();
  state_ = ConnectionState::kIdle;
  phase_ = Phase::kNone;
  report_established_ = report_disconnected_ = false;
  peer_private_bytes_ = 0;
  if (tx_) tx_->start(-1, segment_size(-1, 0), false, 0, 0, true);
}

std::vector<std::pair<std::string, std::string>> IwarpConnection::negotiated() const {
  return {{"mpa_revision", "2"},
          {"crc", crc_ ? "on" : "off"},
          {"ird", std::to_string(ird_)},
          {"ord", std::to_string(ord_)},
          {"segment_bytes", std::to_string(segment_)}};
}

}  // namespace nfsrdma::iwarp
