// SPDX-License-Identifier: GPL-2.0-or-later
// READ, WRITE and COMMIT (RFC 1813 sections 3.3.6, 3.3.7, 3.3.21).
#include <algorithm>

#include "service.h"

namespace nfsrdma::memd {

bool NfsService::nfs_read(Op& op) {
  Ref ref;
  Stat stat = get_ref(op, ref);
  const uint64_t offset = op.in.u64();
  const uint32_t asked = op.in.u32();
  if (!op.in.ok()) return false;
  op.reply.data_call = true;
  log(op, offset, asked, 0, {});
  if (stat == Stat::kOk && jukebox(op, ref, offset)) return true;

  uint32_t count = std::min({asked, options_.rtmax, op.call.bulk_out_max});
  if (faults_.fires(Fault::kShortRead, op.proc)) count = std::max(count / 2, 1u);
  ReadResult result;
  if (stat == Stat::kOk) stat = store_.read(op.who, ref, offset, count, op.reply.bulk, result);
  reply_stat(op, stat);
  if (stat != Stat::kOk) {
    put_post_op(op.out, result.attributes);
    return true;
  }
  reply_read(op, asked, result);
  return true;
}

void NfsService::reply_read(Op& op, uint32_t asked, ReadResult& result) {
  constexpr uint32_t kTooMany = 4;
  if (faults_.fires(Fault::kLongRead, op.proc) && result.span_count < kBulkSpansMax) {
    // What is there, filled up to more than was asked.
    const uint32_t extra = std::min(asked - result.count + kTooMany, kBlockSize);
    op.reply.bulk[result.span_count++] = {zero_block(), extra, nullptr};
    result.count += extra;
  }
  op.reply.bulk_spans = result.span_count;
  op.reply.bulk_length = result.count;
  put_post_op(op.out, result.attributes);
  op.out.u32(result.count);
  op.out.boolean(result.eof);
  op.out.u32(result.count);
  op.counters.bytes_read += result.count;
}

namespace {

/// The first `length` bytes of the spans. Returns how many pieces that makes; a list beyond the
/// array's end is cut, which makes the WRITE a short one.
size_t clip(std::span<const ConstBytes> spans, uint32_t length, std::span<ConstBytes> pieces) {
  size_t used = 0;
  for (const ConstBytes& span : spans) {
    if (length == 0 || used == pieces.size()) break;
    const ConstBytes piece = span.first(std::min<size_t>(span.size(), length));
    length -= static_cast<uint32_t>(piece.size());
    pieces[used++] = piece;
  }
  return used;
}

size_t total(std::span<const ConstBytes> spans) {
  size_t bytes = 0;
  for (const ConstBytes& span : spans) bytes += span.size();
  return bytes;
}

}  // namespace

bool NfsService::nfs_write(Op& op) {
  Ref ref;
  Stat stat = get_ref(op, ref);
  const uint64_t offset = op.in.u64();
  const uint32_t count = op.in.u32();
  const uint32_t stable = op.in.u32();
  const uint32_t data_length = op.in.u32();
  ConstBytes inline_data;
  std::span<const ConstBytes> data = op.call.bulk;
  if (!op.call.bulk_apart) {
    inline_data = op.in.opaque_fixed(data_length);
    data = {&inline_data, 1};
  }
  if (!op.in.ok() || stable > static_cast<uint32_t>(StableHow::kFileSync)) return false;
  if (op.call.bulk_apart && total(data) < data_length) return false;
  op.reply.data_call = true;
  log(op, offset, count, stable, {});
  if (stat == Stat::kOk && jukebox(op, ref, offset)) return true;
  if (stat == Stat::kOk && count > data_length) stat = Stat::kInval;

  uint32_t length = std::min({count, data_length, options_.wtmax});
  if (faults_.fires(Fault::kShortWrite, op.proc)) length = std::max(length / 2, 1u);
  if (faults_.fires(Fault::kZeroWrite, op.proc)) length = 0;
  std::array<ConstBytes, 64> pieces;
  const size_t piece_count = clip(data, length, pieces);
  WriteResult result;
  if (stat == Stat::kOk) {
    stat = store_.write(op.who, ref, offset, {pieces.data(), piece_count},
                        static_cast<StableHow>(stable), result);
  }
  reply_stat(op, stat);
  put_wcc(op.out, result.wcc);
  if (stat != Stat::kOk) return true;
  if (faults_.fires(Fault::kWrongVerifier, op.proc)) {
    result.verifier += wrong_verifiers_.fetch_add(1) + 1;
  }
  op.out.u32(result.count);
  op.out.u32(stable);
  op.out.u64(result.verifier);
  op.counters.bytes_written += result.count;
  if (options_.verifier_change_after != 0 &&
      writes_.fetch_add(1) + 1 == options_.verifier_change_after) {
    store_.simulate_restart();
  }
  return true;
}

bool NfsService::nfs_commit(Op& op) {
  Ref ref;
  Stat stat = get_ref(op, ref);
  const uint64_t offset = op.in.u64();
  const uint32_t count = op.in.u32();
  if (!op.in.ok()) return false;
  op.reply.data_call = true;
  log(op, offset, count, 0, {});
  if (stat == Stat::kOk && jukebox(op, ref, offset)) return true;
  WriteResult result;
  if (faults_.fires(Fault::kCommitError, op.proc)) {
    stat = Stat::kIo;  // what was not made stable stays unstable
  } else if (stat == Stat::kOk) {
    stat = store_.commit(op.who, ref, offset, count, result);
  }
  reply_stat(op, stat);
  put_wcc(op.out, result.wcc);
  if (stat == Stat::kOk) op.out.u64(result.verifier);
  return true;
}

}  // namespace nfsrdma::memd
