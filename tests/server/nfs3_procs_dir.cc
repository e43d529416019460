// SPDX-License-Identifier: GPL-2.0-or-later
// READDIR and READDIRPLUS (RFC 1813 sections 3.3.16, 3.3.17).
#include <algorithm>

#include "service.h"

namespace nfsrdma::memd {

namespace {

/// status, post_op_attr, cookieverf before the entries; end of list and eof behind them.
constexpr uint32_t kListOverhead = 4 + 4 + kFattrLength + 8 + 4 + 4;

constexpr uint32_t padded(size_t length) {
  return static_cast<uint32_t>(length) + xdr_pad(static_cast<uint32_t>(length));
}

/// value_follows, fileid, name, cookie.
uint32_t entry_length(const DirectoryEntry& entry) {
  return 4 + 8 + 4 + padded(entry.name.size()) + 8;
}
constexpr uint32_t kEntryLengthMin = 4 + 8 + 4 + 4 + 8;

void put_entry(XdrWriter& out, const DirectoryEntry& entry) {
  out.boolean(true);
  out.u64(entry.fileid);
  out.string(entry.name);
  out.u64(entry.cookie);
}

}  // namespace

bool NfsService::nfs_readdir(Op& op) {
  Ref dir;
  Stat stat = get_ref(op, dir);
  const uint64_t cookie = op.in.u64();
  const uint64_t verifier = op.in.u64();
  const uint32_t count = op.in.u32();
  if (!op.in.ok()) return false;
  log(op, cookie, count, 0, {});
  if (stat == Stat::kOk && jukebox(op, dir, cookie)) return true;
  const auto room = static_cast<uint32_t>(
      std::min<size_t>({count, kDirReplyMax, op.reply.head.size() - kAcceptedHeaderLength}));
  std::vector<DirectoryEntry> entries;
  bool eof = false;
  PostOp after;
  if (stat == Stat::kOk) {
    stat = store_.readdir(op.who, dir, cookie, room / kEntryLengthMin + 1, entries, eof, after);
  }
  if (stat == Stat::kOk && cookie != 0 && verifier != cookie_verifier_) stat = Stat::kBadCookie;
  uint32_t length = kListOverhead;
  size_t fitting = 0;
  while (fitting < entries.size() && length + entry_length(entries[fitting]) <= room) {
    length += entry_length(entries[fitting++]);
  }
  if (stat == Stat::kOk && fitting == 0 && !entries.empty()) stat = Stat::kToosmall;
  reply_stat(op, stat);
  put_post_op(op.out, after);
  if (stat != Stat::kOk) return true;
  op.out.u64(cookie_verifier_);
  for (size_t i = 0; i < fitting; ++i) put_entry(op.out, entries[i]);
  op.out.boolean(false);
  op.out.boolean(eof && fitting == entries.size());
  return true;
}

bool NfsService::nfs_readdirplus(Op& op) {
  Ref dir;
  Stat stat = get_ref(op, dir);
  const uint64_t cookie = op.in.u64();
  const uint64_t verifier = op.in.u64();
  const uint32_t dircount = op.in.u32();
  const uint32_t maxcount = op.in.u32();
  if (!op.in.ok()) return false;
  log(op, cookie, maxcount, 0, {});
  if (stat == Stat::kOk && jukebox(op, dir, cookie)) return true;
  const auto room = static_cast<uint32_t>(
      std::min<size_t>({maxcount, kDirReplyMax, op.reply.head.size() - kAcceptedHeaderLength}));
  const uint32_t plus_length = 4 + kFattrLength + 4 + 4 + padded(store_.handle_length());
  std::vector<DirectoryEntry> entries;
  bool eof = false;
  PostOp after;
  if (stat == Stat::kOk) {
    stat = store_.readdir(op.who, dir, cookie, room / (kEntryLengthMin + plus_length) + 1, entries,
                          eof, after);
  }
  if (stat == Stat::kOk && cookie != 0 && verifier != cookie_verifier_) stat = Stat::kBadCookie;
  // dircount counts names, fileids and cookies only; at least one entry is given whatever it says.
  uint32_t length = kListOverhead;
  uint32_t names_length = 0;
  size_t fitting = 0;
  while (fitting < entries.size()) {
    const uint32_t name_part = entry_length(entries[fitting]);
    if (length + name_part + plus_length > room) break;
    if (fitting > 0 && names_length + name_part > dircount) break;
    length += name_part + plus_length;
    names_length += name_part;
    ++fitting;
  }
  if (stat == Stat::kOk && fitting == 0 && !entries.empty()) stat = Stat::kToosmall;
  reply_stat(op, stat);
  put_post_op(op.out, after);
  if (stat != Stat::kOk) return true;
  op.out.u64(cookie_verifier_);
  for (size_t i = 0; i < fitting; ++i) {
    put_entry(op.out, entries[i]);
    // No directory's lock is held here; an entry removed meanwhile comes without attributes.
    PostOp attributes;
    attributes.follows = store_.getattr(entries[i].child, attributes.attributes) == Stat::kOk;
    put_post_op(op.out, attributes);
    op.out.boolean(attributes.follows);
    if (attributes.follows) put_handle(op, entries[i].child);
  }
  op.out.boolean(false);
  op.out.boolean(eof && fitting == entries.size());
  return true;
}

}  // namespace nfsrdma::memd
