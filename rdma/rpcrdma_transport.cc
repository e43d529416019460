// SPDX-License-Identifier: GPL-2.0-or-later
// The calls: submission, timers, ends; the event loop's view of the transport.
#include "rpcrdma_transport.h"

#include <algorithm>
#include <cerrno>

#include "recovery.h"
#include "rpcrdma_limits.h"

namespace nfsrdma {

RpcRdmaTransport::RpcRdmaTransport(const TransportConfig& config, const RpcRdmaOptions& options,
                                   std::unique_ptr<Fabric> fabric)
    : config_(config),
      options_(options),
      calls_(config.slots, config.head_max, kHeadRoom),
      rdma_(config.slots),
      queue_(config.slots),
      credits_asked_(options.credits != 0 ? options.credits : std::min(config.slots, kCreditsMax)),
      fabric_(std::move(fabric)),
      scan_interval_ns_(timer_scan_interval_ns(config.timeo_ms)) {
  unsendable_.reserve(config.slots);
  posted_.reserve(config.slots);
  resend_.reserve(config.slots);
}

RpcRdmaTransport::~RpcRdmaTransport() {
  if (connection_) connection_->close();
}

Result<void> RpcRdmaTransport::add_memory(Bytes memory) {
  if (memory.empty()) return {};
  if (regions_.size() >= kRegionsMax)
    return fail(ENOSPC, "more than " + std::to_string(kRegionsMax) + " ranges of I/O memory");
  auto region = fabric_->register_memory(memory, Access::kRemoteRead | Access::kRemoteWrite);
  if (!region) return tl::unexpected(region.error());
  regions_.add(memory, *region);
  return {};
}

void RpcRdmaTransport::submit(uint32_t slot, const Call& call) {
  CallSlot& entry = calls_[slot];
  entry.call = call;
  entry.order = order_++;
  entry.queued_ns = 0;  // set by the first scan that meets it: no clock is read per call
  RdmaCall& rdma = rdma_[slot];
  rdma = RdmaCall();
  ++outstanding_;
  const ConstBytes bulk = call.bulk_in.empty() ? call.bulk_out : ConstBytes(call.bulk_in);
  if (!bulk.empty()) {
    rdma.bulk_region = regions_.find(bulk);
    if (rdma.bulk_region == kNoRegion) {
      entry.state = CallState::kAcquired;
      unsendable_.push_back(slot);
      return;
    }
  }
  entry.state = CallState::kQueued;
  queue_.push(slot);
}

uint32_t RpcRdmaTransport::progress() {
  ended_ = 0;
  end_unsendable();
  if (link_ != Link::kDown) receive();
  const uint64_t now = now_ns();
  if (link_ == Link::kDown && outstanding_ > 0 && now >= connect_at_ns_) try_connect(now);
  if (outstanding_ > 0 && now >= scan_at_ns_) run_timers(now);
  flush();
  return ended_;
}

bool RpcRdmaTransport::prepare_wait(pollfd& wait) {
  wait = {.fd = -1, .events = 0, .revents = 0};
  if (!unsendable_.empty()) return false;
  return link_ == Link::kDown || connection_->prepare_wait(wait);
}

bool RpcRdmaTransport::sleep_receiving(uint64_t now, uint64_t until_ns) {
  return link_ == Link::kUp && unsendable_.empty() &&
         connection_->sleep_receiving(now, std::min(until_ns, next_timer_ns()));
}

uint64_t RpcRdmaTransport::next_timer_ns() const {
  uint64_t next = link_ == Link::kDown ? kNever : connection_->next_timer_ns();
  if (outstanding_ == 0) return next;
  if (!unsendable_.empty()) return 0;
  next = std::min(next, scan_at_ns_);
  return link_ == Link::kDown ? std::min(next, connect_at_ns_) : next;
}

void RpcRdmaTransport::run_timers(uint64_t now) {
  scan_at_ns_ = now + scan_interval_ns_;
  const uint64_t timeo_ns = config_.timeo_ms * kNsPerMs;
  for (uint32_t slot = 0; slot < calls_.size(); ++slot) {
    CallSlot& entry = calls_[slot];
    if (entry.state != CallState::kSent && entry.state != CallState::kQueued) continue;
    if (rdma_[slot].replied) {
      if (now > rdma_[slot].received_ns && now - rdma_[slot].received_ns >= timeo_ns)
        lose_link({EIO, "the fabric did not complete a Send to " + server_.text() +
                            describe_wait(timeo_ns) + ", though its reply came"});
      continue;
    }
    const Overdue how = overdue(entry, config_, now, last_received_ns_);
    if (how == Overdue::kMajor)
      time_out(slot, now);
    else if (link_ == Link::kUp && how != Overdue::kNo)
      // On RDMA a call is sent again on another connection only.
      lose_link({ETIMEDOUT, "no reply from " + server_.text() + describe_wait(timeo_ns)});
  }
}

void RpcRdmaTransport::time_out(uint32_t slot, uint64_t now) {
  const Error error = major_timeout_error(server_.text(), calls_[slot], config_, now,
                                          link_ == Link::kUp ? nullptr : &last_error_.text);
  // Only the end of the connection takes the buffer of a sent call out of the server's reach.
  if (calls_[slot].state == CallState::kSent) lose_link(error);
  end_call(slot, error);
}

// The server can't reach the call's buffer: it was not sent on this connection, or that is closed.
void RpcRdmaTransport::end_call(uint32_t slot, const Error& error) {
  if (calls_[slot].state == CallState::kQueued) queue_.remove(slot);
  const uint32_t retransmissions = calls_[slot].retransmissions;
  calls_.release(slot);
  --outstanding_;
  ++ended_;
  Reply reply;
  reply.error = &error;
  reply.retransmissions = retransmissions;
  sink_->on_reply(slot, reply);
}

void RpcRdmaTransport::end_unsendable() {
  while (!unsendable_.empty()) {
    const uint32_t slot = unsendable_.back();
    unsendable_.pop_back();
    const Call& call = calls_[slot].call;
    const size_t bytes = call.bulk_in.empty() ? call.bulk_out.size() : call.bulk_in.size();
    end_call(slot, {EFAULT, "a buffer of " + std::to_string(bytes) +
                                " bytes lies in no memory that was registered for RDMA: memory "
                                "for I/O must be made known before the first call"});
  }
}

void RpcRdmaTransport::abandon(const Error& error) {
  if (outstanding_ == 0) return;
  lose_link(error);
  connect_failures_ = 0;
  // Not those that the sink submits from on_reply().
  std::vector<uint32_t> slots = resend_;
  slots.insert(slots.end(), unsendable_.begin(), unsendable_.end());
  unsendable_.clear();
  for (const uint32_t slot : slots) end_call(slot, error);
}

void RpcRdmaTransport::forget_reply_buffer(RdmaCall& rdma) {
  if (rdma.reply_buffer == kNone) return;
  reply_buffers_.push_back(rdma.reply_buffer);
  rdma.reply_buffer = kNone;
}

const TransportCounters& RpcRdmaTransport::counters() const {
  counters_.send_calls = connection_->counters().send_calls;
  counters_.recv_calls = connection_->counters().recv_calls;
  return counters_;
}

TransportInfo RpcRdmaTransport::info() const {
  TransportInfo info{.transport = "rdma",
                     .fabric = std::string(fabric_->name()),
                     .server = server_.text(),
                     .negotiated = {}};
  const auto add = [&info](std::string name, std::string value) {
    info.negotiated.emplace_back(std::move(name), std::move(value));
  };
  if (!fabric_->device().empty()) add("device", fabric_->device());
  add("inline_send", std::to_string(send_inline_));
  add("inline_receive", std::to_string(receive_inline_));
  add("credits_asked", std::to_string(credits_asked_));
  add("credits_granted", std::to_string(credits_granted_));
  add("credits", std::to_string(credits_));
  const bool asked = options_.key_per_call && fabric_->remote_invalidation();
  add("remote_invalidation", asked && peer_.remote_invalidation ? "on" : "off");
  add("keys", options_.key_per_call ? "per call: " + std::string(to_string(fabric_->key_per_call()))
                                    : std::string("long-lived"));
  for (const auto& [name, value] : connection_->negotiated()) add(name, value);
  return info;
}

}  // namespace nfsrdma
