// SPDX-License-Identifier: GPL-2.0-or-later
// Receiving: one system call serves many replies, which are cut from the receive buffer; the bulk
// data of a large reply are received straight into their destination.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "socket_io.h"
#include "tcp_transport.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kMarkerBytes = 4;
constexpr uint32_t kLastFragment = 0x8000'0000u;
constexpr uint32_t kXidBytes = 4;
// From this many missing bytes on, a receive call of its own costs less than a copy.
constexpr size_t kDirectMin = 16 * 1024;
// With so many bytes of a reply at hand it can be told where its bulk data begin.
constexpr size_t kHeadLook = 512;
constexpr int kRoundsMax = 16;
constexpr uint32_t kEmptyFragmentsMax = 64;

}  // namespace

void TcpTransport::receive() {
  for (int round = 0; round < kRoundsMax && link_ == Link::kUp; ++round) {
    if (!std::exchange(received_, false) && receive_more(MSG_DONTWAIT) == 0) return;
    received_ns_ = last_received_ns_ = now_ns();
    if (!finish_bulk_if_done() || !take_records()) return;
    // What has come is handed up before more is taken in: else replies wait here for their fellows
    // while the calls that would follow them are not made.
    if (drained_ || ended_ != 0) return;
  }
}

bool TcpTransport::sleep_receiving(uint64_t now, uint64_t until_ns) {
  if (!may_sleep_ || link_ != Link::kUp || !queue_.empty() ||
      !may_sleep_receiving(now, std::min(until_ns, next_timer_ns())))
    return false;
  received_ = receive_more(0) != 0;
  return true;
}

// Returns the bytes received; 0: none, or the link is lost.
size_t TcpTransport::receive_more(int flags) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ > 0 && buffer_size_ - end_ < buffer_size_ / 2) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  iovec pieces[2];
  size_t count = 0;
  size_t wanted = 0;
  if (receive_.mode == Receiving::kBulk) {
    const Bytes bulk = calls_[receive_.slot].call.bulk_in;
    const size_t left = receive_.bulk_length - receive_.bulk_done;
    pieces[count++] = {bulk.data() + receive_.bulk_done, left};
    wanted += left;
  }
  pieces[count++] = {buffer_.get() + end_, buffer_size_ - end_};
  wanted += buffer_size_ - end_;

  ++counters_.recv_calls;
  const ssize_t got = receive_pieces(socket_.fd(), pieces, count, flags);
  if (got < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
      lose_link("the connection to " + server_.text() +
                " broke while receiving: " + std::strerror(errno));
    return 0;
  }
  if (got == 0) {
    lose_link("the server " + server_.text() + " closed the connection");
    return 0;
  }
  size_t bytes = static_cast<size_t>(got);
  drained_ = bytes < wanted;
  if (receive_.mode == Receiving::kBulk) {
    const size_t placed = std::min<size_t>(bytes, receive_.bulk_length - receive_.bulk_done);
    receive_.bulk_done += static_cast<uint32_t>(placed);
    bytes -= placed;
  }
  end_ += bytes;
  return static_cast<size_t>(got);
}

bool TcpTransport::finish_bulk_if_done() {
  if (receive_.mode != Receiving::kBulk || receive_.bulk_done < receive_.bulk_length) return true;
  const uint32_t slot = receive_.slot;
  receive_.mode = Receiving::kSkip;
  receive_.left = receive_.skip_after;
  receive_.slot = kNoSlot;
  deliver(slot, {saved_head_.get(), receive_.head_length}, receive_.bulk_length);
  return link_ == Link::kUp;
}

// Cuts records from the buffer until one is incomplete. False: the link is lost.
bool TcpTransport::take_records() {
  while (begin_ < end_ && receive_.mode != Receiving::kBulk) {
    if (receive_.mode == Receiving::kSkip) {
      const auto step = std::min<uint64_t>(end_ - begin_, receive_.left);
      begin_ += step;
      receive_.left -= step;
      if (receive_.left == 0) receive_.mode = Receiving::kRecords;
      continue;
    }
    if (receive_.mode == Receiving::kAssembly) {
      const size_t before = begin_;
      if (!take_assembly_bytes()) return false;
      if (begin_ == before && receive_.mode == Receiving::kAssembly) return true;
      continue;
    }
    const size_t available = end_ - begin_;
    if (available < kMarkerBytes) return true;
    const uint32_t marker = load_be32(buffer_.get() + begin_);
    const size_t length = marker & ~kLastFragment;
    if (length > record_max_) {
      lose_link("the server " + server_.text() + " sent a record of " + std::to_string(length) +
                " bytes, more than any reply can have: is this an NFS server?");
      return false;
    }
    const ConstBytes here(buffer_.get() + begin_ + kMarkerBytes,
                          std::min(available - kMarkerBytes, length));
    const bool last = (marker & kLastFragment) != 0;
    if (last && here.size() == length) {
      begin_ += kMarkerBytes + length;
      if (!take_whole(here)) return false;
      continue;
    }
    if (last && here.size() < std::min(length, kHeadLook)) return true;
    if (last && start_bulk(here, length)) continue;
    if (link_ != Link::kUp) return false;
    if (last && kMarkerBytes + length <= buffer_size_ / 2) return true;  // the rest will come
    // In fragments, or too long for the buffer.
    receive_.mode = Receiving::kAssembly;
    receive_.assembled = 0;
    receive_.empty_fragments = 0;
    receive_.left = length;
    receive_.last_fragment = last;
    begin_ += kMarkerBytes;
  }
  return true;
}

