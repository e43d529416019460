// SPDX-License-Identifier: GPL-2.0-or-later
#include "rpcrdma_header.h"

namespace nfsrdma {
namespace {

void put_segment(XdrWriter& writer, const RdmaSegment& segment) {
  writer.u32(segment.handle);
  writer.u32(segment.length);
  writer.u64(segment.offset);
}

void put_write_chunk(XdrWriter& writer, WriteChunk chunk) {
  writer.u32(1);
  writer.u32(static_cast<uint32_t>(chunk.size()));
  for (const RdmaSegment& segment : chunk) put_segment(writer, segment);
}

void put_chunk_lists(XdrWriter& writer, const RdmaHeaderOut& header) {
  for (const ReadSegment& read : header.reads) {
    writer.u32(1);
    writer.u32(read.position);
    put_segment(writer, read.target);
  }
  writer.u32(0);
  for (const WriteChunk& chunk : header.writes) put_write_chunk(writer, chunk);
  writer.u32(0);
  if (header.has_reply)
    put_write_chunk(writer, header.reply);
  else
    writer.u32(0);
}

void put_fixed(XdrWriter& writer, uint32_t xid, uint32_t credits, RdmaProc proc) {
  writer.u32(xid);
  writer.u32(kRpcRdmaVersion);
  writer.u32(credits);
  writer.u32(static_cast<uint32_t>(proc));
}

// A counted array of segments, without the discriminator before it.
bool take_segments(XdrReader& reader, SegmentsView& segments) {
  const uint32_t count = reader.u32();
  if (!reader.ok() || count > reader.left() / kRdmaSegmentBytes) return false;
  segments = SegmentsView(reader.rest().data(), count);
  reader.skip(size_t{count} * kRdmaSegmentBytes);
  return true;
}

bool take_read_list(XdrReader& reader, ReadListView& reads) {
  const std::byte* first = reader.rest().data();
  uint32_t count = 0;
  while (reader.boolean()) {
    reader.skip(kReadSegmentBytes - kXdrUnit);
    ++count;
  }
  reads = ReadListView(first, reader.ok() ? count : 0);
  return reader.ok();
}

bool take_write_list(XdrReader& reader, WriteListView& writes) {
  const std::byte* first = reader.rest().data();
  uint32_t count = 0;
  while (reader.boolean()) {
    SegmentsView segments;
    if (!take_segments(reader, segments)) return false;
    ++count;
  }
  writes = WriteListView(first, reader.ok() ? count : 0);
  return reader.ok();
}

HeaderFault take_chunk_lists(XdrReader& reader, RdmaHeader& header) {
  if (!take_read_list(reader, header.reads)) return HeaderFault::kChunks;
  if (!take_write_list(reader, header.writes)) return HeaderFault::kChunks;
  header.has_reply = reader.boolean();
  if (header.has_reply && !take_segments(reader, header.reply)) return HeaderFault::kChunks;
  if (!reader.ok()) return HeaderFault::kChunks;
  header.rpc = reader.rest();
  return HeaderFault::kNone;
}

HeaderFault take_error(XdrReader& reader, RdmaHeader& header) {
  const uint32_t errcode = reader.u32();
  if (errcode == static_cast<uint32_t>(RdmaErrcode::kVers)) {
    header.version_low = reader.u32();
    header.version_high = reader.u32();
  } else if (errcode != static_cast<uint32_t>(RdmaErrcode::kChunk)) {
    return HeaderFault::kChunks;
  }
  header.errcode = static_cast<RdmaErrcode>(errcode);
  return reader.ok() ? HeaderFault::kNone : HeaderFault::kChunks;
}

}  // namespace

uint64_t SegmentsView::bytes() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count_; ++i) sum += (*this)[i].length;
  return sum;
}

uint32_t rdma_header_bytes(const RdmaHeaderOut& header) {
  if (header.proc == RdmaProc::kDone) return kRdmaFixedBytes;
  uint32_t bytes = kRdmaHeaderMin;
  bytes += static_cast<uint32_t>(header.reads.size()) * kReadSegmentBytes;
  for (const WriteChunk& chunk : header.writes)
    bytes += write_chunk_bytes(static_cast<uint32_t>(chunk.size()));
  if (header.has_reply)
    bytes += write_chunk_bytes(static_cast<uint32_t>(header.reply.size())) - kXdrUnit;
  return bytes;
}

void encode_rdma_header(XdrWriter& writer, const RdmaHeaderOut& header) {
  put_fixed(writer, header.xid, header.credits, header.proc);
  if (header.proc != RdmaProc::kDone) put_chunk_lists(writer, header);
}

void encode_rdma_msgp(XdrWriter& writer, const RdmaHeaderOut& header, uint32_t align,
                      uint32_t threshold) {
  put_fixed(writer, header.xid, header.credits, RdmaProc::kMsgp);
  writer.u32(align);
  writer.u32(threshold);
  put_chunk_lists(writer, header);
}

void encode_rdma_error(XdrWriter& writer, uint32_t xid, uint32_t credits, RdmaErrcode errcode,
                       uint32_t low, uint32_t high) {
  put_fixed(writer, xid, credits, RdmaProc::kError);
  writer.u32(static_cast<uint32_t>(errcode));
  if (errcode != RdmaErrcode::kVers) return;
  writer.u32(low);
  writer.u32(high);
}

const char* to_string(HeaderFault fault) {
  switch (fault) {
    case HeaderFault::kNone:
      return "no fault";
    case HeaderFault::kShort:
      return "a message too short for an RPC-over-RDMA header";
    case HeaderFault::kVersion:
      return "another version of RPC-over-RDMA than 1";
    case HeaderFault::kProcedure:
      return "a procedure that RPC-over-RDMA version 1 has not";
    case HeaderFault::kChunks:
      return "chunk lists that make no sense";
  }
  return "";
}

HeaderFault decode_rdma_header(ConstBytes message, RdmaHeader& header) {
  header = RdmaHeader();
  XdrReader reader(message);
  header.xid = reader.u32();
  header.version = reader.u32();
  header.credits = reader.u32();
  const uint32_t proc = reader.u32();
  if (!reader.ok()) return HeaderFault::kShort;
  if (header.version != kRpcRdmaVersion) return HeaderFault::kVersion;
  if (proc > kRdmaProcMax) return HeaderFault::kProcedure;
  header.proc = static_cast<RdmaProc>(proc);
  switch (header.proc) {
    case RdmaProc::kMsgp:
      header.align = reader.u32();
      header.threshold = reader.u32();
      if (!reader.ok()) return HeaderFault::kChunks;
      [[fallthrough]];
    case RdmaProc::kMsg:
    case RdmaProc::kNomsg:
      return take_chunk_lists(reader, header);
    case RdmaProc::kDone:
      return HeaderFault::kNone;
    case RdmaProc::kError:
      return take_error(reader, header);
  }
  return HeaderFault::kProcedure;
}

}  // namespace nfsrdma
