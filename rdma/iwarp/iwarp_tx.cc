// SPDX-License-Identifier: GPL-2.0-or-later
#include "iwarp_tx.h"

#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "crc32c.h"
#include "mpa.h"
#include "socket_io.h"

namespace nfsrdma::iwarp {
namespace {

// Up to here a copy into the scratch buffer costs less than another element of sendmsg's vector.
constexpr uint32_t kCopyMax = 512;
constexpr uint32_t kTrailerMax = 3 + kMpaCrcBytes;
constexpr uint32_t kHeadMax = kUntaggedHead + kReadRequestBytes;
constexpr uint32_t kTerminateFpduMax = kUntaggedHead + kTerminateBytes + kHeadMax + kTrailerMax;

uint32_t ring_size(uint32_t entries) {
  return std::bit_ceil(std::max(entries, 1u));
}

// The longest payload of which the whole FPDU fits into `segment` bytes; a multiple of 4, so that
// only the last segment of a message is padded.
uint32_t payload_max(uint32_t segment, uint32_t header) {
  const uint32_t ulpdu = (segment & ~3u) - kMpaLengthBytes - kMpaCrcBytes;
  return (ulpdu - header) & ~3u;
}

}  // namespace

Transmitter::Transmitter(const ConnectionConfig& config, const KeySpace& keys)
    : keys_(keys),
      send_depth_(config.send_depth),
      read_depth_(config.read_depth),
      work_(ring_size(config.send_depth)),
      reads_(ring_size(config.read_depth)),
      responses_(kReadsMax),
      scratch_(std::make_unique<std::byte[]>(kScratchBytes)) {
  static_assert(std::has_single_bit(kReadsMax));
  work_mask_ = static_cast<uint32_t>(work_.size() - 1);
  read_mask_ = static_cast<uint32_t>(reads_.size() - 1);
}

void Transmitter::start(int fd, uint32_t segment_max, bool crc, uint32_t ord, uint32_t ird,
                        bool hold) {
  fd_ = fd;
  broken_ = 0;
  crc_ = crc;
  held_ = hold;
  wake_wanted_ = response_turn_ = false;
  payload_tagged_ = payload_max(segment_max, kDdpTaggedBytes);
  payload_untagged_ = payload_max(segment_max, kDdpUntaggedBytes);
  ord_ = ord;
  ird_ = ird;
  work_head_ = work_built_ = work_rung_ = work_tail_ = 0;
  read_head_ = read_sent_ = read_rung_ = read_tail_ = 0;
  response_head_ = response_built_ = response_tail_ = 0;
  source_ = Source::kNone;
  done_ = 0;
  send_msn_ = read_msn_ = 1;
  iov_next_ = iov_count_ = 0;
  scratch_used_ = 0;
  built_ = sent_ = 0;
}

bool Transmitter::gather(Work& work, std::span<const LocalSpan> spans) {
  if (spans.size() > kGatherMax) return false;
  uint64_t length = 0;
  work.span_count = 0;
  for (const LocalSpan& span : spans) {
    if (span.length == 0) continue;
    if (!keys_.holds(span, Access::kNone)) return false;
    work.spans[work.span_count++] = span;
    length += span.length;
  }
  if (length > kMessageMax) return false;
  work.length = static_cast<uint32_t>(length);
  return true;
}

bool Transmitter::post_send(uint64_t context, std::span<const LocalSpan> spans, uint32_t flags,
                            RemoteKey key) {
  if (work_tail_ - work_head_ >= send_depth_) return false;
  Work& work = work_[work_tail_ & work_mask_];
  if (!gather(work, spans)) return false;
  const bool solicited = (flags & kSolicited) != 0;
  const bool invalidate = (flags & kInvalidate) != 0;
  work.context = context;
  work.quiet = (flags & kQuiet) != 0;
  work.invalidate = invalidate ? key : 0;
  work.opcode = invalidate ? (solicited ? kOpSendSolicitedInvalidate : kOpSendInvalidate)
                           : (solicited ? kOpSendSolicited : kOpSend);
  ++work_tail_;
  return true;
}

bool Transmitter::post_write(uint64_t context, std::span<const LocalSpan> spans, RemoteMemory sink,
                             uint32_t flags) {
  if (work_tail_ - work_head_ >= send_depth_) return false;
  Work& work = work_[work_tail_ & work_mask_];
  if (!gather(work, spans)) return false;
  work.context = context;
  work.quiet = (flags & kQuiet) != 0;
  work.opcode = kOpWrite;
  work.sink = sink;
  ++work_tail_;
  return true;
}

bool Transmitter::post_read(uint64_t context, LocalSpan sink, RemoteMemory source) {
  if (read_tail_ - read_head_ >= read_depth_ || ord_ == 0 || sink.length > kMessageMax ||
      !keys_.holds(sink, Access::kLocalWrite)) {
    return false;
  }
  const uint32_t slot = read_tail_ & read_mask_;
  // The sink's STag is in no table: only the Response to this Read is placed there.
  reads_[slot] = {context, sink, source,
                  make_stag(StagClass::kReadSink, read_tail_ >> kStagIndexBits,
                            read_tail_ & ((1u << kStagIndexBits) - 1))};
  ++read_tail_;
  return true;
}

bool Transmitter::answer(const ReadRequest& request) {
  drop_sent_responses();
  if (response_tail_ - response_head_ >= ird_) return false;
  responses_[response_tail_++ & (kReadsMax - 1)] = {request, UINT64_MAX};
  return true;
}

void Transmitter::drop_sent_responses() {
  while (response_head_ != response_built_ &&
         responses_[response_head_ & (kReadsMax - 1)].end <= sent_) {
    ++response_head_;
  }
}

bool Transmitter::answering_from(uint32_t stag) const {
  if (!blocked()) return false;
  for (uint32_t at = response_head_; at != response_tail_; ++at) {
    const Response& response = responses_[at & (kReadsMax - 1)];
    if (response.request.source_stag == stag && response.end > sent_) return true;
  }
  return false;
}

uint32_t Transmitter::completions(std::span<Completion> out) {
  uint32_t count = 0;
  while (count < out.size() && has_completions()) {
    const Work& work = work_[work_head_++ & work_mask_];
    if (work.quiet) continue;
    Completion& done = out[count++];
    done = Completion{};
    done.kind = work.opcode == kOpWrite ? CompletionKind::kWriteDone : CompletionKind::kSendDone;
    done.context = work.context;
  }
  return count;
}

// --- messages into FPDUs ---

bool Transmitter::next_message() {
  done_ = span_ = span_offset_ = 0;
  if (wake_wanted_) {
    wake_wanted_ = false;
    source_ = Source::kWake;
    return true;
  }
  const bool work = work_built_ != work_rung_;
  const bool response = response_built_ != response_tail_;
  if (response && (response_turn_ || !work)) {
    response_turn_ = false;
    source_ = Source::kResponse;
    return true;
  }
  if (read_sent_ != read_rung_ && read_sent_ - read_head_ < ord_) {
    source_ = Source::kReadRequest;
    return true;
  }
  if (!work) return false;
  response_turn_ = true;
  source_ = Source::kWork;
  return true;
}

bool Transmitter::room() const {
  return scratch_used_ + kHeadMax + kCopyMax + kTrailerMax + kTerminateFpduMax <= kScratchBytes &&
         iov_count_ + 2 * kGatherMax + 2 <= kIovMax;
}

std::byte* Transmitter::head(uint32_t bytes) {
  std::byte* at = scratch_.get() + scratch_used_;
  scratch_used_ += bytes;
  built_ += bytes;
  if (iov_count_ != 0) {
    iovec& last = iov_[iov_count_ - 1];
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == at) {
      last.iov_len += bytes;
      return at;
    }
  }
  iov_[iov_count_++] = {at, bytes};
  return at;
}

