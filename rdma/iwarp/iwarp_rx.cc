// SPDX-License-Identifier: GPL-2.0-or-later
#include "iwarp_rx.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "crc32c.h"
#include "mpa.h"
#include "socket_io.h"

namespace nfsrdma::iwarp {
namespace {

constexpr uint32_t kBufferBytes = 128 * 1024;
// FPDUs up to this length are handled when they are whole; longer ones are placed as they come.
constexpr uint32_t kWholeMax = 20 * 1024;
// Behind the payload of a long FPDU: its trailer and the next head, hardly more.
constexpr uint32_t kBehindLong = 256;
// Receive calls in one run(), so that one connection can't starve others of the same thread.
constexpr uint32_t kRoundsMax = 16;
static_assert(kBufferBytes >= 2 * kWholeMax);

}  // namespace

Receiver::Receiver(const ConnectionConfig& config, KeySpace& keys, Transmitter& transmitter)
    : keys_(keys),
      transmitter_(transmitter),
      receive_memory_(config.receive_memory.data()),
      receive_count_(config.receive_count),
      receive_size_(config.receive_size),
      buf_(std::make_unique<std::byte[]>(kBufferBytes)),
      posted_(config.receive_count),
      is_posted_(config.receive_count) {}

void Receiver::start(int fd, bool crc) {
  fd_ = fd;
  crc_ = crc;
  more_ = heard_ = large_ = slept_ = false;
  begin_ = end_ = 0;
  stage_ = Stage::kHead;
  placed_ = 0;
  posted_head_ = 0;
  posted_count_ = receive_count_;
  for (uint32_t buffer = 0; buffer < receive_count_; ++buffer) {
    posted_[buffer] = buffer;
    is_posted_[buffer] = 1;
  }
  send_open_ = tagged_open_ = false;
  send_bytes_ = 0;
  send_msn_ = read_msn_ = terminate_msn_ = 1;
  failure_ = {};
}

bool Receiver::post_receive(uint32_t buffer) {
  if (buffer >= receive_count_ || is_posted_[buffer] != 0) return false;
  is_posted_[buffer] = 1;
  uint32_t tail = posted_head_ + posted_count_++;
  if (tail >= receive_count_) tail -= receive_count_;
  posted_[tail] = buffer;
  return true;
}

void Receiver::fail_stream(int code, std::string text) {
  if (failed()) return;
  failure_.error = {code, std::move(text)};
  more_ = false;
}

void Receiver::fail_stream(TerminateCode code, std::string text) {
  if (failed()) return;
  failure_.terminate = true;
  failure_.code = code;
  failure_.error = {EPROTO, std::move(text)};
  more_ = false;
}

// --- the stream ---

uint32_t Receiver::run(std::span<Completion> out, FabricCounters& counters) {
  uint32_t count = 0;
  more_ = false;
  if (!std::exchange(slept_, false)) drained_ = false;
  for (uint32_t round = 0; round < kRoundsMax; ++round) {
    while (!failed() && count < out.size() && step(out, count)) continue;
    if (failed()) break;
    if (count == out.size()) {
      more_ = true;  // unless the socket is empty, which the next call finds out
      break;
    }
    if (drained_ || !fill(counters, MSG_DONTWAIT)) break;
    more_ = round + 1 == kRoundsMax;
  }
  return count;
}

void Receiver::sleep(FabricCounters& counters) {
  slept_ = fill(counters, 0);
}

// Receives once. False: nothing came.
bool Receiver::fill(FabricCounters& counters, int flags) {
  iovec parts[2];
  uint32_t count = 0;
  uint32_t direct = 0;
  if (stage_ == Stage::kPayload) {
    direct = payload_bytes() - placed_;
    std::byte* to = place_at(direct);
    if (to == nullptr) return false;
    parts[count++] = {to, direct};
  }
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (kBufferBytes - begin_ < 2 * kWholeMax) {
    std::memmove(buf_.get(), buf_.get() + begin_, buffered());
    end_ -= begin_;
    begin_ = 0;
  }
  uint32_t room = kBufferBytes - end_;
  if (direct != 0 || large_) room = std::min(room, kBehindLong);
  parts[count++] = {buf_.get() + end_, room};

  const ssize_t got = receive_pieces(fd_, parts, count, flags);
  ++counters.recv_calls;
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR)
      fail_stream(errno, std::string("connection lost: ") + strerror(errno));
    return false;
  }
  if (got == 0) {
    const bool within = stage_ != Stage::kHead || begin_ != end_;
    fail_stream(ECONNRESET, within ? "the peer closed the connection within an FPDU"
                                   : "the peer closed the connection");
    return false;
  }
  const auto bytes = static_cast<uint32_t>(got);
  const uint32_t placed = std::min(bytes, direct);
  if (placed != 0) {
    if (crc_) crc_running_ = crc32c(crc_running_, parts[0].iov_base, placed);
    placed_ += placed;
    if (placed == direct) stage_ = Stage::kTrailer;
  }
  end_ += bytes - placed;
  drained_ = bytes < direct + room;
  return true;
}

