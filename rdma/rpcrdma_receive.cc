// SPDX-License-Identifier: GPL-2.0-or-later
// Receiving: completions, replies and what they say of their chunks, keys, the end of a call.
//
// The peer is believed in nothing: a message that can't be understood ends the connection, and
// what a reply says of lengths is held against what the call offered.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rpcrdma_limits.h"
#include "rpcrdma_transport.h"

namespace nfsrdma {
namespace {

constexpr int kRoundsMax = 16;

}  // namespace

void RpcRdmaTransport::receive() {
  for (int round = 0; round < kRoundsMax; ++round) {
    const uint64_t epoch = link_epoch_;
    const uint32_t count = connection_->poll(completions_);
    for (uint32_t i = 0; i < count; ++i) {
      take_completion(completions_[i]);
      // What was polled of a connection that is closed by now says nothing any more.
      if (link_epoch_ != epoch) return;
    }
    if (count < completions_.size()) return;
  }
}

void RpcRdmaTransport::take_completion(const Completion& completion) {
  switch (completion.kind) {
    case CompletionKind::kEstablished:
      link_up();
      return;
    case CompletionKind::kReceive:
      take_message(completion);
      return;
    case CompletionKind::kSendDone:
      if (completion.context >= calls_.size()) return;  // one that the fabric had copied
      rdma_[completion.context].send_done = true;
      finish_if_done(static_cast<uint32_t>(completion.context));
      return;
    case CompletionKind::kUnbound:
      if (completion.context >= calls_.size()) return;
      --rdma_[completion.context].keys_dying;
      finish_if_done(static_cast<uint32_t>(completion.context));
      return;
    case CompletionKind::kDisconnected:
      lose_link(connection_->error());
      return;
    case CompletionKind::kWriteDone:
    case CompletionKind::kReadDone:
      return;  // a client posts neither
  }
}

void RpcRdmaTransport::take_message(const Completion& completion) {
  last_received_ns_ = now_ns();
  const ConstBytes message(receive_memory_.get() + size_t{completion.buffer} * options_.inline_size,
                           completion.bytes);
  RdmaHeader header;
  const HeaderFault fault = decode_rdma_header(message, header);
  uint32_t slot = fault == HeaderFault::kShort ? kNoSlot : calls_.find(header.xid);
  // A call that waits to be sent again has offered nothing on this connection.
  if (slot != kNoSlot && (calls_[slot].state != CallState::kSent || rdma_[slot].replied))
    slot = kNoSlot;
  if (completion.invalidated && !take_invalidation(slot, completion.key)) {
    broken(slot, "invalidated a key that its call had not offered");
    return;
  }
  if (fault != HeaderFault::kNone) {
    broken(slot, std::string("sent ") + to_string(fault));
    return;
  }
  if (slot == kNoSlot) {
    ++counters_.bad_replies;
    connection_->post_receive(completion.buffer);
    return;
  }
  rdma_[slot].receive_buffer = completion.buffer;
  if (const char* what = take_reply(slot, header)) {
    broken(slot, what);
    return;
  }
  RdmaCall& rdma = rdma_[slot];
  rdma.replied = true;
  rdma.received_ns = last_received_ns_;
  connect_failures_ = 0;
  // RFC 8166 section 3.3.3: a grant of 0 is void; more than was posted can't be used.
  credits_granted_ = header.credits;
  credits_ = std::clamp(header.credits, 1u, credits_asked_);
  retire_keys(slot);
  finish_if_done(slot);
}

// Send with Invalidate: the key is one of the call that is answered, or the peer is wrong.
bool RpcRdmaTransport::take_invalidation(uint32_t slot, RemoteKey key) {
  if (slot == kNoSlot) return false;
  RdmaCall& rdma = rdma_[slot];
  for (uint32_t i = 0; i < rdma.key_count; ++i) {
    if (rdma.keys[i] != key) continue;
    rdma.keys[i] = rdma.keys[--rdma.key_count];
    return true;
  }
  return false;
}

// Null, or what the server did wrong.
const char* RpcRdmaTransport::take_reply(uint32_t slot, const RdmaHeader& header) {
  RdmaCall& rdma = rdma_[slot];
  if (header.proc == RdmaProc::kError) {
    rdma.verdict = header.errcode == RdmaErrcode::kVers ? Verdict::kErrVers : Verdict::kErrChunk;
    rdma.detail_a = header.version_low;
    rdma.detail_b = header.version_high;
    return nullptr;
  }
  if (header.proc != RdmaProc::kMsg && header.proc != RdmaProc::kNomsg)
    return "answered with a procedure that is no reply (RDMA_MSGP or RDMA_DONE)";
  uint32_t placed = 0;
  ConstBytes rpc;
  if (const char* what = take_lists(rdma, header, &placed, &rpc)) return what;
  if (rpc.size() < kXdrUnit || load_be32(rpc.data()) != header.xid)
    return "sent a reply whose RPC xid is not that of its transport header";
  take_bulk(slot, rpc, placed);
  return nullptr;
}

// The lists that come back have the shape of those that were offered, and say how much was used of
// each segment. `placed`: bytes in the Write chunk; `rpc`: the reply, wherever it lies.
const char* RpcRdmaTransport::take_lists(RdmaCall& rdma, const RdmaHeader& header, uint32_t* placed,
                                         ConstBytes* rpc) {
  if (header.reads.size() != 0) return "sent a reply with a Read list";
  if (header.writes.size() != 0) {
    if (rdma.write_offered == 0) return "returned a Write list that was not offered";
    if (header.writes.size() != 1 || header.writes.front().size() != 1)
      return "returned a Write list of another shape than was offered";
    *placed = header.writes.front()[0].length;
    if (*placed > rdma.write_offered) return "returned a Write chunk longer than was offered";
  }
  uint32_t in_reply_chunk = 0;
  if (header.has_reply) {
    if (rdma.reply_offered == 0) return "returned a Reply chunk that was not offered";
    if (header.reply.size() != 1) return "returned a Reply chunk of another shape than was offered";
    in_reply_chunk = header.reply[0].length;
    if (in_reply_chunk > rdma.reply_offered)
      return "returned a Reply chunk longer than was offered";
  }
  if (header.proc == RdmaProc::kMsg) {
    *rpc = header.rpc;
    return nullptr;
  }
  if (!header.has_reply) return "sent RDMA_NOMSG without a Reply chunk";
  *rpc = {reply_memory_.get() + rdma.reply_buffer * reply_stride_, in_reply_chunk};
  return nullptr;
}

// Where the bulk data are: `placed` bytes of them in the Write chunk, or, when that is empty,
// inline. Of a chunk the length that came back rules, not the one that was offered.
void RpcRdmaTransport::take_bulk(uint32_t slot, ConstBytes rpc, uint32_t placed) {
  const Call& call = calls_[slot].call;
  RdmaCall& rdma = rdma_[slot];
  rdma.head = rpc;
  rdma.bulk_length = 0;
  const int bulk_at = call.bulk_in.empty() ? -1 : call.split(rpc);
  if (bulk_at <= 0) return;
  const auto offset = static_cast<size_t>(bulk_at);
  const uint32_t length = load_be32(rpc.data() + offset - kXdrUnit);
  rdma.head = rpc.first(offset);
  if (length > call.bulk_in.size()) {
    rdma.verdict = Verdict::kTooMuchData;
    rdma.detail_a = length;
    rdma.detail_b = static_cast<uint32_t>(call.bulk_in.size());
  } else if (placed > 0) {
    // The chunk may hold the pad too.
    rdma.bulk_length = std::min(length, placed);
  } else if (length > rpc.size() - offset) {
    rdma.verdict = Verdict::kEndsEarly;
  } else {
    std::memcpy(call.bulk_in.data(), rpc.data() + offset, length);
    rdma.bulk_length = length;
  }
}

void RpcRdmaTransport::retire_keys(uint32_t slot) {
  RdmaCall& rdma = rdma_[slot];
  for (uint32_t i = 0; i < rdma.key_count; ++i) {
    if (connection_->unbind_key(rdma.keys[i], slot)) continue;
    ++rdma.keys_dying;
    ring_needed_ = true;
  }
  rdma.key_count = 0;
}

void RpcRdmaTransport::finish_if_done(uint32_t slot) {
  const RdmaCall& rdma = rdma_[slot];
  if (rdma.replied && rdma.send_done && rdma.keys_dying == 0) finish(slot);
}

// Reply and completions are all there, or the connection is closed: the call's memory is ours.
void RpcRdmaTransport::finish(uint32_t slot) {
  RdmaCall& rdma = rdma_[slot];
  Error error;
  Reply reply;
  reply.retransmissions = calls_[slot].retransmissions;
  reply.received_ns = rdma.received_ns;
  if (rdma.verdict == Verdict::kGood) {
    reply.head = rdma.head;
    reply.bulk_length = rdma.bulk_length;
  } else {
    error = verdict_error(rdma);
    reply.error = &error;
  }
  const uint32_t receive_buffer = rdma.receive_buffer;
  const uint32_t reply_buffer = rdma.reply_buffer;
  const uint64_t epoch = link_epoch_;
  const bool up = link_ == Link::kUp;
  calls_.release(slot);
  --outstanding_;
  --in_flight_;
  ++ended_;
  sink_->on_reply(slot, reply);
  if (reply_buffer != kNone) reply_buffers_.push_back(reply_buffer);
  if (up && link_epoch_ == epoch) connection_->post_receive(receive_buffer);
}

Error RpcRdmaTransport::verdict_error(const RdmaCall& rdma) const {
  const std::string server = "the server " + server_.text();
  switch (rdma.verdict) {
    case Verdict::kErrVers:
      return {EPROTONOSUPPORT, server + " does not speak RPC-over-RDMA version 1 (RDMA_ERROR " +
                                   "ERR_VERS: it speaks " + std::to_string(rdma.detail_a) + " to " +
                                   std::to_string(rdma.detail_b) + ")"};
    case Verdict::kErrChunk:
      return {EREMOTEIO, server + " could not use the header or the chunks of a call (RDMA_ERROR " +
                             "ERR_CHUNK)"};
    case Verdict::kTooMuchData:
      return {EPROTO, server + " sent " + std::to_string(rdma.detail_a) + " bytes of data where " +
                          std::to_string(rdma.detail_b) + " were asked for"};
    case Verdict::kEndsEarly:
      return {EPROTO, server + " sent a reply that ends before its data do"};
    case Verdict::kGood:
      break;
  }
  return {EPROTO, server + " sent a reply without sense"};
}

// The peer broke the protocol: the connection ends, so that it can't touch our memory, and so does
// the call that it answered; the others are sent again.
void RpcRdmaTransport::broken(uint32_t slot, const std::string& what) {
  ++counters_.bad_replies;
  const Error error{EPROTO, "the server " + server_.text() + " " + what};
  lose_link(error);
  if (slot != kNoSlot) end_call(slot, error);
}

}  // namespace nfsrdma
