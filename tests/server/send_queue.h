// SPDX-License-Identifier: GPL-2.0-or-later
// What waits to be sent on one TCP connection: replies in order, many to a system call.
//
// Heads are written by the protocol core right into the arena, behind room for the record marker.
// Small bulk data are copied behind their head, so that a batch of small replies is one piece of
// memory; larger ones are sent from where they are stored, pinned until they have left.
//
// Threads: one, the connection's.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "service.h"

namespace nfsrdma::memd {

class SendQueue {
 public:
  explicit SendQueue(NfsService& service);
  ~SendQueue();
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  /// Too much waits already: no further reply until some of it has been sent.
  [[nodiscard]] bool full() const {
    return arena_used_ + kReplyRoom > kArenaLength || pieces_.size() + kPiecesAReply > kPiecesMax ||
           bytes_ >= kBytesMax;
  }
  [[nodiscard]] bool empty() const { return first_ == pieces_.size(); }
  [[nodiscard]] size_t bytes() const { return bytes_; }

  /// Memory for the head of the next reply. Not when full().
  Bytes head_room() { return {arena_.get() + arena_used_ + kMarkerLength, kReplyHeadMax}; }
  /// Queues the reply whose head stands in head_room(), as a record of one fragment; takes over
  /// the pins of its spans.
  void push(const ReplyMessage& reply);
  /// Queues bytes that are a record, or part of one, already. `trickle`: a byte a system call.
  void push_raw(std::vector<std::byte> bytes, bool trickle);

  enum class Flushed { kAll, kBlocked, kBroken };
  /// Sends what the socket takes.
  Flushed flush(int socket, uint64_t& send_calls);

 private:
  static constexpr uint32_t kMarkerLength = 4;
  static constexpr size_t kArenaLength = size_t{1} << 20;
  /// Bulk data up to this are copied: that is cheaper than two more pieces in a system call.
  static constexpr uint32_t kCopyMax = 16384;
  static constexpr size_t kReplyRoom = kMarkerLength + kReplyHeadMax + kCopyMax + kXdrUnit;
  static constexpr size_t kPiecesMax = 1024;  // IOV_MAX
  static constexpr size_t kPiecesAReply = kBulkSpansMax + 2;
  static constexpr size_t kBytesMax = size_t{4} << 20;

  /// What keeps a piece's memory alive, and how it is sent.
  struct Holder {
    Block* pin = nullptr;
    std::vector<std::byte> owned;
    bool trickle = false;
  };

  void add_arena(size_t length);
  void add_piece(const void* data, size_t length, Holder holder);
  void sent(size_t bytes);
  void pop_front();

  NfsService& service_;
  std::unique_ptr<std::byte[]> arena_;
  size_t arena_used_ = 0;
  size_t bytes_ = 0;
  size_t first_ = 0;  ///< first piece not sent
  std::vector<iovec> pieces_;
  std::vector<Holder> holders_;
};

/// The whole reply as one message, without a record marker. Does not give back the pins.
std::vector<std::byte> flatten(const ReplyMessage& reply);

}  // namespace nfsrdma::memd
