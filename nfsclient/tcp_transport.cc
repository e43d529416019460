// SPDX-License-Identifier: GPL-2.0-or-later
// Life of the connection, and the timers of its calls.
#include "tcp_transport.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "recovery.h"
#include "socket_io.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kMarkerBytes = 4;
constexpr size_t kBufferMin = 256 * 1024;
constexpr uint32_t kSamePortTries = 5;

}  // namespace

Result<std::unique_ptr<TcpTransport>> TcpTransport::open(const TransportConfig& config) {
  if (config.slots == 0 || config.slots > kSlotsMax)
    return fail(EINVAL, "a connection has 1 to " + std::to_string(kSlotsMax) + " call slots");
  const uint64_t deadline = now_ns() + config.connect_timeout_ms * kNsPerMs;
  auto addresses = resolve(config.host, config.port);
  if (!addresses) return tl::unexpected(addresses.error());
  SocketAddress server;
  auto socket = connect_any(
      *addresses,
      {.local_address = config.local_address, .reserved = config.reserved_port, .port = 0},
      deadline, config.connect_timeout_ms, config.stop, &server);
  if (!socket) return tl::unexpected(socket.error());
  return std::unique_ptr<TcpTransport>(new TcpTransport(config, std::move(*socket), server));
}

TcpTransport::TcpTransport(const TransportConfig& config, Socket socket,
                           const SocketAddress& server)
    : config_(config),
      server_(server),
      socket_(std::move(socket)),
      calls_(config.slots, config.head_max, kMarkerBytes),
      queue_(config.slots),
      buffer_size_(std::max<size_t>(kBufferMin, size_t{config.reply_head_max} + kBufferMin / 2)),
      record_max_(size_t{config.reply_head_max} + config.bulk_max + kXdrUnit),
      scan_interval_ns_(timer_scan_interval_ns(config.timeo_ms)) {
  resend_.reserve(config.slots);
  // Not value-initialised: pages that a job never needs are never touched.
  buffer_.reset(new std::byte[buffer_size_]);
  saved_head_.reset(new std::byte[config.reply_head_max]);
  assembly_.reset(new std::byte[record_max_]);
  local_port_ = local_port(socket_);
  may_sleep_ = let_receive_sleep(socket_.fd());
  counters_.connects = 1;
  last_received_ns_ = now_ns();
}

TcpTransport::~TcpTransport() {
  // A port below 1024 in TIME_WAIT is missing to the next job: there are only 512. Every call has
  // ended, so a reset costs nothing.
  if (local_port_ < IPPORT_RESERVED && outstanding_ == 0) socket_.abort();
}

void TcpTransport::submit(uint32_t slot, const Call& call) {
  CallSlot& entry = calls_[slot];
  entry.call = call;
  entry.state = CallState::kQueued;
  entry.order = order_++;
  entry.queued_ns = 0;  // set by the first scan that meets it: no clock is read per call
  store_be32(calls_.head(slot) - kMarkerBytes, 0x8000'0000u | record_length(slot));
  queue_.push(slot);
  ++outstanding_;
}

uint32_t TcpTransport::progress() {
  ended_ = 0;
  const uint64_t now = now_ns();
  if (link_ == Link::kUp) receive();
  if (link_ == Link::kConnecting) {
    pollfd ready{.fd = socket_.fd(), .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, 0) == 1) {
      const int outcome = connect_outcome(socket_);
      if (outcome == 0)
        link_up();
      else
        lose_link("cannot connect to " + server_.text() + ": " + std::strerror(outcome));
    } else if (now >= connect_at_ns_) {
      lose_link("no answer from " + server_.text() + " to a TCP connect within " +
                std::to_string(config_.connect_timeout_ms / 1000) + " s");
    }
  }
  if (link_ == Link::kDown && outstanding_ > 0 && now >= connect_at_ns_) try_connect(now);
  // By a clock read after all that was sent, received and connected above.
  if (outstanding_ > 0 && now >= scan_at_ns_) run_timers(now_ns());
  send_blocked_ = false;
  flush();
  return ended_;
}

bool TcpTransport::prepare_wait(pollfd& wait) {
  wait.revents = 0;
  wait.fd = link_ == Link::kDown ? -1 : socket_.fd();
  wait.events = POLLIN;
  if (link_ == Link::kConnecting)
    wait.events = POLLOUT;
  else if (!queue_.empty())
    wait.events = POLLIN | POLLOUT;
  return true;
}

uint64_t TcpTransport::next_timer_ns() const {
  if (outstanding_ == 0) return kNever;
  return link_ == Link::kUp ? scan_at_ns_ : std::min(scan_at_ns_, connect_at_ns_);
}

