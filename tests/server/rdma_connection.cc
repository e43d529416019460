// SPDX-License-Identifier: GPL-2.0-or-later
// Life of the connection, calls coming in, Read chunks.
#include "rdma_connection.h"

#include <algorithm>
#include <array>

namespace nfsrdma::memd {
namespace {

constexpr uint32_t kReadDepth = 64;
constexpr uint32_t kOrd = 16;
constexpr uint32_t kBatch = 32;
constexpr uint32_t kSpare = 8;
// Receives for a client that was promised more than the grant (fault grant-huge).
constexpr uint32_t kHugeGrantReceives = 1024;

}  // namespace

RdmaConnection::RdmaConnection(std::unique_ptr<Connection> connection, RdmaShared& shared)
    : connection_(std::move(connection)), shared_(shared) {
  uint32_t calls = std::max(shared.options.credits, 1u);
  if (shared.faults.has(Fault::kGrantHuge)) calls = kHugeGrantReceives;
  // A client sends its next call as soon as it has a reply, before we see our Send complete.
  receives_ = 2 * calls + kSpare;
  ops_.resize(receives_);
  for (uint32_t op = receives_; op-- > 0;) free_ops_.push_back(op);
  const size_t bytes = size_t{receives_} * shared.options.inline_size;
  receive_memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  send_memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
}

RdmaConnection::~RdmaConnection() {
  connection_->close();
  for (Op& op : ops_) {
    free_staging(op.in);
    free_staging(op.out);
  }
  if (receive_region_ != kNoRegion) shared_.fabric.deregister_memory(receive_region_);
  if (send_region_ != kNoRegion) shared_.fabric.deregister_memory(send_region_);
}

Result<void> RdmaConnection::accept() {
  const size_t bytes = size_t{receives_} * shared_.options.inline_size;
  auto receive =
      shared_.fabric.register_memory({receive_memory_.get(), bytes}, Access::kLocalWrite);
  if (!receive) return tl::unexpected(receive.error());
  receive_region_ = *receive;
  auto send = shared_.fabric.register_memory({send_memory_.get(), bytes}, Access::kNone);
  if (!send) return tl::unexpected(send.error());
  send_region_ = *send;

  peer_ = decode_cm_private_data(connection_->peer_private_data());
  send_inline_ = std::min(shared_.options.inline_size, peer_.receive_size);
  peer_host_ = connection_->peer_address();
  peer_host_.resize(std::min(peer_host_.size(), peer_host_.rfind(':')));

  ConnectionConfig config;
  config.send_depth = 4 * receives_ + 64;
  config.read_depth = kReadDepth;
  config.receive_memory = {receive_memory_.get(), bytes};
  config.receive_region = receive_region_;
  config.receive_count = receives_;
  config.receive_size = shared_.options.inline_size;
  config.ird = 1;
  config.ord = kOrd;
  const auto private_data = encode_cm_private_data({.remote_invalidation = true,
                                                    .send_size = shared_.options.inline_size,
                                                    .receive_size = shared_.options.inline_size});
  return connection_->accept(shared_.fabric, config, private_data);
}

Bytes RdmaConnection::send_buffer(uint32_t op) {
  return {send_memory_.get() + size_t{op} * shared_.options.inline_size,
          shared_.options.inline_size};
}

void RdmaConnection::free_staging(Staging& staging) {
  if (staging.at == nullptr) return;
  shared_.staging.give_back(staging);
  shared_.staging_freed = true;
}

uint64_t RdmaConnection::next_timer_ns() const {
  uint64_t next = connection_->next_timer_ns();
  for (const uint32_t op : delayed_) next = std::min(next, ops_[op].due_ns);
  return next;
}

void RdmaConnection::progress(uint64_t now) {
  std::array<Completion, kBatch> completions;
  uint32_t count = 0;
  do {
    count = connection_->poll(completions);
    for (uint32_t i = 0; i < count && !dead_; ++i) take_completion(completions[i]);
  } while (count == kBatch && !dead_);
  for (size_t i = 0; i < delayed_.size() && !dead_;) {
    const uint32_t op = delayed_[i];
    if (ops_[op].due_ns > now) {
      ++i;
      continue;
    }
    delayed_.erase(delayed_.begin() + static_cast<long>(i));
    replying_.push_back(op);
  }
  if (dead_) return;
  start_next();
  pump_reads();
  pump_replies();
  if (!dead_) connection_->ring();
}

void RdmaConnection::take_completion(const Completion& completion) {
  switch (completion.kind) {
    case CompletionKind::kReceive:
      waiting_.push_back({completion.buffer, completion.bytes});
      return;
    case CompletionKind::kReadDone: {
      const auto op = static_cast<uint32_t>(completion.context);
      if (--ops_[op].reads_left == 0 && !execute(op)) starved_.push_back(op);
      return;
    }
    case CompletionKind::kSendDone: {
      const auto op = static_cast<uint32_t>(completion.context);
      if (--ops_[op].sends_out == 0 && ops_[op].sends_left == 0) end(op);
      return;
    }
    case CompletionKind::kDisconnected:
      return die();
    case CompletionKind::kEstablished:
    case CompletionKind::kWriteDone:
    case CompletionKind::kUnbound:
      return;
  }
}

void RdmaConnection::start_next() {
  while (!waiting_.empty() && !free_ops_.empty() && !dead_) {
    const Waiting message = waiting_.front();
    waiting_.pop_front();
    const uint32_t index = free_ops_.back();
    free_ops_.pop_back();
    Op& op = ops_[index];
    op.receive = message.buffer;
    const ConstBytes bytes(
        receive_memory_.get() + size_t{message.buffer} * shared_.options.inline_size,
        message.bytes);
    const HeaderFault fault = decode_rdma_header(bytes, op.header);
    if (fault == HeaderFault::kShort) {
      ++shared_.counters.bad_calls;
      return die();
    }
    if (fault == HeaderFault::kVersion)
      error_reply(index, RdmaErrcode::kVers);
    else if (fault != HeaderFault::kNone)
      error_reply(index, RdmaErrcode::kChunk);
    else
      start(index);
  }
}

void RdmaConnection::start(uint32_t index) {
  Op& op = ops_[index];
  if (op.header.proc == RdmaProc::kDone || op.header.proc == RdmaProc::kError) return end(index);
  const bool whole = op.header.proc == RdmaProc::kNomsg;
  if (op.header.proc == RdmaProc::kMsgp || whole != op.header.rpc.empty() || !plan_reads(op)) {
    return error_reply(index, RdmaErrcode::kChunk);
  }
  if (op.reads_left == 0) {
    if (!execute(index)) starved_.push_back(index);
    return;
  }
  if (shared_.staging.take(op.in_bytes, op.in))
    reading_.push_back(index);
  else
    starved_.push_back(index);
}

// One Read chunk of any number of segments: at position zero with RDMA_NOMSG, within the call with
// RDMA_MSG (RFC 8166 section 3.4.4).
bool RdmaConnection::plan_reads(Op& op) {
  const ReadListView& reads = op.header.reads;
  const bool whole = op.header.proc == RdmaProc::kNomsg;
  op.reads_posted = op.reads_left = op.in_bytes = 0;
  if (reads.size() == 0) return !whole;
  const uint32_t position = reads[0].position;
  if (whole != (position == 0) || position % kXdrUnit != 0) return false;
  if (!whole && position > op.header.rpc.size()) return false;
  const uint64_t bytes_max = whole ? shared_.service.call_max() : kTransferMax + kXdrUnit;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < reads.size(); ++i) {
    if (reads[i].position != position) return false;
    bytes += reads[i].target.length;
    if (reads[i].target.length != 0) ++op.reads_left;
  }
  op.in_bytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, bytes_max + 1));
  return bytes <= bytes_max && bytes <= StagingPool::kLarge;
}