void Transmitter::payload(const std::byte* from, uint32_t bytes) {
  if (bytes == 0) return;
  if (crc_) crc_running_ = crc32c(crc_running_, from, bytes);
  iov_[iov_count_++] = {const_cast<std::byte*>(from), bytes};
  built_ += bytes;
}

void Transmitter::payload_of(const Work& work, uint32_t bytes) {
  const bool copy = bytes <= kCopyMax;
  std::byte* to = copy ? head(bytes) : nullptr;
  for (uint32_t left = bytes; left != 0;) {
    const LocalSpan& span = work.spans[span_];
    const uint32_t part = std::min(left, span.length - span_offset_);
    if (copy) {
      std::memcpy(to + (bytes - left), span.address + span_offset_, part);
    } else {
      payload(span.address + span_offset_, part);
    }
    left -= part;
    span_offset_ += part;
    if (span_offset_ == span.length) {
      ++span_;
      span_offset_ = 0;
    }
  }
  if (copy && crc_) crc_running_ = crc32c(crc_running_, to, bytes);
}

void Transmitter::trailer(uint32_t ulpdu) {
  const uint32_t pad = fpdu_pad(ulpdu);
  std::byte* at = head(pad + kMpaCrcBytes);
  std::memset(at, 0, pad + kMpaCrcBytes);
  if (!crc_) return;
  const uint32_t crc = crc32c(crc_running_, at, pad);
  for (uint32_t byte = 0; byte < 4; ++byte) {
    at[pad + byte] = static_cast<std::byte>(crc >> (8 * byte));
  }
}

void Transmitter::build_work() {
  Work& work = work_[work_built_ & work_mask_];
  const bool tagged = work.opcode == kOpWrite;
  const uint32_t bytes =
      std::min(work.length - done_, tagged ? payload_tagged_ : payload_untagged_);
  const bool last = done_ + bytes == work.length;
  const uint32_t header = tagged ? kTaggedHead : kUntaggedHead;
  const uint32_t ulpdu = header - kMpaLengthBytes + bytes;
  std::byte* at = head(header);
  if (tagged) {
    put_tagged(at, ulpdu, kOpWrite, last, work.sink.key, work.sink.address + done_);
  } else {
    put_untagged(at, ulpdu, work.opcode, last, work.invalidate, kQueueSend, send_msn_, done_);
  }
  if (crc_) crc_running_ = crc32c(0, at, header);
  payload_of(work, bytes);
  trailer(ulpdu);
  done_ += bytes;
  if (!last) return;
  if (!tagged) ++send_msn_;
  work.end = built_;
  ++work_built_;
  source_ = Source::kNone;
}

