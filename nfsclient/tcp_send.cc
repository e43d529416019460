// SPDX-License-Identifier: GPL-2.0-or-later
// Sending: many records in one system call, heads and bulk data from where they lie.
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "socket_io.h"
#include "tcp_transport.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kMarkerBytes = 4;
constexpr size_t kPiecesMax = 192;
constexpr size_t kPiecesPerCall = 3;  // marker and head, bulk data, pad
constexpr size_t kGatherBytes = 1u << 20;

const std::byte kZeros[kXdrUnit] = {};

}  // namespace

// The pieces of one send call.
struct TcpTransport::Gather {
  iovec pieces[kPiecesMax];
  size_t count = 0;
  size_t bytes = 0;

  void add(const std::byte* from, size_t length, size_t* skip) {
    if (*skip >= length) {
      *skip -= length;
      return;
    }
    pieces[count++] = {const_cast<std::byte*>(from) + *skip, length - *skip};
    bytes += length - *skip;
    *skip = 0;
  }

  void add_bulk(ConstBytes bulk, size_t* skip) {
    if (bulk.empty()) return;
    add(bulk.data(), bulk.size(), skip);
    add(kZeros, xdr_pad(static_cast<uint32_t>(bulk.size())), skip);
  }
};

uint32_t TcpTransport::record_length(uint32_t slot) const {
  const Call& call = calls_[slot].call;
  const auto bulk = static_cast<uint32_t>(call.bulk_out.size());
  return call.head_length + bulk + xdr_pad(bulk);
}

void TcpTransport::flush() {
  if (link_ != Link::kUp || queue_.empty() || send_blocked_) return;
  const bool alive = config_.split_marker ? send_split() : send_joined();
  if (!alive)
    lose_link("the connection to " + server_.text() +
              " broke while sending: " + std::strerror(errno));
}

TcpTransport::Sending TcpTransport::send_gathered(Gather& gather) {
  ++counters_.send_calls;
  const ssize_t sent =
      send_pieces(socket_.fd(), gather.pieces, gather.count, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) {
    send_blocked_ = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS;
    return send_blocked_ || errno == EINTR ? Sending::kLater : Sending::kBroken;
  }
  sent_bytes(static_cast<size_t>(sent));
  if (static_cast<size_t>(sent) == gather.bytes) return Sending::kAll;
  send_blocked_ = true;
  return Sending::kLater;
}

// The record marker stands right before the head in memory, so that they leave together.
bool TcpTransport::send_joined() {
  while (!queue_.empty()) {
    Gather gather;
    size_t skip = front_sent_;
    for (uint32_t i = 0; i < queue_.size(); ++i) {
      if (gather.count + kPiecesPerCall > kPiecesMax || gather.bytes >= kGatherBytes) break;
      const uint32_t slot = queue_.at(i);
      const Call& call = calls_[slot].call;
      gather.add(calls_.head(slot) - kMarkerBytes, kMarkerBytes + call.head_length, &skip);
      gather.add_bulk(call.bulk_out, &skip);
    }
    const Sending outcome = send_gathered(gather);
    if (outcome != Sending::kAll) return outcome == Sending::kLater;
  }
  return true;
}

// The marker in a send call of its own: what experiment E4 compares with.
bool TcpTransport::send_split() {
  while (!queue_.empty()) {
    const uint32_t slot = queue_.at(0);
    const Call& call = calls_[slot].call;
    Gather gather;
    size_t skip = front_sent_;
    if (front_sent_ < kMarkerBytes) {
      gather.add(calls_.head(slot) - kMarkerBytes, kMarkerBytes, &skip);
    } else {
      skip -= kMarkerBytes;
      gather.add(calls_.head(slot), call.head_length, &skip);
      gather.add_bulk(call.bulk_out, &skip);
    }
    const Sending outcome = send_gathered(gather);
    if (outcome != Sending::kAll) return outcome == Sending::kLater;
  }
  return true;
}

void TcpTransport::sent_bytes(size_t bytes) {
  const uint64_t now = now_ns();
  while (!queue_.empty()) {
    const uint32_t slot = queue_.at(0);
    const size_t left = kMarkerBytes + record_length(slot) - front_sent_;
    if (bytes < left) {
      front_sent_ += bytes;
      return;
    }
    bytes -= left;
    front_sent_ = 0;
    queue_.pop();
    CallSlot& entry = calls_[slot];
    entry.state = CallState::kSent;
    entry.wait_start_ns = now;
    if (++on_wire_ > counters_.depth_max) counters_.depth_max = on_wire_;
    if (entry.first_sent_ns == 0) {
      entry.first_sent_ns = now;
      sink_->on_sent(slot, now);
    }
  }
}

}  // namespace nfsrdma