// Takes what the buffer holds of a record in several fragments (RFC 5531 section 11).
bool TcpTransport::take_assembly_bytes() {
  if (receive_.left == 0 && receive_.last_fragment) {
    const ConstBytes record(assembly_.get(), receive_.assembled);
    receive_.mode = Receiving::kRecords;
    return take_whole(record);
  }
  if (receive_.left == 0) {
    if (end_ - begin_ < kMarkerBytes) return true;
    const uint32_t marker = load_be32(buffer_.get() + begin_);
    const size_t length = marker & ~kLastFragment;
    receive_.last_fragment = (marker & kLastFragment) != 0;
    if (length == 0) ++receive_.empty_fragments;
    if (receive_.assembled + length > record_max_ ||
        receive_.empty_fragments > kEmptyFragmentsMax) {
      lose_link("the server " + server_.text() +
                " sent a record in fragments that add up to more than any reply can have");
      return false;
    }
    receive_.left = length;
    begin_ += kMarkerBytes;
  }
  const auto step = std::min<uint64_t>(end_ - begin_, receive_.left);
  std::memcpy(assembly_.get() + receive_.assembled, buffer_.get() + begin_, step);
  receive_.assembled += static_cast<uint32_t>(step);
  receive_.left -= step;
  begin_ += step;
  if (receive_.left == 0 && receive_.last_fragment) {
    receive_.mode = Receiving::kRecords;
    return take_whole({assembly_.get(), receive_.assembled});
  }
  return true;
}

// A complete record. False: the link is lost.
bool TcpTransport::take_whole(ConstBytes record) {
  if (record.size() < kXidBytes) {
    lose_link("the server " + server_.text() + " sent a record of " +
              std::to_string(record.size()) + " bytes, too short for a reply");
    return false;
  }
  const uint32_t slot = calls_.find(load_be32(record.data()));
  if (slot == kNoSlot) {
    ++counters_.bad_replies;
    return true;
  }
  const Call& call = calls_[slot].call;
  const int bulk_at = call.bulk_in.empty() ? -1 : call.split(record);
  if (bulk_at <= 0) {
    deliver(slot, record, 0);
    return link_ == Link::kUp;
  }
  const auto offset = static_cast<size_t>(bulk_at);
  const uint32_t bulk_length = load_be32(record.data() + offset - kXdrUnit);
  if (bulk_length > call.bulk_in.size()) {
    refuse_reply(slot, "sent " + std::to_string(bulk_length) + " bytes of data where " +
                           std::to_string(call.bulk_in.size()) + " were asked for");
  } else if (bulk_length > record.size() - offset) {
    refuse_reply(slot, "sent a reply that ends before its data do");
  } else {
    std::memcpy(call.bulk_in.data(), record.data() + offset, bulk_length);
    deliver(slot, record.first(offset), bulk_length);
  }
  return link_ == Link::kUp;
}

// `partial` is the start of a record of `record_length` bytes whose rest has not come yet. True:
// taken over, so that the rest goes to its place; false: wait for more in the buffer.
bool TcpTransport::start_bulk(ConstBytes partial, uint64_t record_length) {
  if (partial.size() < kXidBytes || record_length - partial.size() < kDirectMin) return false;
  const uint64_t missing = record_length - partial.size();
  const auto skip_rest = [&] {
    begin_ = end_;
    receive_.mode = Receiving::kSkip;
    receive_.left = missing;
    return true;
  };
  const uint32_t slot = calls_.find(load_be32(partial.data()));
  if (slot == kNoSlot) {
    ++counters_.bad_replies;
    return skip_rest();
  }
  const Call& call = calls_[slot].call;
  const int bulk_at = call.bulk_in.empty() ? -1 : call.split(partial);
  if (bulk_at <= 0 || static_cast<size_t>(bulk_at) > config_.reply_head_max) return false;
  const auto offset = static_cast<size_t>(bulk_at);
  const uint32_t bulk_length = load_be32(partial.data() + offset - kXdrUnit);
  if (bulk_length > call.bulk_in.size()) {
    skip_rest();
    refuse_reply(slot, "sent " + std::to_string(bulk_length) + " bytes of data where " +
                           std::to_string(call.bulk_in.size()) + " were asked for");
    return link_ == Link::kUp;
  }
  if (bulk_length > record_length - offset) {
    skip_rest();
    refuse_reply(slot, "sent a reply that ends before its data do");
    return link_ == Link::kUp;
  }
  const size_t have = std::min<size_t>(partial.size() - offset, bulk_length);
  if (have == bulk_length) return false;  // only what follows the data is missing
  std::memcpy(saved_head_.get(), partial.data(), offset);
  std::memcpy(call.bulk_in.data(), partial.data() + offset, have);
  begin_ = end_;
  receive_.mode = Receiving::kBulk;
  receive_.slot = slot;
  receive_.bulk_length = bulk_length;
  receive_.bulk_done = static_cast<uint32_t>(have);
  receive_.head_length = static_cast<uint32_t>(offset);
  receive_.skip_after = record_length - offset - bulk_length;
  return true;
}

void TcpTransport::deliver(uint32_t slot, ConstBytes head, uint32_t bulk_length) {
  Reply reply;
  reply.head = head;
  reply.bulk_length = bulk_length;
  reply.retransmissions = calls_[slot].retransmissions;
  reply.received_ns = received_ns_;
  connect_failures_ = 0;
  finish(slot);
  sink_->on_reply(slot, reply);
}

void TcpTransport::refuse_reply(uint32_t slot, std::string why) {
  end_call(slot, Error{EPROTO, "the server " + server_.text() + " " + std::move(why)});
}

}  // namespace nfsrdma
