// SPDX-License-Identifier: GPL-2.0-or-later
// Life of the connection: set-up, what is agreed there, loss, recovery by reconnect only.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "recovery.h"
#include "rpcrdma_limits.h"
#include "rpcrdma_transport.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kSetupMs = 2'000;
// A lease outlives its set-up by what tear-down and a busy event loop may take.
constexpr uint64_t kLeaseNs = (kSetupMs + 500) * kNsPerMs;
constexpr uint64_t kGateWaitNs = 2 * kNsPerMs;
constexpr uint32_t kReplyBuffers = 4;
constexpr size_t kPage = 4096;

// Set-ups beyond a listener's backlog are dropped without a word, or reset: those are tried again
// while there is time. Anything else is the server's answer.
bool worth_another_try(int code) {
  return code == ETIMEDOUT || code == ECONNRESET || code == EPIPE || code == ECONNABORTED;
}

size_t whole_pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

void RpcRdmaTransport::PageDelete::operator()(std::byte* memory) const {
  operator delete[](memory, std::align_val_t{kPage});
}

RpcRdmaTransport::Pages RpcRdmaTransport::make_pages(size_t bytes) {
  return Pages(
      static_cast<std::byte*>(operator new[](whole_pages(bytes), std::align_val_t{kPage})));
}

Result<std::unique_ptr<RpcRdmaTransport>> RpcRdmaTransport::open(const TransportConfig& config,
                                                                 const RpcRdmaOptions& options,
                                                                 std::unique_ptr<Fabric> fabric) {
  if (config.slots == 0 || config.slots > kSlotsMax)
    return fail(EINVAL, "a connection has 1 to " + std::to_string(kSlotsMax) + " call slots");
  if (options.inline_size < kInlineSizeMin || options.inline_size > kOfferedInlineMax)
    return fail(EINVAL, "inline_size is " + std::to_string(kInlineSizeMin) + " to " +
                            std::to_string(kOfferedInlineMax) + " bytes, not " +
                            std::to_string(options.inline_size));
  if (options.credits > kCreditsMax)
    return fail(EINVAL, "credits are 0 to " + std::to_string(kCreditsMax) + ", not " +
                            std::to_string(options.credits));
  const uint64_t deadline = now_ns() + config.connect_timeout_ms * kNsPerMs;
  auto addresses = resolve(config.host, config.port);
  if (!addresses) return tl::unexpected(addresses.error());
  std::unique_ptr<RpcRdmaTransport> transport(
      new RpcRdmaTransport(config, options, std::move(fabric)));
  auto prepared = transport->prepare();
  if (!prepared) return tl::unexpected(prepared.error());
  Error error{EADDRNOTAVAIL, "no address of " + config.host};
  for (const SocketAddress& address : *addresses) {
    transport->server_ = address;
    auto up = transport->open_link(deadline);
    if (up) return transport;
    error = up.error();
  }
  return tl::unexpected(error);
}

// Memory of the transport's own, registered; and the connection object, for all its lives.
Result<void> RpcRdmaTransport::prepare() {
  if (!config_.local_address.empty()) {
    auto local = resolve(config_.local_address, 0);
    if (!local) return tl::unexpected(local.error());
    local_ = local->front();
  }
  auto heads = fabric_->register_memory(calls_.heads(), Access::kRemoteRead);
  if (!heads) return tl::unexpected(heads.error());
  heads_region_ = *heads;

  const uint32_t receives = credits_asked_ + kSpareReceives;
  const size_t receive_bytes = size_t{receives} * options_.inline_size;
  receive_memory_ = make_pages(receive_bytes);
  const Bytes receive_range(receive_memory_.get(), receive_bytes);
  auto receive = fabric_->register_memory(receive_range, Access::kLocalWrite);
  if (!receive) return tl::unexpected(receive.error());

  const uint32_t reply_buffers = std::min(config_.slots, kReplyBuffers);
  reply_stride_ = whole_pages(config_.reply_head_max);
  reply_memory_ = make_pages(reply_stride_ * reply_buffers);
  auto replies = fabric_->register_memory({reply_memory_.get(), reply_stride_ * reply_buffers},
                                          Access::kRemoteWrite);
  if (!replies) return tl::unexpected(replies.error());
  reply_region_ = *replies;
  for (uint32_t i = reply_buffers; i-- > 0;) reply_buffers_.push_back(i);

  ConnectionConfig connection;
  connection.send_depth = 2 * credits_asked_ + 2 * kSignalEvery;
  connection.key_count = options_.key_per_call ? kKeysPerCall * (credits_asked_ + 1) : 0;
  connection.receive_memory = receive_range;
  connection.receive_region = *receive;
  connection.receive_count = receives;
  connection.receive_size = options_.inline_size;
  connection.ird = kResponderResources;
  auto made = fabric_->make_connection(connection);
  if (!made) return tl::unexpected(made.error());
  connection_ = std::move(*made);
  return {};
}

