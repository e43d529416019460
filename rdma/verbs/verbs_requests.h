// SPDX-License-Identifier: GPL-2.0-or-later
// What was posted to the send queue of a connection and has not ended. Requests are numbered from
// 0; the number is the work request's id. No allocation after open().
//
// Threads: one, its connection's.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "verbs_keys.h"

namespace nfsrdma::verbs {

enum class RequestKind : uint8_t { kSend, kWrite, kRead, kBind, kInvalidate, kWake };

struct Request {
  uint64_t context = 0;
  uint32_t key_slot = kNoKeySlot;
  RequestKind kind = RequestKind::kSend;
  bool quiet = false;  ///< nobody waits for its end
  bool ended = false;
};

class RequestQueue {
 public:
  /// Room for `size` requests that have not ended.
  void open(uint32_t size) {
    size_ = size;
    ring_.assign(std::bit_ceil(size), {});
    clear();
  }
  void clear() { head_ = tail_ = quiet_end_ = sends_ = reads_ = 0; }

  [[nodiscard]] bool full() const { return head_ - tail_ >= size_; }
  /// The number that the next push() gives.
  [[nodiscard]] uint64_t next() const { return head_; }
  void push(const Request& request) {
    (*this)[head_++] = request;
    count(request.kind, 1);
  }
  Request& operator[](uint64_t number) { return ring_[number & (ring_.size() - 1)]; }

  /// Sends and Writes, and Reads, that have not ended.
  [[nodiscard]] uint32_t sends() const { return sends_; }
  [[nodiscard]] uint32_t reads() const { return reads_; }

  /// The device has completed a request: that ends it and the quiet ones before it. Others before
  /// it have completions of their own, which may still come: siw completes a Send as soon as it
  /// left, and a Read posted earlier when its bytes are there. Null: no number of a request that
  /// was still out. The pointer is good until the next push().
  const Request* retire(uint64_t number) {
    if (number < tail_ || number >= head_ || (*this)[number].ended) return nullptr;
    for (; quiet_end_ <= number; ++quiet_end_) {
      if ((*this)[quiet_end_].quiet) end((*this)[quiet_end_]);
    }
    Request& request = (*this)[number];
    end(request);
    while (tail_ < head_ && (*this)[tail_].ended) ++tail_;
    return &request;
  }

 private:
  void count(RequestKind kind, uint32_t by) {
    if (kind == RequestKind::kSend || kind == RequestKind::kWrite) sends_ += by;
    if (kind == RequestKind::kRead) reads_ += by;
  }
  void end(Request& request) {
    if (request.ended) return;
    request.ended = true;
    count(request.kind, -1u);
  }

  std::vector<Request> ring_;  // a power of two
  uint32_t size_ = 0;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;       // the oldest that has not ended
  uint64_t quiet_end_ = 0;  // before it no quiet one is out
  uint32_t sends_ = 0, reads_ = 0;
};

}  // namespace nfsrdma::verbs
