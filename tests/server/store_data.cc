// SPDX-License-Identifier: GPL-2.0-or-later
// READ, WRITE and COMMIT: one inode lock each, nothing allocated but blocks of file data.
#include <algorithm>

#include "store.h"

namespace nfsrdma::memd {

namespace {

Stat not_a_file(const Inode& inode) {
  if (inode.attributes.type == FileType::kReg) return Stat::kOk;
  return inode.attributes.type == FileType::kDir ? Stat::kIsdir : Stat::kInval;
}

}  // namespace

Stat Store::read(const Credentials& who, const Ref& ref, uint64_t offset, uint32_t count,
                 std::span<BulkSpan, kBulkSpansMax> spans, ReadResult& result) {
  Inode& inode = *ref.inode;
  const uint64_t restarts = restarts_.load(std::memory_order_relaxed);
  std::shared_lock<std::shared_mutex> guard(inode.lock);
  if (inode.alive(ref) && inode.restarts_seen < restarts) {
    guard.unlock();
    {
      const std::unique_lock<std::shared_mutex> exclusive(inode.lock);
      if (inode.alive(ref)) catch_up(inode, restarts);
    }
    guard.lock();
  }
  if (!inode.alive(ref)) return Stat::kStale;
  result.attributes.follows = true;
  result.attributes.attributes = inode.snapshot();
  if (const Stat stat = not_a_file(inode); stat != Stat::kOk) return stat;
  // RFC 1813 section 3.3.6: a server may let those read who may only execute.
  if (!may(who, inode, 4) && !may(who, inode, 1) && who.uid != inode.attributes.uid) {
    return Stat::kAcces;
  }
  const uint64_t size = inode.data.size();
  if (offset >= size) {
    result.eof = true;
    return Stat::kOk;
  }
  result.count = static_cast<uint32_t>(std::min<uint64_t>(count, size - offset));
  result.eof = offset + result.count == size;
  result.span_count = inode.data.read(space_, offset, result.count, spans);
  return Stat::kOk;
}

Stat Store::write(const Credentials& who, const Ref& ref, uint64_t offset,
                  std::span<const ConstBytes> data, StableHow stable, WriteResult& result) {
  Inode& inode = *ref.inode;
  const uint64_t restarts = restarts_.load(std::memory_order_relaxed);
  const std::unique_lock<std::shared_mutex> guard(inode.lock);
  if (!inode.alive(ref)) return Stat::kStale;
  catch_up(inode, restarts);
  fill_before(result.wcc, inode);
  result.wcc.after.follows = true;
  result.verifier = verifier_of(inode.restarts_seen);
  Stat stat = not_a_file(inode);
  uint64_t length = 0;
  for (const ConstBytes& piece : data) length += piece.size();
  if (stat == Stat::kOk && options_.read_only) stat = Stat::kRofs;
  if (stat == Stat::kOk && !may(who, inode, 2) && who.uid != inode.attributes.uid) {
    stat = Stat::kAcces;
  }
  if (stat == Stat::kOk && (offset > kFileSizeMax || length > kFileSizeMax - offset)) {
    stat = Stat::kFbig;
  }
  if (stat == Stat::kOk && length > 0) {
    result.count = inode.data.write(space_, offset, data, stable == StableHow::kUnstable);
    if (result.count == 0) stat = Stat::kNospc;
    if (result.count > 0) inode.touch(true);
  }
  result.wcc.after.attributes = inode.snapshot();
  return stat;
}

Stat Store::commit(const Credentials& who, const Ref& ref, uint64_t offset, uint32_t count,
                   WriteResult& result) {
  Inode& inode = *ref.inode;
  const uint64_t restarts = restarts_.load(std::memory_order_relaxed);
  const std::unique_lock<std::shared_mutex> guard(inode.lock);
  if (!inode.alive(ref)) return Stat::kStale;
  catch_up(inode, restarts);
  fill_before(result.wcc, inode);
  result.verifier = verifier_of(inode.restarts_seen);
  Stat stat = not_a_file(inode);
  if (stat == Stat::kOk && options_.read_only) stat = Stat::kRofs;
  if (stat == Stat::kOk && !may(who, inode, 2) && who.uid != inode.attributes.uid) {
    stat = Stat::kAcces;
  }
  if (stat == Stat::kOk) inode.data.commit(space_, offset, count);
  fill_after(result.wcc, inode);
  return stat;
}

}  // namespace nfsrdma::memd
