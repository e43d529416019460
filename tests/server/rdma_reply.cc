// SPDX-License-Identifier: GPL-2.0-or-later
// Calls into the protocol core, replies out: Write chunks, Reply chunks, faults on purpose.
#include <algorithm>
#include <cstring>

#include "rdma_connection.h"
#include "transport.h"  // now_ns()

namespace nfsrdma::memd {
namespace {

// Every so many quiet Writes one has a completion, so that the queue can't fill with quiet ones.
constexpr uint32_t kSignalEvery = 16;
constexpr uint32_t kHugeGrant = 0xffffffff;

uint64_t offered_bytes(const RdmaHeader& header) {
  return (header.writes.size() != 0 ? header.writes.front().bytes() : 0) +
         (header.has_reply ? header.reply.bytes() : 0);
}

void copy_spans(std::byte* to, const ReplyMessage& reply) {
  for (const BulkSpan& span : reply.spans()) {
    std::memcpy(to, span.data, span.length);
    to += span.length;
  }
}

}  // namespace

// False: there is no staging memory now.
bool RdmaConnection::execute(uint32_t index) {
  Op& op = ops_[index];
  const uint64_t room = std::min<uint64_t>(offered_bytes(op.header), StagingPool::kLarge);
  if (room > 0 && op.out.at == nullptr && !shared_.staging.take(room, op.out)) return false;
  CallMessage call;
  ConstBytes bulk;
  if (!call_of(op, call, bulk)) {
    error_reply(index, RdmaErrcode::kChunk);
    return true;
  }
  ReplyMessage& reply = shared_.reply;
  reply = ReplyMessage();
  reply.head = {shared_.reply_head.get(), kReplyHeadMax};
  if (!shared_.service.handle(call, reply, shared_.counters)) {
    die();
    return true;
  }
  free_staging(op.in);
  build_reply(index, reply);
  shared_.service.release(reply.spans());
  return true;
}

// The call as the protocol core wants it. False: the chunk does not fit the call.
bool RdmaConnection::call_of(Op& op, CallMessage& call, ConstBytes& bulk) {
  const ConstBytes rpc = op.header.rpc;
  const ConstBytes fetched(op.in.at, op.in_bytes);
  call.peer_host = peer_host_;
  const uint64_t write_room =
      op.header.writes.size() != 0 ? op.header.writes.front().bytes() : uint64_t{0};
  const uint64_t reply_room = op.header.has_reply ? op.header.reply.bytes() : uint64_t{0};
  const uint64_t inline_room = send_inline_ > kReplyHeadSmall ? send_inline_ - kReplyHeadSmall : 0;
  const uint64_t apart = reply_room > kReplyHeadSmall ? reply_room - kReplyHeadSmall : 0;
  call.bulk_out_max = static_cast<uint32_t>(std::min<uint64_t>(
      write_room != 0 ? write_room : std::max(inline_room, apart), kTransferMax));
  if (op.header.proc == RdmaProc::kNomsg) {
    call.head = fetched;
  } else if (op.header.reads.size() == 0) {
    call.head = rpc;
  } else if (op.header.reads[0].position == rpc.size()) {
    call.head = rpc;
    bulk = fetched;
    call.bulk = {&bulk, 1};
    call.bulk_apart = true;
  } else {
    // Data in the middle of the call: put together, with the pad that may stand in the chunk.
    const uint32_t position = op.header.reads[0].position;
    assembled_.assign(rpc.begin(), rpc.begin() + position);
    assembled_.insert(assembled_.end(), fetched.begin(), fetched.end());
    assembled_.resize(assembled_.size() + xdr_pad(op.in_bytes));
    assembled_.insert(assembled_.end(), rpc.begin() + position, rpc.end());
    call.head = assembled_;
  }
  return true;
}

uint32_t RdmaConnection::grant(const ReplyMessage& reply) const {
  if (shared_.faults.fires(Fault::kGrantZero, reply.proc_index)) return 0;
  if (shared_.faults.fires(Fault::kGrantHuge, reply.proc_index)) return kHugeGrant;
  return shared_.options.credits;
}

void RdmaConnection::error_reply(uint32_t index, RdmaErrcode errcode) {
  Op& op = ops_[index];
  XdrWriter writer(send_buffer(index));
  encode_rdma_error(writer, op.header.xid, shared_.options.credits, errcode);
  op.message_bytes = static_cast<uint32_t>(writer.size());
  op.writes.clear();
  op.has_invalidate = false;
  op.sends_left = 1;
  answer(index, 0);
}

void RdmaConnection::build_reply(uint32_t index, ReplyMessage& reply) {
  Op& op = ops_[index];
  const auto fires = [&](Fault fault) { return shared_.faults.fires(fault, reply.proc_index); };
  if (fires(Fault::kDrop)) return end(index);
  if (fires(Fault::kClose) || fires(Fault::kCloseBefore)) return die();
  if (fires(Fault::kErrVers)) return error_reply(index, RdmaErrcode::kVers);
  if (fires(Fault::kErrChunk)) return error_reply(index, RdmaErrcode::kChunk);

  ReplyLists lists;
  for (WriteListView rest = op.header.writes; rest.size() != 0; rest = rest.rest()) {
    lists.writes.emplace_back();
    for (uint32_t i = 0; i < rest.front().size(); ++i) {
      lists.writes.back().push_back(rest.front()[i]);
      lists.writes.back().back().length = 0;
    }
  }
  const bool unused = fires(Fault::kUnusedChunk);
  const bool by_chunk = reply.bulk_length != 0 && !lists.writes.empty() && !unused;
  if (by_chunk && !place_bulk(op, reply, lists, fires(Fault::kShortChunk)))
    return error_reply(index, RdmaErrcode::kChunk);
  if (!finish_message(index, reply, lists, !by_chunk))
    return error_reply(index, RdmaErrcode::kChunk);
  choose_invalidate(op);

  const Bytes message = send_buffer(index).first(op.message_bytes);
  if (fires(Fault::kBadXid)) message[0] ^= std::byte{0x5a};
  if (fires(Fault::kGarbage)) fill_with_garbage(message);
  op.sends_left = fires(Fault::kDupReply) ? 2 : 1;
  uint64_t delay_ns = reply.data_call ? shared_.options.delay_ns : 0;
  if (fires(Fault::kLate)) delay_ns += shared_.options.late_ns;
  answer(index, delay_ns);
}

// READ data into the first Write chunk, segment after segment, without a pad.
bool RdmaConnection::place_bulk(Op& op, const ReplyMessage& reply, ReplyLists& lists,
                                bool shorter) {
  const SegmentsView offered = op.header.writes.front();
  if (reply.bulk_length > offered.bytes() || reply.bulk_length > op.out.size) return false;
  copy_spans(op.out.at, reply);
  uint32_t done = 0;
  for (uint32_t i = 0; i < offered.size() && done < reply.bulk_length; ++i) {
    const RdmaSegment segment = offered[i];
    const uint32_t length = std::min(segment.length, reply.bulk_length - done);
    if (length == 0) continue;
    op.writes.push_back({{segment.handle, segment.offset}, done, length});
    lists.writes.front()[i].length = shorter ? length / 2 : length;
    done += length;
  }
  return true;
}

// The transport header, and the reply behind it or, when it is too long, in the Reply chunk.
bool RdmaConnection::finish_message(uint32_t index, const ReplyMessage& reply, ReplyLists& lists,
                                    bool inline_bulk) {
  Op& op = ops_[index];
  const uint32_t bulk = inline_bulk ? reply.bulk_length : 0;
  const uint32_t rpc_bytes = reply.head_length + bulk + xdr_pad(bulk);
  if (op.header.has_reply) {
    for (uint32_t i = 0; i < op.header.reply.size(); ++i) {
      lists.reply.push_back(op.header.reply[i]);
      lists.reply.back().length = 0;
    }
  }
  std::vector<WriteChunk> chunks(lists.writes.begin(), lists.writes.end());
  RdmaHeaderOut header{.xid = op.header.xid, .credits = grant(reply)};
  header.writes = chunks;
  header.has_reply = op.header.has_reply;
  header.reply = lists.reply;
  const uint32_t header_bytes = rdma_header_bytes(header);
  const bool fits = header_bytes + rpc_bytes <= send_inline_;
  if (header_bytes > send_inline_) return false;

  Bytes to = send_buffer(index).subspan(header_bytes);
  if (!fits) {
    const uint64_t offered = op.header.has_reply ? op.header.reply.bytes() : 0;
    if (rpc_bytes > offered || rpc_bytes > op.out.size || !op.writes.empty()) return false;
    to = {op.out.at, op.out.size};
    header.proc = RdmaProc::kNomsg;
    uint32_t done = 0;
    for (uint32_t i = 0; i < op.header.reply.size() && done < rpc_bytes; ++i) {
      const RdmaSegment segment = op.header.reply[i];
      const uint32_t length = std::min(segment.length, rpc_bytes - done);
      if (length == 0) continue;
      op.writes.push_back({{segment.handle, segment.offset}, done, length});
      lists.reply[i].length = length;
      done += length;
    }
  }
  std::memcpy(to.data(), reply.head.data(), reply.head_length);
  if (bulk != 0) {
    copy_spans(to.data() + reply.head_length, reply);
    std::memset(to.data() + reply.head_length + bulk, 0, xdr_pad(bulk));
  }
  XdrWriter writer(send_buffer(index));
  encode_rdma_header(writer, header);
  op.message_bytes = header_bytes + (fits ? rpc_bytes : 0);
  return writer.ok();
}

// A call that carried one handle, from a peer that understands: it dies with the reply.
void RdmaConnection::choose_invalidate(Op& op) const {
  op.has_invalidate = false;
  if (!peer_.remote_invalidation) return;
  uint32_t handles = 0;
  const auto count = [&](const RdmaSegment& segment) {
    if (handles == 0 || op.invalidate != segment.handle) ++handles;
    op.invalidate = segment.handle;
  };
  for (uint32_t i = 0; i < op.header.reads.size(); ++i) count(op.header.reads[i].target);
  for (WriteListView rest = op.header.writes; rest.size() != 0; rest = rest.rest()) {
    for (uint32_t i = 0; i < rest.front().size(); ++i) count(rest.front()[i]);
  }
  for (uint32_t i = 0; i < op.header.reply.size(); ++i) count(op.header.reply[i]);
  op.has_invalidate = handles == 1;
}

void RdmaConnection::answer(uint32_t index, uint64_t delay_ns) {
  Op& op = ops_[index];
  op.sends_out = 0;
  op.writes_posted = 0;
  // The buffer is posted again before the reply is: the client may send its next call at once.
  if (op.receive != kNone && !connection_->post_receive(op.receive)) return die();
  op.receive = kNone;
  if (delay_ns == 0) {
    replying_.push_back(index);
    return;
  }
  op.due_ns = now_ns() + delay_ns;
  delayed_.push_back(index);
}

void RdmaConnection::pump_replies() {
  while (!replying_.empty() && !dead_) {
    if (!post_reply(replying_.front())) return;
    replying_.pop_front();
  }
}

// False: the queue is full; it goes on with the next completion.
bool RdmaConnection::post_reply(uint32_t index) {
  Op& op = ops_[index];
  for (; op.writes_posted < op.writes.size(); ++op.writes_posted) {
    const Op::Write& write = op.writes[op.writes_posted];
    const LocalSpan from{op.out.at + write.offset, write.length, op.out.region};
    const bool quiet = writes_unsignalled_ + 1 < kSignalEvery;
    if (!connection_->post_write(index, {&from, 1}, write.sink, quiet ? kQuiet : 0)) return false;
    writes_unsignalled_ = quiet ? writes_unsignalled_ + 1 : 0;
  }
  const LocalSpan message{send_buffer(index).data(), op.message_bytes, send_region_};
  while (op.sends_left > 0) {
    const bool last = op.sends_left == 1;
    const bool invalidate = op.has_invalidate && last;
    if (!connection_->post_send(index, {&message, 1}, invalidate ? kInvalidate : 0,
                                invalidate ? op.invalidate : 0))
      return false;
    --op.sends_left;
    ++op.sends_out;
  }
  return true;
}

}  // namespace nfsrdma::memd