void RdmaConnection::pump_reads() {
  while (!reading_.empty() && !dead_) {
    const uint32_t index = reading_.front();
    Op& op = ops_[index];
    const ReadListView& reads = op.header.reads;
    uint32_t offset = 0;
    for (uint32_t i = 0; i < op.reads_posted; ++i) offset += reads[i].target.length;
    for (; op.reads_posted < reads.size(); ++op.reads_posted) {
      const RdmaSegment segment = reads[op.reads_posted].target;
      if (segment.length == 0) continue;
      const LocalSpan sink{op.in.at + offset, segment.length, op.in.region};
      if (!connection_->post_read(index, sink, {segment.handle, segment.offset})) return;
      offset += segment.length;
    }
    reading_.pop_front();
  }
}

void RdmaConnection::resume() {
  for (size_t left = starved_.size(); left > 0 && !dead_; --left) {
    const uint32_t index = starved_.front();
    starved_.pop_front();
    Op& op = ops_[index];
    const bool to_read = op.reads_left > 0;
    if (to_read && shared_.staging.take(op.in_bytes, op.in))
      reading_.push_back(index);
    else if (to_read || !execute(index))
      starved_.push_back(index);
  }
  pump_reads();
  pump_replies();
  if (!dead_) connection_->ring();
}

void RdmaConnection::end(uint32_t index) {
  Op& op = ops_[index];
  if (op.receive != kNone && !connection_->post_receive(op.receive)) die();
  op.receive = kNone;
  free_staging(op.in);
  free_staging(op.out);
  op.writes.clear();
  op.writes_posted = 0;
  op.has_invalidate = false;
  free_ops_.push_back(index);
}

}  // namespace nfsrdma::memd