bool Receiver::step(std::span<Completion> out, uint32_t& count) {
  switch (stage_) {
    case Stage::kHead:
      return step_head(out, count);
    case Stage::kPayload:
      return step_payload();
    case Stage::kTrailer:
      return step_trailer(out, count);
  }
  return false;
}

bool Receiver::step_head(std::span<Completion> out, uint32_t& count) {
  if (buffered() < 4) return false;
  const std::byte* at = buf_.get() + begin_;
  header_ = get_control(at);
  const uint32_t total = fpdu_bytes(header_.ulpdu);
  const bool whole = total <= kWholeMax;
  if (header_.ulpdu + kMpaLengthBytes < header_.head_bytes()) {
    fail_stream(term::kUlpduLength,
                "an FPDU shorter than its header: ULPDU length " + std::to_string(header_.ulpdu));
    return false;
  }
  if (buffered() < (whole ? total : header_.head_bytes())) return false;
  failure_.blamed_bytes =
      std::min<uint32_t>(static_cast<uint32_t>(failure_.blamed.size()),
                         whole ? header_.ulpdu + kMpaLengthBytes : header_.head_bytes());
  if (whole && crc_ && !check_crc(crc32c(0, at, total - kMpaCrcBytes), at + total - kMpaCrcBytes)) {
    return false;
  }
  get_rest(at, header_);
  if (!check_control() || !accept_head()) {
    std::memcpy(failure_.blamed.data(), at, failure_.blamed_bytes);
    return false;
  }
  large_ = !whole;
  if (!whole) {
    std::memcpy(failure_.blamed.data(), at, failure_.blamed_bytes);
    begin_ += header_.head_bytes();
    placed_ = 0;
    if (crc_) crc_running_ = crc32c(0, at, header_.head_bytes());
    stage_ = Stage::kPayload;
    return true;
  }
  const std::byte* payload = at + header_.head_bytes();
  const uint32_t bytes = payload_bytes();
  placed_ = 0;
  if (bytes != 0 && (header_.tagged || header_.queue == kQueueSend)) {
    std::memcpy(place_at(bytes), payload, bytes);
    placed_ = bytes;
  }
  begin_ += total;
  if (finish(payload, out, count)) return true;
  std::memcpy(failure_.blamed.data(), at, failure_.blamed_bytes);
  return false;
}

bool Receiver::step_payload() {
  const uint32_t bytes = std::min(buffered(), payload_bytes() - placed_);
  if (bytes == 0) return false;
  std::byte* to = place_at(bytes);
  if (to == nullptr) return false;
  const std::byte* from = buf_.get() + begin_;
  std::memcpy(to, from, bytes);
  if (crc_) crc_running_ = crc32c(crc_running_, from, bytes);
  begin_ += bytes;
  placed_ += bytes;
  if (placed_ == payload_bytes()) stage_ = Stage::kTrailer;
  return true;
}

bool Receiver::step_trailer(std::span<Completion> out, uint32_t& count) {
  const uint32_t pad = fpdu_pad(header_.ulpdu);
  if (buffered() < pad + kMpaCrcBytes) return false;
  const std::byte* at = buf_.get() + begin_;
  if (crc_ && !check_crc(crc32c(crc_running_, at, pad), at + pad)) return false;
  begin_ += pad + kMpaCrcBytes;
  stage_ = Stage::kHead;
  return finish(nullptr, out, count);
}

// Where the next `bytes` of this FPDU's payload go. A Write's STag is looked up anew each time: the
// key may have been unbound while the FPDU came in. Null: it has, and the stream has failed.
std::byte* Receiver::place_at(uint32_t bytes) {
  if (!header_.tagged) {
    // The message's buffer is the first posted one until the message ends.
    const uint32_t buffer = posted_[posted_head_];
    return receive_memory_ + size_t{buffer} * receive_size_ + header_.message_offset + placed_;
  }
  if (header_.opcode == kOpReadResponse) {
    return transmitter_.oldest_read()->sink.address + header_.tagged_offset + placed_;
  }
  std::byte* to = nullptr;
  const StagFault fault =
      keys_.resolve(header_.stag, header_.tagged_offset + placed_, bytes, Access::kRemoteWrite, to);
  if (fault == StagFault::kNone) return to;
  refuse(fault, true);
  return nullptr;
}

}  // namespace nfsrdma::iwarp
