// SPDX-License-Identifier: GPL-2.0-or-later
// The receiving half of an iWARP connection: FPDUs out of the TCP stream, each checked in full (RFC
// 5040 section 7, RFC 5041 section 7) before a byte of it is placed.
//
// Short FPDUs come many a receive call into a buffer, and are copied from there; of a long one
// (beyond kWholeMax) the head decides where the payload goes, and what is not in the buffer yet is
// received straight into its place.
//
// Whatever the peer sends, memory is written only inside posted receive buffers, sinks of our own
// Reads, and memory that a valid STag with the right to write names, within its bounds. The first
// fault ends the stream: failure() then holds what to say, and no further byte is looked at.
//
// One thread. Nothing is allocated after construction, except the text of a failure.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ddp.h"
#include "fabric.h"
#include "iwarp_keys.h"
#include "iwarp_tx.h"

namespace nfsrdma::iwarp {

struct StreamFailure {
  Error error;             ///< code 0: none; text without the peer's name
  bool terminate = false;  ///< the peer is to be told
  TerminateCode code;
  std::array<std::byte, kUntaggedHead + kReadRequestBytes> blamed{};
  uint32_t blamed_bytes = 0;
};

class Receiver {
 public:
  Receiver(const ConnectionConfig& config, KeySpace& keys, Transmitter& transmitter);

  /// Begins a connection: all receive buffers are posted.
  void start(int fd, bool crc);

  /// Gives a buffer back. False: it is posted already, or there is no such buffer.
  bool post_receive(uint32_t buffer);

  /// Receives and handles what there is, until `out` is full, the socket is empty or a bound on the
  /// work of one call is reached. Returns how many completions were filled in.
  uint32_t run(std::span<Completion> out, FabricCounters& counters);
  /// Receives once, sleeping in the call (socket_io.h). run() handles what came.
  void sleep(FabricCounters& counters);

  /// Bytes may be there that run() can handle without waiting.
  bool more() const { return more_; }
  /// A whole FPDU has come.
  bool heard() const { return heard_; }
  bool failed() const { return failure_.error.code != 0; }
  const StreamFailure& failure() const { return failure_; }

  void fail_stream(int code, std::string text);
  void fail_stream(TerminateCode code, std::string text);

 private:
  enum class Stage : uint8_t { kHead, kPayload, kTrailer };

  bool step(std::span<Completion> out, uint32_t& count);
  bool step_head(std::span<Completion> out, uint32_t& count);
  bool step_payload();
  bool step_trailer(std::span<Completion> out, uint32_t& count);
  bool fill(FabricCounters& counters, int flags);

  bool check_control();
  bool check_crc(uint32_t computed, const std::byte* wire);
  bool accept_head();
  bool accept_send();
  bool accept_tagged();
  bool accept_write();
  bool accept_read_response();
  bool accept_untagged_whole(Queue queue, uint32_t& msn);
  std::byte* place_at(uint32_t bytes);
  bool refuse(StagFault fault, bool tagged);

  bool finish(const std::byte* payload, std::span<Completion> out, uint32_t& count);
  bool finish_send(std::span<Completion> out, uint32_t& count);
  bool finish_read_request(const std::byte* payload);
  bool finish_read_response(std::span<Completion> out, uint32_t& count);
  void finish_terminate(const std::byte* payload);

  uint32_t buffered() const { return end_ - begin_; }
  uint32_t payload_bytes() const { return header_.ulpdu + 2u - header_.head_bytes(); }

  KeySpace& keys_;
  Transmitter& transmitter_;
  std::byte* receive_memory_;
  uint32_t receive_count_;
  uint32_t receive_size_;

  int fd_ = -1;
  bool crc_ = false;
  bool more_ = false;
  bool heard_ = false;
  bool drained_ = false;  // the last receive call took all that there was
  bool slept_ = false;    // that call was sleep()'s
  bool large_ = false;    // the last FPDU was a long one: don't receive much of the next into buf_

  std::unique_ptr<std::byte[]> buf_;
  uint32_t begin_ = 0, end_ = 0;

  Stage stage_ = Stage::kHead;
  DdpHeader header_;
  uint32_t placed_ = 0;  // bytes of this FPDU's payload in their place
  uint32_t crc_running_ = 0;

  // Posted receive buffers, in order.
  std::vector<uint32_t> posted_;
  std::vector<uint8_t> is_posted_;
  uint32_t posted_head_ = 0, posted_count_ = 0;

  // The untagged message that is open on queue 0, and the tagged one.
  bool send_open_ = false;
  uint8_t send_opcode_ = 0;
  uint32_t send_bytes_ = 0;
  bool tagged_open_ = false;
  uint8_t tagged_opcode_ = 0;
  uint32_t tagged_stag_ = 0;
  uint64_t tagged_next_ = 0;

  uint32_t send_msn_ = 1;
  uint32_t read_msn_ = 1;
  uint32_t terminate_msn_ = 1;

  StreamFailure failure_;
};

}  // namespace nfsrdma::iwarp
