// SPDX-License-Identifier: GPL-2.0-or-later
// The sending half of an iWARP connection: queues of Sends, Writes, Reads and Read Responses,
// turned into FPDUs straight from the memory that they name.
//
// FPDUs are gathered into a batch: heads, trailers and short payloads in a scratch buffer, longer
// payloads by reference, one sendmsg for all. A batch that the socket takes in part is finished
// before the next is begun, so a stream never breaks within an FPDU.
//
// One thread. Nothing is allocated after construction.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ddp.h"
#include "fabric.h"
#include "iwarp_keys.h"

namespace nfsrdma::iwarp {

constexpr uint32_t kGatherMax = 8;
constexpr uint32_t kMessageMax = 0x7fffffff;
constexpr uint32_t kReadsMax = 128;  ///< IRD and ORD at most, as siw has it

/// A Read of ours.
struct PendingRead {
  uint64_t context = 0;
  LocalSpan sink;
  RemoteMemory source;
  uint32_t sink_stag = 0;
};

class Transmitter {
 public:
  Transmitter(const ConnectionConfig& config, const KeySpace& keys);

  /// Begins a connection, with empty queues. `hold`: nothing is sent before release(): a responder
  /// sends no FPDU before it has received one (RFC 5044 section 7.1.2).
  void start(int fd, uint32_t segment_max, bool crc, uint32_t ord, uint32_t ird, bool hold);
  void release() { held_ = false; }

  bool post_send(uint64_t context, std::span<const LocalSpan> gather, uint32_t flags,
                 RemoteKey key);
  bool post_write(uint64_t context, std::span<const LocalSpan> gather, RemoteMemory sink,
                  uint32_t flags);
  bool post_read(uint64_t context, LocalSpan sink, RemoteMemory source);
  void ring() {
    work_rung_ = work_tail_;
    read_rung_ = read_tail_;
  }

  /// Sends what is rung until there is no more, or the socket takes no more.
  void push(FabricCounters& counters);
  bool blocked() const { return iov_next_ != iov_count_; }
  /// The socket's error number once it has refused to send; the receiving side finds the reason.
  int broken() const { return broken_; }
  bool sent_anything() const { return sent_ != 0; }
  /// Bytes of the stream that the socket has taken, and that the batch ends with.
  uint64_t sent_position() const { return sent_; }
  uint64_t built_position() const { return built_; }

  /// Reports what was sent. Returns how many completions were filled in.
  uint32_t completions(std::span<Completion> out);
  bool has_completions() const {
    return work_head_ != work_built_ && work_[work_head_ & work_mask_].end <= sent_;
  }

  /// Queues the zero-length RDMA Write that makes siw look again (it needs no STag).
  void wake() { wake_wanted_ = true; }

  /// A Read of the peer, to be answered. False: more are outstanding than our IRD.
  bool answer(const ReadRequest& request);
  /// Whether bytes that `stag` names are in the batch and not sent.
  bool answering_from(uint32_t stag) const;
  /// The Read whose Response must come next, or null.
  const PendingRead* oldest_read() const {
    return read_head_ == read_sent_ ? nullptr : &reads_[read_head_ & read_mask_];
  }
  void read_done() { ++read_head_; }

  /// Puts a Terminate behind the batch and tries once to send it all.
  void terminate(TerminateCode code, ConstBytes blamed, FabricCounters& counters);

 private:
  struct Work {
    uint64_t context = 0;
    uint64_t end = 0;  // position in the stream behind its last byte, once built
    RemoteMemory sink;
    uint32_t length = 0;
    RemoteKey invalidate = 0;
    Opcode opcode = kOpSend;
    bool quiet = false;
    uint8_t span_count = 0;
    std::array<LocalSpan, kGatherMax> spans;
  };
  struct Response {
    ReadRequest request;
    uint64_t end = UINT64_MAX;
  };
  enum class Source : uint8_t { kNone, kWork, kReadRequest, kResponse, kWake };

  bool gather(Work& work, std::span<const LocalSpan> spans);
  bool has_message() const { return source_ != Source::kNone; }
  bool next_message();
  bool room() const;
  void build();
  void build_segment();
  void build_work();
  void build_read_request();
  bool build_response();
  void drop_sent_responses();

  std::byte* head(uint32_t bytes);  // scratch bytes, part of the batch
  void payload(const std::byte* from, uint32_t bytes);
  void payload_of(const Work& work, uint32_t bytes);
  void trailer(uint32_t ulpdu);
  void send_batch(FabricCounters& counters);

  const KeySpace& keys_;
  uint32_t send_depth_;
  uint32_t read_depth_;

  int fd_ = -1;
  int broken_ = 0;
  bool crc_ = false;
  bool held_ = false;
  bool wake_wanted_ = false;
  bool response_turn_ = false;  // Responses and work take turns
  uint32_t payload_tagged_ = 0;
  uint32_t payload_untagged_ = 0;
  uint32_t ord_ = 0;
  uint32_t ird_ = 0;

  // Rings; the counters run on and are masked. head <= built <= rung <= tail.
  std::vector<Work> work_;
  uint32_t work_mask_ = 0;
  uint32_t work_head_ = 0, work_built_ = 0, work_rung_ = 0, work_tail_ = 0;
  std::vector<PendingRead> reads_;
  uint32_t read_mask_ = 0;
  uint32_t read_head_ = 0, read_sent_ = 0, read_rung_ = 0, read_tail_ = 0;
  std::vector<Response> responses_;
  uint32_t response_head_ = 0, response_built_ = 0, response_tail_ = 0;

  // The message that is being cut into segments.
  Source source_ = Source::kNone;
  uint32_t done_ = 0;
  uint32_t span_ = 0;
  uint32_t span_offset_ = 0;

  uint32_t send_msn_ = 1;
  uint32_t read_msn_ = 1;

  // The batch.
  static constexpr uint32_t kIovMax = 256;
  static constexpr uint32_t kScratchBytes = 32 * 1024;
  std::array<iovec, kIovMax + 1> iov_;
  uint32_t iov_next_ = 0, iov_count_ = 0;
  std::unique_ptr<std::byte[]> scratch_;
  uint32_t scratch_used_ = 0;
  uint32_t crc_running_ = 0;
  uint64_t built_ = 0;  // bytes of the stream, counted from the end of set-up
  uint64_t sent_ = 0;
};

}  // namespace nfsrdma::iwarp