// The first connection, waited for.
Result<void> RpcRdmaTransport::open_link(uint64_t deadline) {
  lease_name_ = server_.text();
  connect_failures_ = 0;
  connect_at_ns_ = 0;
  last_error_ = Error{ETIMEDOUT, "no set-up could begin: others were under way all the time"};
  for (;;) {
    const uint64_t now = now_ns();
    if (link_ == Link::kUp) return {};
    if (stopped(config_.stop)) {
      last_error_ = stopped_error("connecting to " + server_.text());
      break;
    }
    if (now >= deadline) break;
    if (link_ == Link::kDown && now >= connect_at_ns_) try_connect(now);
    if (link_ == Link::kConnecting) receive();
    if (link_ == Link::kUp) return {};
    if (link_ == Link::kDown && connect_failures_ > 0 && !worth_another_try(last_error_.code))
      return tl::unexpected(last_error_);
    pollfd wait{.fd = -1, .events = 0, .revents = 0};
    if (!prepare_wait(wait)) continue;
    uint64_t until = std::min(deadline, now + 100 * kNsPerMs);
    until = std::min(until, link_ == Link::kDown ? connect_at_ns_ : connection_->next_timer_ns());
    const uint64_t left = until > now ? until - now : 0;
    poll(&wait, 1, static_cast<int>((left + kNsPerMs - 1) / kNsPerMs));
  }
  const Error last = last_error_;
  connection_->close();
  lease_.give_back();
  link_ = Link::kDown;
  return fail(last.code, last.text + "; gave up after " +
                             std::to_string(config_.connect_timeout_ms / 1000) + " s");
}

void RpcRdmaTransport::try_connect(uint64_t now) {
  lease_ = try_setup(lease_name_, now, kLeaseNs);
  if (!lease_.held()) {
    connect_at_ns_ = now + kGateWaitNs + now % kGateWaitNs;
    return;
  }
  CmPrivateData ours;
  ours.remote_invalidation = options_.key_per_call && fabric_->remote_invalidation();
  ours.send_size = ours.receive_size = options_.inline_size;
  const auto private_data = encode_cm_private_data(ours);
  ConnectRequest request;
  request.peer = server_.storage;
  if (local_.length != 0) request.local = local_.storage;
  request.peer_name = config_.host;
  request.private_data = private_data;
  request.timeout_ms = kSetupMs;
  link_ = Link::kConnecting;
  auto started = connection_->start_connect(request);
  if (!started) lose_link(started.error());
}

void RpcRdmaTransport::link_up() {
  lease_.give_back();
  link_ = Link::kUp;
  ++(counters_.connects == 0 ? counters_.connects : counters_.reconnects);
  peer_ = decode_cm_private_data(connection_->peer_private_data());
  // RFC 8797 section 4: each direction carries the smaller of what one side sends and the other
  // receives.
  send_inline_ = std::min(options_.inline_size, peer_.receive_size);
  receive_inline_ = std::min(options_.inline_size, peer_.send_size);
  credits_ = 1;  // RFC 8166 section 3.3.3: until the first reply grants more
  sends_unsignalled_ = 0;
  last_received_ns_ = now_ns();
}

// The connection is closed and drained first: from then on the server can't touch our memory.
// Everything that was on the wire goes back into the queue in the order of submission, to be sent
// whole, with the same xids, on the next connection. Calls whose reply had come end with it.
void RpcRdmaTransport::lose_link(Error why) {
  last_error_ = std::move(why);
  connection_->close();
  lease_.give_back();
  link_ = Link::kDown;
  ++link_epoch_;
  ring_needed_ = false;
  const uint64_t now = now_ns();
  connect_at_ns_ = now + reconnect_backoff_ns(connect_failures_, now);
  ++connect_failures_;

  std::vector<uint32_t> replied;
  for (uint32_t slot = 0; slot < calls_.size(); ++slot) {
    CallSlot& entry = calls_[slot];
    if (entry.state != CallState::kSent && entry.state != CallState::kQueued) continue;
    RdmaCall& rdma = rdma_[slot];
    rdma.key_count = rdma.keys_dying = 0;
    if (rdma.replied) {
      replied.push_back(slot);
      entry.state = CallState::kAcquired;  // not for the queue
    } else {
      forget_reply_buffer(rdma);
    }
  }
  requeue_all(calls_, queue_, resend_);
  in_flight_ = static_cast<uint32_t>(replied.size());
  for (const uint32_t slot : replied) finish(slot);
}

}  // namespace nfsrdma
