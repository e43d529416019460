// SPDX-License-Identifier: GPL-2.0-or-later
// Sending: the form of each call (RFC 8166 section 3.5), its chunks and keys, one doorbell a batch.
#include <algorithm>
#include <cerrno>

#include "rpcrdma_limits.h"
#include "rpcrdma_transport.h"

namespace nfsrdma {
namespace {

// Context of Sends whose completion nobody waits for.
constexpr uint64_t kNoCall = UINT64_MAX;
// Head, bulk data, pad.
constexpr uint32_t kGatherMax = 3;

}  // namespace

struct RpcRdmaTransport::Marshalled {
  enum class Form : uint8_t {
    kInline,     // RDMA_MSG with everything in it
    kReadChunk,  // RDMA_MSG, the bulk data in a Read chunk
    kLongCall,   // RDMA_NOMSG, the whole call in a position-zero Read chunk
  };
  Form form = Form::kInline;
  uint32_t reply_header_bytes = 0;  // what the reply's chunk adds to the header
  bool write_chunk = false;
  bool reply_chunk = false;
  RdmaSegment reply_segment;
  std::array<ReadSegment, kCallSegmentsMax> reads{};
  uint32_t read_count = 0;
};

void RpcRdmaTransport::flush() {
  if (link_ != Link::kUp) return;
  posted_.clear();
  while (!queue_.empty() && in_flight_ < credits_) {
    const uint32_t slot = queue_.at(0);
    const Sending outcome = send_call(slot);
    if (outcome == Sending::kLinkLost) return;
    if (outcome == Sending::kLater) break;
    queue_.pop();
    calls_[slot].state = CallState::kSent;
    posted_.push_back(slot);
    if (++in_flight_ > counters_.depth_max) counters_.depth_max = in_flight_;
  }
  if (!queue_.empty() && in_flight_ >= credits_) count_stalls();
  if (posted_.empty() && !ring_needed_) return;
  ring_needed_ = false;
  connection_->ring();
  calls_sent();
}

// Each call counts once, however often it is passed over.
void RpcRdmaTransport::count_stalls() {
  const uint64_t fresh = std::min<uint64_t>(queue_.size(), order_ - stalls_counted_to_);
  counters_.credit_stalls += fresh;
  stalls_counted_to_ = order_;
}

void RpcRdmaTransport::calls_sent() {
  if (posted_.empty()) return;
  const uint64_t now = now_ns();
  const uint64_t epoch = link_epoch_;
  for (const uint32_t slot : posted_) {
    if (link_epoch_ != epoch) return;  // the sink gave up
    CallSlot& entry = calls_[slot];
    entry.wait_start_ns = now;
    if (entry.first_sent_ns != 0) continue;
    entry.first_sent_ns = now;
    sink_->on_sent(slot, now);
  }
}

RpcRdmaTransport::Sending RpcRdmaTransport::send_call(uint32_t slot) {
  Marshalled out;
  RdmaCall& rdma = rdma_[slot];
  rdma.send_done = false;
  rdma.key_count = rdma.keys_dying = 0;
  rdma.write_offered = rdma.reply_offered = 0;
  if (!offer_for_reply(slot, out)) return Sending::kLater;
  choose_call_form(slot, out);
  auto offered = offer_for_call(slot, out);
  if (!offered) {
    const Error error = offered.error();
    lose_link(error);  // its other keys may be in force already
    end_call(slot, error);
    return Sending::kLinkLost;
  }
  if (post_call(slot, out)) return Sending::kPosted;
  if (connection_->state() == ConnectionState::kEstablished)
    lose_link({ENOBUFS, "the fabric took no Send to " + server_.text() +
                            ", though fewer were under way than agreed"});
  else
    lose_link(connection_->error());
  return Sending::kLinkLost;
}

// Where the reply can go: inline if it surely fits, else bulk data into a Write chunk, and large
// heads into a Reply chunk. False: every buffer for Reply chunks is in use.
bool RpcRdmaTransport::offer_for_reply(uint32_t slot, Marshalled& out) {
  const Call& call = calls_[slot].call;
  RdmaCall& rdma = rdma_[slot];
  const auto bulk = static_cast<uint32_t>(call.bulk_in.size());
  const uint64_t inline_bytes =
      uint64_t{kRdmaHeaderMin} + call.reply_head_max + bulk + xdr_pad(bulk);
  if (inline_bytes <= receive_inline_) return true;
  if (bulk != 0) {
    out.write_chunk = true;
    out.reply_header_bytes = write_chunk_bytes(1);
    rdma.write_offered = bulk;
    return true;
  }
  if (reply_buffers_.empty()) return false;
  rdma.reply_buffer = reply_buffers_.back();
  reply_buffers_.pop_back();
  rdma.reply_offered = std::min(call.reply_head_max, config_.reply_head_max);
  out.reply_chunk = true;
  out.reply_header_bytes = write_chunk_bytes(1) - kXdrUnit;
  return true;
}

void RpcRdmaTransport::choose_call_form(uint32_t slot, Marshalled& out) const {
  using Form = Marshalled::Form;
  const Call& call = calls_[slot].call;
  const auto bulk = static_cast<uint32_t>(call.bulk_out.size());
  const uint64_t without_bulk =
      uint64_t{kRdmaHeaderMin} + out.reply_header_bytes + call.head_length;
  const uint32_t gather_max = connection_->limits().gather_max;
  if (without_bulk + bulk + xdr_pad(bulk) <= send_inline_ &&
      (bulk == 0 || gather_max >= kGatherMax))
    out.form = Form::kInline;
  else if (bulk != 0 && without_bulk + kReadSegmentBytes <= send_inline_)
    out.form = Form::kReadChunk;
  else
    out.form = Form::kLongCall;
}

// Names the memory of the chunks to the server.
Result<void> RpcRdmaTransport::offer_for_call(uint32_t slot, Marshalled& out) {
  const Call& call = calls_[slot].call;
  RdmaCall& rdma = rdma_[slot];
  if (out.write_chunk || out.reply_chunk) {
    const ConstBytes memory =
        out.write_chunk ? ConstBytes(call.bulk_in)
                        : ConstBytes(reply_memory_.get() + rdma.reply_buffer * reply_stride_,
                                     rdma.reply_offered);
    auto named = name_memory(rdma, out.write_chunk ? rdma.bulk_region : reply_region_, memory,
                             Access::kRemoteWrite);
    if (!named) return tl::unexpected(named.error());
    out.reply_segment = *named;
  }
  const auto add_read = [&](RegionId region, ConstBytes memory, uint32_t position) -> Result<void> {
    if (memory.empty()) return {};
    auto named = name_memory(rdma, region, memory, Access::kRemoteRead);
    if (!named) return tl::unexpected(named.error());
    out.reads[out.read_count++] = {position, *named};
    return {};
  };
  if (out.form == Marshalled::Form::kReadChunk)
    // The data stand right behind their length word, which ends the head (RFC 8166 section 3.4.5).
    // Their pad is left out (section 3.4.6).
    return add_read(rdma.bulk_region, call.bulk_out, call.head_length);
  if (out.form == Marshalled::Form::kLongCall) {
    // One Read chunk with everything: servers refuse a second one.
    const std::byte* head = calls_.head(slot);
    const auto bulk = static_cast<uint32_t>(call.bulk_out.size());
    auto added = add_read(heads_region_, {head, call.head_length}, 0);
    if (added) added = add_read(rdma.bulk_region, call.bulk_out, 0);
    if (added) added = add_read(heads_region_, {head - kHeadRoom, xdr_pad(bulk)}, 0);
    return added;
  }
  return {};
}

Result<RdmaSegment> RpcRdmaTransport::name_memory(RdmaCall& rdma, RegionId region,
                                                  ConstBytes memory, Access access) {
  RemoteMemory remote;
  if (options_.key_per_call) {
    auto bound = connection_->bind_key(region, memory, access);
    if (!bound) return tl::unexpected(bound.error());
    remote = *bound;
    rdma.keys[rdma.key_count++] = remote.key;
  } else {
    remote = fabric_->remote_memory(region, memory.data());
  }
  return RdmaSegment{remote.key, static_cast<uint32_t>(memory.size()), remote.address};
}

// The header stands right before the head in memory, so that they leave together.
bool RpcRdmaTransport::post_call(uint32_t slot, Marshalled& out) {
  const Call& call = calls_[slot].call;
  RdmaCall& rdma = rdma_[slot];
  const WriteChunk segment(&out.reply_segment, 1);
  const std::array<WriteChunk, 1> writes{segment};
  RdmaHeaderOut header;
  header.xid = calls_.xid(slot);
  header.credits = credits_asked_;
  header.proc = out.form == Marshalled::Form::kLongCall ? RdmaProc::kNomsg : RdmaProc::kMsg;
  header.reads = {out.reads.data(), out.read_count};
  if (out.write_chunk) header.writes = writes;
  header.has_reply = out.reply_chunk;
  if (out.reply_chunk) header.reply = segment;

  std::byte* head = calls_.head(slot);
  const uint32_t header_bytes = rdma_header_bytes(header);
  std::byte* start = head - header_bytes;
  XdrWriter writer(Bytes(start, header_bytes));
  encode_rdma_header(writer, header);

  std::array<LocalSpan, kGatherMax> gather;
  uint32_t pieces = 0;
  const uint32_t head_bytes = header.proc == RdmaProc::kNomsg ? 0 : call.head_length;
  gather[pieces++] = {start, header_bytes + head_bytes, heads_region_};
  uint32_t bytes = header_bytes + head_bytes;
  if (out.form == Marshalled::Form::kInline && !call.bulk_out.empty()) {
    const auto bulk = static_cast<uint32_t>(call.bulk_out.size());
    gather[pieces++] = {const_cast<std::byte*>(call.bulk_out.data()), bulk, rdma.bulk_region};
    if (xdr_pad(bulk) != 0) gather[pieces++] = {head - kHeadRoom, xdr_pad(bulk), heads_region_};
    bytes += bulk + xdr_pad(bulk);
  }
  // A Send that the fabric copies leaves nothing to wait for.
  const bool copied = bytes <= connection_->limits().inline_max;
  const bool quiet = copied && sends_unsignalled_ + 1 < kSignalEvery;
  sends_unsignalled_ = quiet ? sends_unsignalled_ + 1 : 0;
  rdma.send_done = copied;
  return connection_->post_send(copied ? kNoCall : slot, {gather.data(), pieces},
                                quiet ? kQuiet : 0);
}

}  // namespace nfsrdma
