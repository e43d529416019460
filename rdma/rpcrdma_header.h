// SPDX-License-Identifier: GPL-2.0-or-later
// The transport header of RPC-over-RDMA version 1 (RFC 8166 section 4): encoder, and a decoder
// that checks every length before anything is believed.
//
// The decoder copies nothing: its lists are views into the message, so a list may be as long as
// the message, and no longer. No state, no allocation; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "xdr.h"

namespace nfsrdma {

constexpr uint32_t kRpcRdmaVersion = 1;

enum class RdmaProc : uint32_t { kMsg = 0, kNomsg = 1, kMsgp = 2, kDone = 3, kError = 4 };
constexpr uint32_t kRdmaProcMax = 4;

/// rpc_rdma_errcode of RFC 8166 section 4.5.
enum class RdmaErrcode : uint32_t { kVers = 1, kChunk = 2 };

/// xdr_rdma_segment: a piece of registered memory. Length in bytes.
struct RdmaSegment {
  uint32_t handle = 0;
  uint32_t length = 0;
  uint64_t offset = 0;

  friend bool operator==(const RdmaSegment&, const RdmaSegment&) = default;
};

/// xdr_read_chunk: segments of one Read chunk share a position, the XDR offset counted from the
/// xid of the RPC message.
struct ReadSegment {
  uint32_t position = 0;
  RdmaSegment target;
};

constexpr uint32_t kRdmaSegmentBytes = 16;
constexpr uint32_t kReadSegmentBytes = 24;  ///< with its discriminator and its position
/// xid, version, credits, procedure.
constexpr uint32_t kRdmaFixedBytes = 16;
/// The header of RDMA_MSG and RDMA_NOMSG without any chunk.
constexpr uint32_t kRdmaHeaderMin = kRdmaFixedBytes + 3 * kXdrUnit;

/// Bytes of an xdr_write_chunk, its discriminator included.
constexpr uint32_t write_chunk_bytes(uint32_t segments) {
  return 2 * kXdrUnit + segments * kRdmaSegmentBytes;
}

using WriteChunk = std::span<const RdmaSegment>;

/// What encode_rdma_header() writes: RDMA_MSG, RDMA_NOMSG or RDMA_DONE.
struct RdmaHeaderOut {
  uint32_t xid = 0;
  uint32_t credits = 0;
  RdmaProc proc = RdmaProc::kMsg;
  std::span<const ReadSegment> reads = {};
  std::span<const WriteChunk> writes = {};
  bool has_reply = false;
  WriteChunk reply = {};
};

/// Bytes that encode_rdma_header() needs.
uint32_t rdma_header_bytes(const RdmaHeaderOut& header);
void encode_rdma_header(XdrWriter& writer, const RdmaHeaderOut& header);
/// RDMA_MSGP (RFC 8166 section 4.5.2: nobody should send it): alignment and threshold lead.
void encode_rdma_msgp(XdrWriter& writer, const RdmaHeaderOut& header, uint32_t align,
                      uint32_t threshold);
/// RDMA_ERROR. `low` and `high` are the versions served, for kVers only.
void encode_rdma_error(XdrWriter& writer, uint32_t xid, uint32_t credits, RdmaErrcode errcode,
                       uint32_t low = kRpcRdmaVersion, uint32_t high = kRpcRdmaVersion);

/// The segments of a Write chunk or Reply chunk, within a decoded message.
class SegmentsView {
 public:
  SegmentsView() = default;
  SegmentsView(const std::byte* at, uint32_t count) : at_(at), count_(count) {}

  [[nodiscard]] uint32_t size() const { return count_; }
  [[nodiscard]] RdmaSegment operator[](uint32_t i) const {
    const std::byte* segment = at_ + size_t{i} * kRdmaSegmentBytes;
    return {load_be32(segment), load_be32(segment + 4), load_be64(segment + 8)};
  }
  /// Sum of the lengths.
  [[nodiscard]] uint64_t bytes() const;

 private:
  const std::byte* at_ = nullptr;
  uint32_t count_ = 0;
};

/// The Read list of a decoded message.
class ReadListView {
 public:
  ReadListView() = default;
  ReadListView(const std::byte* at, uint32_t count) : at_(at), count_(count) {}

  [[nodiscard]] uint32_t size() const { return count_; }
  [[nodiscard]] ReadSegment operator[](uint32_t i) const {
    const std::byte* entry = at_ + size_t{i} * kReadSegmentBytes + kXdrUnit;
    return {load_be32(entry), {load_be32(entry + 4), load_be32(entry + 8), load_be64(entry + 12)}};
  }

 private:
  const std::byte* at_ = nullptr;
  uint32_t count_ = 0;
};

/// The Write list of a decoded message: its chunks, one after the other.
class WriteListView {
 public:
  WriteListView() = default;
  WriteListView(const std::byte* at, uint32_t count) : at_(at), count_(count) {}

  [[nodiscard]] uint32_t size() const { return count_; }
  /// The first chunk; size() is not 0.
  [[nodiscard]] SegmentsView front() const {
    return {at_ + 2 * kXdrUnit, load_be32(at_ + kXdrUnit)};
  }
  /// The list behind the first chunk; size() is not 0.
  [[nodiscard]] WriteListView rest() const {
    return {at_ + write_chunk_bytes(front().size()), count_ - 1};
  }

 private:
  const std::byte* at_ = nullptr;
  uint32_t count_ = 0;
};

enum class HeaderFault : uint8_t {
  kNone,
  kShort,      ///< too short for the fixed part: not even the xid can be trusted
  kVersion,    ///< another version of RPC-over-RDMA; xid and version are filled in
  kProcedure,  ///< a procedure that version 1 has not
  kChunks,     ///< chunk lists, or an error's body, that do not end within the message
};
/// A few words for messages.
const char* to_string(HeaderFault fault);

struct RdmaHeader {
  uint32_t xid = 0;
  uint32_t version = 0;
  uint32_t credits = 0;
  RdmaProc proc = RdmaProc::kMsg;

  ReadListView reads;
  WriteListView writes;
  bool has_reply = false;
  SegmentsView reply;

  uint32_t align = 0;      ///< RDMA_MSGP
  uint32_t threshold = 0;  ///< RDMA_MSGP

  RdmaErrcode errcode = RdmaErrcode::kChunk;  ///< RDMA_ERROR
  uint32_t version_low = 0;                   ///< RDMA_ERROR, kVers
  uint32_t version_high = 0;

  /// What follows the header: the RPC message of RDMA_MSG, without its chunks.
  ConstBytes rpc;
};

/// Decodes a received Send. With a fault the fields up to it are filled in.
HeaderFault decode_rdma_header(ConstBytes message, RdmaHeader& header);

}  // namespace nfsrdma
