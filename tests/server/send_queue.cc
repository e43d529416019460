// SPDX-License-Identifier: GPL-2.0-or-later
#include "send_queue.h"

#include <sys/socket.h>

#include <cassert>
#include <cerrno>
#include <cstring>

namespace nfsrdma::memd {

namespace {
constexpr uint32_t kLastFragment = 1u << 31;
}

SendQueue::SendQueue(NfsService& service)
    : service_(service), arena_(std::make_unique_for_overwrite<std::byte[]>(kArenaLength)) {
  pieces_.reserve(kPiecesMax);
  holders_.reserve(kPiecesMax);
}

SendQueue::~SendQueue() {
  while (!empty()) pop_front();
}

void SendQueue::add_piece(const void* data, size_t length, Holder holder) {
  pieces_.push_back({const_cast<void*>(data), length});
  holders_.push_back(std::move(holder));
  bytes_ += length;
}

/// Queues the next bytes of the arena; they join the piece before them if that is arena too.
void SendQueue::add_arena(size_t length) {
  std::byte* const begin = arena_.get() + arena_used_;
  arena_used_ += length;
  if (!empty()) {
    iovec& last = pieces_.back();
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == begin) {
      last.iov_len += length;
      bytes_ += length;
      return;
    }
  }
  add_piece(begin, length, {});
}

void SendQueue::push(const ReplyMessage& reply) {
  const uint32_t pad = xdr_pad(reply.bulk_length);
  std::byte* const begin = arena_.get() + arena_used_;
  store_be32(begin, (reply.head_length + reply.bulk_length + pad) | kLastFragment);
  std::byte* at = begin + kMarkerLength + reply.head_length;
  if (reply.bulk_length <= kCopyMax) {
    for (const BulkSpan& span : reply.spans()) {
      std::memcpy(at, span.data, span.length);
      at += span.length;
    }
    std::memset(at, 0, pad);
    add_arena(static_cast<size_t>(at - begin) + pad);
    service_.release(reply.spans());
    return;
  }
  add_arena(static_cast<size_t>(at - begin));
  for (const BulkSpan& span : reply.spans()) {
    Holder holder;
    holder.pin = span.pin;
    add_piece(span.data, span.length, std::move(holder));
  }
  if (pad > 0) {
    std::memset(arena_.get() + arena_used_, 0, pad);
    add_arena(pad);
  }
}

void SendQueue::push_raw(std::vector<std::byte> bytes, bool trickle) {
  if (bytes.empty()) return;
  Holder holder;
  holder.owned = std::move(bytes);
  holder.trickle = trickle;
  const std::byte* data = holder.owned.data();  // moving a vector does not move its bytes
  const size_t length = holder.owned.size();
  add_piece(data, length, std::move(holder));
}

void SendQueue::pop_front() {
  Holder& holder = holders_[first_];
  if (holder.pin != nullptr) {
    const BulkSpan span{nullptr, 0, holder.pin};
    service_.release({&span, 1});
  }
  holder = {};
  ++first_;
}

void SendQueue::sent(size_t bytes) {
  bytes_ -= bytes;
  while (!empty() && bytes >= pieces_[first_].iov_len) {
    bytes -= pieces_[first_].iov_len;
    pop_front();
  }
  if (empty()) {
    assert(bytes == 0);
    first_ = 0;
    arena_used_ = 0;
    pieces_.clear();
    holders_.clear();
    return;
  }
  iovec& front = pieces_[first_];
  front.iov_base = static_cast<std::byte*>(front.iov_base) + bytes;
  front.iov_len -= bytes;
}

SendQueue::Flushed SendQueue::flush(int socket, uint64_t& send_calls) {
  while (!empty()) {
    iovec one_byte;
    msghdr message = {};
    message.msg_iov = &pieces_[first_];
    if (holders_[first_].trickle) {
      one_byte = {pieces_[first_].iov_base, 1};
      message.msg_iov = &one_byte;
      message.msg_iovlen = 1;
    } else {
      size_t end = first_ + 1;
      while (end < pieces_.size() && !holders_[end].trickle) ++end;
      message.msg_iovlen = end - first_;
    }
    ++send_calls;
    const ssize_t length = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Flushed::kBlocked;
    if (length < 0) return Flushed::kBroken;
    sent(static_cast<size_t>(length));
  }
  return Flushed::kAll;
}

std::vector<std::byte> flatten(const ReplyMessage& reply) {
  std::vector<std::byte> message(reply.head.begin(), reply.head.begin() + reply.head_length);
  message.reserve(message.size() + reply.bulk_length + kXdrUnit);
  for (const BulkSpan& span : reply.spans()) {
    message.insert(message.end(), span.data, span.data + span.length);
  }
  message.resize(message.size() + xdr_pad(reply.bulk_length));
  return message;
}

}  // namespace nfsrdma::memd
