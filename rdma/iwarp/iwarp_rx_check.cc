// SPDX-License-Identifier: GPL-2.0-or-later
// What an FPDU may be, and what a whole one brings about.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "iwarp_rx.h"
#include "mpa.h"

namespace nfsrdma::iwarp {
namespace {

bool invalidates(uint8_t opcode) {
  return opcode == kOpSendInvalidate || opcode == kOpSendSolicitedInvalidate;
}

std::string number(uint64_t value) {
  return std::to_string(value);
}

}  // namespace

bool Receiver::check_crc(uint32_t computed, const std::byte* wire) {
  const uint32_t came = static_cast<uint32_t>(wire[0]) | static_cast<uint32_t>(wire[1]) << 8 |
                        static_cast<uint32_t>(wire[2]) << 16 | static_cast<uint32_t>(wire[3]) << 24;
  if (computed == came) return true;
  fail_stream(term::kCrc,
              "CRC error in an FPDU of " + number(fpdu_bytes(header_.ulpdu)) + " bytes");
  return false;
}

bool Receiver::check_control() {
  if (header_.ddp_version != kDdpVersion) {
    fail_stream(header_.tagged ? term::kTaggedVersion : term::kUntaggedVersion,
                "DDP version " + number(header_.ddp_version) + ", not 1");
    return false;
  }
  if (header_.rdmap_version != kRdmapVersion) {
    fail_stream(term::kRdmapVersion, "RDMAP version " + number(header_.rdmap_version) + ", not 1");
    return false;
  }
  return true;
}

bool Receiver::accept_head() {
  // RFC 5040 figure 4: Writes and Read Responses are tagged, the rest is not. Immediate data and
  // atomics (RFC 7306) are no part of what we offer.
  const bool known = header_.tagged
                         ? header_.opcode == kOpWrite || header_.opcode == kOpReadResponse
                         : header_.opcode == kOpReadRequest ||
                               (header_.opcode >= kOpSend && header_.opcode <= kOpTerminate);
  if (!known) {
    fail_stream(term::kOpcode, "unexpected RDMAP opcode " + number(header_.opcode) +
                                   (header_.tagged ? ", tagged" : ", untagged"));
    return false;
  }
  if (header_.tagged) return accept_tagged();
  if (header_.opcode == kOpReadRequest) return accept_untagged_whole(kQueueReadRequest, read_msn_);
  if (header_.opcode == kOpTerminate) return accept_untagged_whole(kQueueTerminate, terminate_msn_);
  return accept_send();
}

bool Receiver::accept_send() {
  if (header_.queue != kQueueSend) {
    fail_stream(term::kQueueNumber, "a Send on queue " + number(header_.queue));
    return false;
  }
  if (header_.msn != send_msn_) {
    fail_stream(term::kMsn, "a Send with message sequence number " + number(header_.msn) + ", " +
                                number(send_msn_) + " was expected");
    return false;
  }
  if (!send_open_) {
    if (posted_count_ == 0) {
      fail_stream(term::kNoBuffer, "a Send came and no receive is posted");
      return false;
    }
    send_opcode_ = header_.opcode;
    send_bytes_ = 0;
  } else if (header_.opcode != send_opcode_) {
    fail_stream(term::kOpcode, "a Send changed its opcode between segments");
    return false;
  }
  if (header_.message_offset != send_bytes_) {
    fail_stream(term::kMessageOffset, "a Send with message offset " +
                                          number(header_.message_offset) + ", " +
                                          number(send_bytes_) + " was expected");
    return false;
  }
  const uint32_t bytes = payload_bytes();
  if (bytes > receive_size_ - send_bytes_) {
    fail_stream(term::kTooLong,
                "a Send longer than the receive of " + number(receive_size_) + " bytes");
    return false;
  }
  if (bytes == 0 && !header_.last) {
    fail_stream(term::kStreamCatastrophic, "an empty segment of a Send that is not the last");
    return false;
  }
  return true;
}

bool Receiver::accept_tagged() {
  if (payload_bytes() == 0 && !header_.last) {
    fail_stream(term::kStreamCatastrophic, "an empty tagged segment that is not the last");
    return false;
  }
  if (tagged_open_ && header_.opcode != tagged_opcode_) {
    fail_stream(term::kOpcode, "a tagged message began within another");
    return false;
  }
  return header_.opcode == kOpWrite ? accept_write() : accept_read_response();
}

bool Receiver::accept_write() {
  const uint32_t bytes = payload_bytes();
  if (tagged_open_ && header_.stag != tagged_stag_) {
    fail_stream(term::kTaggedStag, "an RDMA Write changed its STag between segments");
    return false;
  }
  if (tagged_open_ && header_.tagged_offset != tagged_next_) {
    fail_stream(term::kTaggedBounds, "segments of an RDMA Write do not follow each other");
    return false;
  }
  // A Write without payload touches nothing, so its STag is not looked at (RFC 5040 section 3.3).
  if (bytes == 0) return true;
  std::byte* at = nullptr;
  const StagFault fault =
      keys_.resolve(header_.stag, header_.tagged_offset, bytes, Access::kRemoteWrite, at);
  return fault == StagFault::kNone || refuse(fault, true);
}

bool Receiver::accept_read_response() {
  const PendingRead* read = transmitter_.oldest_read();
  if (read == nullptr) {
    fail_stream(term::kOpcode, "a Read Response came and no Read is outstanding");
    return false;
  }
  const uint64_t expected = tagged_open_ ? tagged_next_ : 0;
  const uint32_t bytes = payload_bytes();
  if (header_.stag != read->sink_stag) {
    fail_stream(term::kTaggedStag, "a Read Response for another Read than the oldest");
    return false;
  }
  if (header_.tagged_offset != expected || bytes > read->sink.length - expected ||
      (header_.last && expected + bytes != read->sink.length)) {
    fail_stream(term::kTaggedBounds, "a Read Response of " + number(header_.tagged_offset + bytes) +
                                         " bytes to a Read of " + number(read->sink.length));
    return false;
  }
  return true;
}

// Read Requests and Terminates: one segment each.
bool Receiver::accept_untagged_whole(Queue queue, uint32_t& msn) {
  if (header_.queue != queue) {
    fail_stream(term::kQueueNumber,
                "opcode " + number(header_.opcode) + " on queue " + number(header_.queue));
    return false;
  }
  if (header_.msn != msn) {
    fail_stream(term::kMsn, "message sequence number " + number(header_.msn) + " on queue " +
                                number(queue) + ", " + number(msn) + " was expected");
    return false;
  }
  if (header_.message_offset != 0) {
    fail_stream(term::kMessageOffset, "message offset " + number(header_.message_offset) +
                                          " on queue " + number(queue) + ", 0 was expected");
    return false;
  }
  const uint32_t bytes = payload_bytes();
  const uint32_t needed = queue == kQueueReadRequest ? kReadRequestBytes : kTerminateBytes;
  const uint32_t most = queue == kQueueReadRequest
                            ? kReadRequestBytes
                            : kTerminateBytes + kUntaggedHead + kReadRequestBytes;
  if (bytes > most) {
    fail_stream(term::kTooLong,
                "a message of " + number(bytes) + " bytes on queue " + number(queue));
    return false;
  }
  if (bytes < needed || !header_.last) {
    fail_stream(term::kStreamCatastrophic, "a message of " + number(bytes) + " bytes on queue " +
                                               number(queue) + " is too short");
    return false;
  }
  ++msn;
  return true;
}

// Tagged buffers' faults are DDP's, rights and sources of Reads are RDMAP's (RFC 5040 section 7.2).
bool Receiver::refuse(StagFault fault, bool tagged) {
  const std::string what = tagged ? "an RDMA Write" : "an RDMA Read";
  switch (fault) {
    case StagFault::kNone:
      return true;
    case StagFault::kInvalid:
      fail_stream(tagged ? term::kTaggedStag : term::kReadStag, what + " with an invalid STag");
      break;
    case StagFault::kBounds:
      fail_stream(tagged ? term::kTaggedBounds : term::kReadBounds,
                  what + " beyond the bounds of its STag");
      break;
    case StagFault::kAccess:
      fail_stream(term::kAccess, what + " without the right to it");
      break;
    case StagFault::kWrap:
      fail_stream(tagged ? term::kTaggedWrap : term::kReadWrap,
                  what + " whose tagged offset wraps");
      break;
  }
  return false;
}

// --- whole FPDUs ---

bool Receiver::finish(const std::byte* payload, std::span<Completion> out, uint32_t& count) {
  if (!heard_) {
    heard_ = true;
    transmitter_.release();
  }
  switch (header_.opcode) {
    case kOpWrite:
      tagged_open_ = !header_.last;
      tagged_opcode_ = kOpWrite;
      tagged_stag_ = header_.stag;
      tagged_next_ = header_.tagged_offset + payload_bytes();
      return true;
    case kOpReadResponse:
      return finish_read_response(out, count);
    case kOpReadRequest:
      return finish_read_request(payload);
    case kOpTerminate:
      finish_terminate(payload);
      return false;
    default:
      return finish_send(out, count);
  }
}

bool Receiver::finish_send(std::span<Completion> out, uint32_t& count) {
  send_bytes_ += payload_bytes();
  send_open_ = !header_.last;
  if (send_open_) return true;
  ++send_msn_;
  Completion done;
  done.kind = CompletionKind::kReceive;
  done.bytes = send_bytes_;
  done.buffer = posted_[posted_head_];
  if (invalidates(header_.opcode)) {
    // Only keys bound on this connection can be invalidated by the peer, never whole regions.
    if (stag_class(header_.stag) != StagClass::kBound || !keys_.bound.erase(header_.stag)) {
      fail_stream(term::kCannotInvalidate, "a Send that invalidates an STag which it may not");
      return false;
    }
    done.invalidated = true;
    done.key = header_.stag;
  }
  is_posted_[done.buffer] = 0;
  posted_head_ = posted_head_ + 1 == receive_count_ ? 0 : posted_head_ + 1;
  --posted_count_;
  out[count++] = done;
  return true;
}

bool Receiver::finish_read_request(const std::byte* payload) {
  const ReadRequest request = get_read_request(payload);
  if (request.length != 0) {
    std::byte* at = nullptr;
    const StagFault fault = keys_.resolve(request.source_stag, request.source_offset,
                                          request.length, Access::kRemoteRead, at);
    if (fault != StagFault::kNone) return refuse(fault, false);
  }
  if (transmitter_.answer(request)) return true;
  fail_stream(term::kNoBuffer, "more Read Requests outstanding than our IRD");
  return false;
}

bool Receiver::finish_read_response(std::span<Completion> out, uint32_t& count) {
  tagged_open_ = !header_.last;
  tagged_opcode_ = kOpReadResponse;
  tagged_next_ = header_.tagged_offset + payload_bytes();
  if (tagged_open_) return true;
  Completion done;
  done.kind = CompletionKind::kReadDone;
  done.context = transmitter_.oldest_read()->context;
  transmitter_.read_done();
  out[count++] = done;
  return true;
}

void Receiver::finish_terminate(const std::byte* payload) {
  fail_stream(ECONNABORTED,
              "the peer ended the connection with Terminate: " + to_string(get_terminate(payload)));
}

}  // namespace nfsrdma::iwarp