void Transmitter::build_read_request() {
  const PendingRead& read = reads_[read_sent_ & read_mask_];
  constexpr uint32_t kUlpdu = kDdpUntaggedBytes + kReadRequestBytes;
  std::byte* at = head(kUntaggedHead + kReadRequestBytes);
  put_untagged(at, kUlpdu, kOpReadRequest, true, 0, kQueueReadRequest, read_msn_++, 0);
  put_read_request(at + kUntaggedHead,
                   {read.sink_stag, 0, read.sink.length, read.source.key, read.source.address});
  if (crc_) crc_running_ = crc32c(0, at, kUntaggedHead + kReadRequestBytes);
  trailer(kUlpdu);
  ++read_sent_;
  source_ = Source::kNone;
}

// The key was checked when the Request came; it may have been unbound since, so each segment asks
// again. False: it is gone.
bool Transmitter::build_response() {
  Response& response = responses_[response_built_ & (kReadsMax - 1)];
  const ReadRequest& request = response.request;
  const uint32_t bytes = std::min(request.length - done_, payload_tagged_);
  const bool last = done_ + bytes == request.length;
  std::byte* from = nullptr;
  if (bytes != 0 && keys_.resolve(request.source_stag, request.source_offset + done_, bytes,
                                  Access::kRemoteRead, from) != StagFault::kNone) {
    return false;
  }
  const uint32_t ulpdu = kDdpTaggedBytes + bytes;
  std::byte* at = head(kTaggedHead);
  put_tagged(at, ulpdu, kOpReadResponse, last, request.sink_stag, request.sink_offset + done_);
  if (crc_) crc_running_ = crc32c(0, at, kTaggedHead);
  payload(from, bytes);
  trailer(ulpdu);
  done_ += bytes;
  if (last) {
    response.end = built_;
    ++response_built_;
    source_ = Source::kNone;
  }
  return true;
}

void Transmitter::build_segment() {
  switch (source_) {
    case Source::kWork:
      build_work();
      return;
    case Source::kReadRequest:
      build_read_request();
      return;
    case Source::kResponse:
      if (build_response()) return;
      // Half a Response can't be taken back: nothing more can be said on this stream.
      broken_ = EACCES;
      source_ = Source::kNone;
      return;
    case Source::kWake: {
      std::byte* at = head(kTaggedHead);
      put_tagged(at, kDdpTaggedBytes, kOpWrite, true, 0, 0);
      if (crc_) crc_running_ = crc32c(0, at, kTaggedHead);
      trailer(kDdpTaggedBytes);
      source_ = Source::kNone;
      return;
    }
    case Source::kNone:
      return;
  }
}

void Transmitter::build() {
  iov_next_ = iov_count_ = 0;
  scratch_used_ = 0;
  while (room() && broken_ == 0 && (has_message() || next_message())) build_segment();
}

void Transmitter::send_batch(FabricCounters& counters) {
  while (blocked()) {
    const ssize_t sent =
        send_pieces(fd_, &iov_[iov_next_], iov_count_ - iov_next_, MSG_NOSIGNAL | MSG_DONTWAIT);
    ++counters.send_calls;
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != ENOBUFS) broken_ = errno;
      return;
    }
    sent_ += static_cast<uint64_t>(sent);
    auto left = static_cast<size_t>(sent);
    while (left != 0) {
      iovec& part = iov_[iov_next_];
      const size_t taken = std::min(left, part.iov_len);
      part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
      part.iov_len -= taken;
      left -= taken;
      if (part.iov_len == 0) ++iov_next_;
    }
  }
}

void Transmitter::push(FabricCounters& counters) {
  while (broken_ == 0 && !held_) {
    if (!blocked()) {
      build();
      if (iov_count_ == 0) return;
    }
    send_batch(counters);
    if (blocked()) return;
  }
}

void Transmitter::terminate(TerminateCode code, ConstBytes blamed, FabricCounters& counters) {
  if (broken_ != 0 && broken_ != EACCES) return;
  if (!blocked()) {
    iov_next_ = iov_count_ = 0;
    scratch_used_ = 0;
  }
  std::byte* at = scratch_.get() + scratch_used_;
  const auto bytes = static_cast<uint32_t>(put_terminate(at + kUntaggedHead, code, blamed));
  const uint32_t ulpdu = kDdpUntaggedBytes + bytes;
  put_untagged(at, ulpdu, kOpTerminate, true, 0, kQueueTerminate, 1, 0);
  head(kUntaggedHead + bytes);
  if (crc_) crc_running_ = crc32c(0, at, kUntaggedHead + bytes);
  trailer(ulpdu);
  send_batch(counters);
}

}  // namespace nfsrdma::iwarp
