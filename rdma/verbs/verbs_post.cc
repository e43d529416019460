// SPDX-License-Identifier: GPL-2.0-or-later
// Posting: work requests are gathered and handed to the device by one doorbell. Signalled are those
// whose completion somebody waits for, and every so many, so that the queue never fills with quiet
// ones. No allocation, no lock of ours.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs_connection.h"

namespace nfsrdma::verbs {

bool VerbsConnection::post_receive(uint32_t buffer) {
  if (state_ != ConnectionState::kEstablished || buffer >= config_.receive_count ||
      receives_pending_ + receives_posted_ >= config_.receive_count)
    return false;
  queue_receive(buffer);
  return true;
}

void VerbsConnection::queue_receive(uint32_t buffer) {
  ibv_sge& span = receive_spans_[receives_pending_];
  ibv_recv_wr& wr = receive_requests_[receives_pending_++];
  const std::byte* at = config_.receive_memory.data() + size_t{buffer} * config_.receive_size;
  span = {reinterpret_cast<uint64_t>(at), config_.receive_size, receive_lkey_};
  wr = {};
  wr.wr_id = kReceiveBit | buffer;
  wr.sg_list = &span;
  wr.num_sge = 1;
}

bool VerbsConnection::push_receives() {
  if (receives_pending_ == 0) return true;
  for (uint32_t i = 0; i + 1 < receives_pending_; ++i)
    receive_requests_[i].next = &receive_requests_[i + 1];
  receive_requests_[receives_pending_ - 1].next = nullptr;
  ibv_recv_wr* bad = nullptr;
  const int code = ibv_post_recv(qp_, receive_requests_.data(), &bad);
  if (code != 0) {
    fail_with({code, std::string("the RDMA device took no receive buffers: ") + strerror(code)});
    return false;
  }
  receives_posted_ += receives_pending_;
  receives_pending_ = 0;
  return true;
}

// A request at the end of the batch, without effect until commit_request(). Null: no room.
ibv_send_wr* VerbsConnection::next_request(ibv_wr_opcode opcode, bool quiet) {
  if (state_ != ConnectionState::kEstablished || posted_.full()) return nullptr;
  if (pending_ == kBatchMax) {
    ring();
    if (state_ != ConnectionState::kEstablished) return nullptr;
  }
  ibv_send_wr& wr = requests_[pending_];
  wr = {};
  wr.wr_id = posted_.next();
  wr.sg_list = &spans_[size_t{pending_} * kGatherMax];
  wr.opcode = opcode;
  const bool due = unsignalled_ + 1 >= std::max(queue_size_ / 4, 1u);
  if (!quiet || due) wr.send_flags = IBV_SEND_SIGNALED;
  return &wr;
}

void VerbsConnection::commit_request(ibv_send_wr& wr, const Request& request) {
  unsignalled_ = (wr.send_flags & IBV_SEND_SIGNALED) != 0 ? 0 : unsignalled_ + 1;
  posted_.push(request);
  ++pending_;
}

// Small messages are copied when posted: their memory is the caller's again at once.
bool VerbsConnection::fill_gather(ibv_send_wr& wr, std::span<const LocalSpan> gather, bool copy) {
  if (gather.size() > limits_.gather_max) return false;
  uint64_t bytes = 0;
  for (const LocalSpan& span : gather) bytes += span.length;
  if (bytes > limits_.message_max) return false;
  if (copy && bytes <= limits_.inline_max) {
    std::byte* to = inline_copies_.data() + size_t{pending_} * limits_.inline_max;
    wr.sg_list[0] = {reinterpret_cast<uint64_t>(to), static_cast<uint32_t>(bytes), 0};
    for (const LocalSpan& span : gather) {
      if (span.length != 0) std::memcpy(to, span.address, span.length);
      to += span.length;
    }
    wr.num_sge = bytes != 0 ? 1 : 0;
    wr.send_flags |= IBV_SEND_INLINE;
    return true;
  }
  for (const LocalSpan& span : gather) {
    if (span.length == 0) continue;
    const ibv_mr* mr = fabric_->holding(span.region, span.address, span.length, Access::kNone);
    if (mr == nullptr) return false;
    wr.sg_list[wr.num_sge++] = {reinterpret_cast<uint64_t>(span.address), span.length, mr->lkey};
  }
  return true;
}

bool VerbsConnection::post_send(uint64_t context, std::span<const LocalSpan> gather, uint32_t flags,
                                RemoteKey key) {
  if (posted_.sends() >= config_.send_depth) return false;
  const bool quiet = (flags & kQuiet) != 0;
  // A device that can't invalidate sends without it: the peer then does so itself.
  const bool invalidate =
      (flags & kInvalidate) != 0 && fabric_ != nullptr && fabric_->limits().send_invalidate;
  ibv_send_wr* wr = next_request(invalidate ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND, quiet);
  if (wr == nullptr || !fill_gather(*wr, gather, true)) return false;
  if (invalidate) wr->invalidate_rkey = key;
  if ((flags & kSolicited) != 0) wr->send_flags |= IBV_SEND_SOLICITED;
  commit_request(*wr, {.context = context, .kind = RequestKind::kSend, .quiet = quiet});
  return true;
}

bool VerbsConnection::post_write(uint64_t context, std::span<const LocalSpan> gather,
                                 RemoteMemory sink, uint32_t flags) {
  if (posted_.sends() >= config_.send_depth) return false;
  const bool quiet = (flags & kQuiet) != 0;
  ibv_send_wr* wr = next_request(IBV_WR_RDMA_WRITE, quiet);
  if (wr == nullptr || !fill_gather(*wr, gather, false)) return false;
  wr->wr.rdma.remote_addr = sink.address;
  wr->wr.rdma.rkey = sink.key;
  commit_request(*wr, {.context = context, .kind = RequestKind::kWrite, .quiet = quiet});
  return true;
}

bool VerbsConnection::post_read(uint64_t context, LocalSpan sink, RemoteMemory source) {
  if (posted_.reads() >= config_.read_depth || limits_.ord == 0) return false;
  ibv_send_wr* wr = next_request(IBV_WR_RDMA_READ, false);
  if (wr == nullptr || sink.length > limits_.message_max) return false;
  const ibv_mr* mr = fabric_->holding(sink.region, sink.address, sink.length, Access::kLocalWrite);
  if (mr == nullptr) return false;
  wr->sg_list[0] = {reinterpret_cast<uint64_t>(sink.address), sink.length, mr->lkey};
  wr->num_sge = 1;
  wr->wr.rdma.remote_addr = source.address;
  wr->wr.rdma.rkey = source.key;
  commit_request(*wr, {.context = context, .kind = RequestKind::kRead});
  return true;
}

Result<RemoteMemory> VerbsConnection::bind_key(RegionId region, ConstBytes memory, Access access) {
  if (state_ != ConnectionState::kEstablished) return fail(ENOTCONN, "not connected");
  ibv_mr* mr = fabric_->holding(region, memory.data(), memory.size(), access);
  if (mr == nullptr || memory.empty())
    return fail(EINVAL, "a key for memory outside its region, or with more rights than that has");
  const auto address = reinterpret_cast<uint64_t>(memory.data());
  if (!fabric_->limits().windows) {
    if (registrations_.full()) return fail(ENOSPC, "all keys of the connection are bound");
    auto made = fabric_->register_for_call(memory, access);
    if (!made) return tl::unexpected(made.error());
    registrations_.add(*made);
    return RemoteMemory{(*made)->rkey, address};
  }
  const uint32_t slot = windows_.take();
  if (slot == kNoKeySlot) return fail(ENOSPC, "all keys of the connection are bound");
  ibv_send_wr* wr = next_request(IBV_WR_BIND_MW, true);
  if (wr == nullptr) {
    windows_.give_back(slot);
    return fail(ENOBUFS, "the send queue is full");
  }
  ibv_mw* window = windows_.window(slot);
  wr->bind_mw.mw = window;
  wr->bind_mw.rkey = windows_.next_key(slot);
  wr->bind_mw.bind_info.mr = mr;
  wr->bind_mw.bind_info.addr = address;
  wr->bind_mw.bind_info.length = memory.size();
  wr->bind_mw.bind_info.mw_access_flags =
      (has(access, Access::kRemoteRead) ? unsigned{IBV_ACCESS_REMOTE_READ} : 0u) |
      (has(access, Access::kRemoteWrite) ? unsigned{IBV_ACCESS_REMOTE_WRITE} : 0u);
  ++binds_pending_;
  commit_request(*wr, {.key_slot = slot, .kind = RequestKind::kBind, .quiet = true});
  return RemoteMemory{wr->bind_mw.rkey, address};
}

bool VerbsConnection::unbind_key(RemoteKey key, uint64_t context) {
  if (fabric_ == nullptr) return true;
  if (!fabric_->limits().windows) {
    registrations_.remove(key);
    return true;
  }
  const uint32_t slot = windows_.find(key);
  if (slot == kNoKeySlot) return true;
  ibv_send_wr* wr = next_request(IBV_WR_LOCAL_INV, false);
  if (wr == nullptr) return false;  // the connection has failed: close() ends the key
  wr->invalidate_rkey = key;
  commit_request(*wr, {.context = context, .key_slot = slot, .kind = RequestKind::kInvalidate});
  return false;
}

// Receives first, so that what a Send asks for finds one.
void VerbsConnection::ring() {
  if (state_ != ConnectionState::kEstablished) return;
  if (push_receives()) push_sends();
}

bool VerbsConnection::push_sends() {
  if (pending_ == 0) return true;
  for (uint32_t i = 0; i + 1 < pending_; ++i) requests_[i].next = &requests_[i + 1];
  requests_[pending_ - 1].next = nullptr;
  const uint64_t first = posted_.next() - pending_;
  pending_ = 0;
  sent_ = true;
  ++counters_.send_calls;
  ibv_send_wr* bad = nullptr;
  const int code = ibv_post_send(qp_, requests_.data(), &bad);
  for (uint64_t i = first; binds_pending_ > 0 && i < posted_.next(); ++i) {
    const Request& posted = posted_[i];
    if (posted.kind != RequestKind::kBind) continue;
    windows_.posted(posted.key_slot);
    --binds_pending_;
  }
  if (code == 0) return true;
  // A connection that has just ended refuses too: the connection manager knows why.
  look_at_events();
  fail_with({code, std::string("the RDMA device took no requests: ") + strerror(code)});
  return false;
}

void VerbsConnection::send_wake() {
  ibv_send_wr* wr = next_request(IBV_WR_RDMA_WRITE, true);
  if (wr == nullptr) return;
  commit_request(*wr, {.kind = RequestKind::kWake, .quiet = true});
  push_sends();
}

}  // namespace nfsrdma::verbs