// Everything that was on the wire goes back into the queue in the order of submission, to be
// sent whole, with the same xids, on the next connection.
void TcpTransport::lose_link(const std::string& why) {
  last_error_ = why;
  // A server's reply cache knows a call that is sent again by the port it comes from.
  if (link_ == Link::kUp)
    held_port_ = hold_port(server_.family(), config_.local_address, local_port_);
  socket_.abort();
  link_ = Link::kDown;
  begin_ = end_ = 0;
  receive_ = {};
  received_ = false;
  front_sent_ = 0;
  send_blocked_ = false;

  requeue_all(calls_, queue_, resend_);
  on_wire_ = 0;

  const uint64_t now = now_ns();
  connect_at_ns_ = now + reconnect_backoff_ns(connect_failures_, now);
  ++connect_failures_;
}

void TcpTransport::try_connect(uint64_t now) {
  if (port_refusals_ > kSamePortTries) {  // it is taken: better any than none
    local_port_ = 0;
    held_port_.close();
  }
  auto socket = start_connect(server_, {.local_address = config_.local_address,
                                        .reserved = config_.reserved_port,
                                        .port = local_port_});
  if (!socket) {
    const int code = socket.error().code;
    port_refusals_ = code == EADDRINUSE || code == EADDRNOTAVAIL ? port_refusals_ + 1 : 0;
    lose_link(socket.error().text);
    return;
  }
  socket_ = std::move(*socket);
  link_ = Link::kConnecting;
  connect_at_ns_ = now + config_.connect_timeout_ms * kNsPerMs;
}

void TcpTransport::link_up() {
  link_ = Link::kUp;
  ++counters_.reconnects;
  port_refusals_ = 0;
  local_port_ = local_port(socket_);
  held_port_.close();
  may_sleep_ = let_receive_sleep(socket_.fd());
  last_received_ns_ = now_ns();
}

void TcpTransport::run_timers(uint64_t now) {
  scan_at_ns_ = now + scan_interval_ns_;
  for (uint32_t slot = 0; slot < calls_.size(); ++slot) {
    CallSlot& entry = calls_[slot];
    if (entry.state != CallState::kSent && entry.state != CallState::kQueued) continue;
    const Overdue how = overdue(entry, config_, now, last_received_ns_);
    if (how == Overdue::kMajor) {
      time_out(slot, now);
    } else if (link_ != Link::kUp || how == Overdue::kNo) {
      continue;
    } else if (how == Overdue::kStuck || last_received_ns_ < entry.wait_start_ns) {
      lose_link("no reply from " + server_.text() + describe_wait(config_.timeo_ms * kNsPerMs));
    } else {
      // Others are answered: this call or its reply was dropped by the server.
      entry.state = CallState::kQueued;
      entry.wait_start_ns = now;
      ++entry.retransmissions;
      --on_wire_;
      queue_.push(slot);
    }
  }
}

void TcpTransport::time_out(uint32_t slot, uint64_t now) {
  const Error error = major_timeout_error(server_.text(), calls_[slot], config_, now,
                                          link_ == Link::kUp ? nullptr : &last_error_);
  end_call(slot, error);
}

void TcpTransport::end_call(uint32_t slot, const Error& error) {
  if (receive_.mode == Receiving::kBulk && receive_.slot == slot) {
    receive_.mode = Receiving::kSkip;
    receive_.left = receive_.bulk_length - receive_.bulk_done + receive_.skip_after;
    receive_.slot = kNoSlot;
  }
  Reply reply;
  reply.error = &error;
  reply.retransmissions = calls_[slot].retransmissions;
  finish(slot);
  sink_->on_reply(slot, reply);
}

// Takes an ended call off the wire or out of the queue, and frees its slot.
void TcpTransport::finish(uint32_t slot) {
  bool half_sent = false;
  if (calls_[slot].state == CallState::kSent) {
    --on_wire_;
  } else {
    half_sent = front_sent_ > 0 && queue_.at(0) == slot;
    queue_.remove(slot);
  }
  calls_.release(slot);
  --outstanding_;
  ++ended_;
  // The stream stands within its record, whose rest nobody will send.
  if (half_sent) lose_link("a call to " + server_.text() + " ended while it was half sent");
}

void TcpTransport::abandon(const Error& error) {
  if (outstanding_ == 0) return;
  lose_link(error.text);
  connect_failures_ = 0;
  // Not those that the sink submits from on_reply().
  const std::vector<uint32_t> slots = resend_;
  for (const uint32_t slot : slots) end_call(slot, error);
}

TransportInfo TcpTransport::info() const {
  return {.transport = "tcp",
          .fabric = "",
          .server = server_.text(),
          .negotiated = {{"local_port", std::to_string(local_port_)}}};
}

}  // namespace nfsrdma
