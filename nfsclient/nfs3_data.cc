// SPDX-License-Identifier: GPL-2.0-or-later
#include "nfs3_data.h"

#include <cstring>

#include "rpc_message.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kNfs3Ok = 0;

void skip_post_op_attr(XdrReader& from) {
  if (from.boolean()) from.skip(kFattr3Size);
}

void skip_wcc_data(XdrReader& from) {
  if (from.boolean()) from.skip(kWccAttrSize);  // pre_op_attr
  skip_post_op_attr(from);
}

WriteVerifier read_verifier(XdrReader& from) {
  const ConstBytes bytes = from.opaque_fixed(kWriteVerifierSize);
  WriteVerifier verifier = 0;
  if (bytes.size() == sizeof verifier) std::memcpy(&verifier, bytes.data(), sizeof verifier);
  return verifier;
}

}  // namespace

void encode_read_args(XdrWriter& to, const FileHandle& file, uint64_t offset, uint32_t count) {
  to.opaque(file.span());
  to.u64(offset);
  to.u32(count);
}

void encode_write_args(XdrWriter& to, const FileHandle& file, uint64_t offset, uint32_t count,
                       StableHow stable) {
  to.opaque(file.span());
  to.u64(offset);
  to.u32(count);
  to.u32(static_cast<uint32_t>(stable));
  to.u32(count);
}

void encode_commit_args(XdrWriter& to, const FileHandle& file, uint64_t offset, uint32_t count) {
  to.opaque(file.span());
  to.u64(offset);
  to.u32(count);
}

int split_read_reply(ConstBytes reply) {
  // xid, REPLY, stat, flavour and length of the verifier.
  constexpr size_t kVerifierAt = 5 * 4;
  if (reply.size() < kVerifierAt) return 0;
  if (load_be32(reply.data() + 4) != 1 || load_be32(reply.data() + 8) != 0) return -1;
  const uint32_t verifier = load_be32(reply.data() + 16);
  if (verifier > kAuthBodyMax) return -1;
  XdrReader from(reply.subspan(kVerifierAt));
  from.skip(size_t{verifier} + xdr_pad(verifier));
  const uint32_t accept_stat = from.u32();
  const uint32_t status = from.u32();
  if (!from.ok()) return 0;
  if (accept_stat != 0 || status != kNfs3Ok) return -1;
  const uint32_t follows = from.u32();
  if (from.ok() && follows > 1) return -1;
  if (follows == 1) from.skip(kFattr3Size);
  from.u32();  // count
  from.u32();  // eof
  from.u32();  // length of the data
  return from.ok() ? static_cast<int>(kVerifierAt + from.consumed()) : 0;
}

bool decode_read_result(XdrReader from, ReadResult* result) {
  result->status = from.u32();
  skip_post_op_attr(from);
  if (result->status == kNfs3Ok) {
    result->count = from.u32();
    result->eof = from.boolean();
    result->data_length = from.u32();
  }
  return from.ok();
}

bool decode_write_result(XdrReader from, WriteResult* result) {
  result->status = from.u32();
  skip_wcc_data(from);
  if (result->status == kNfs3Ok) {
    result->count = from.u32();
    const uint32_t committed = from.u32();
    if (committed > static_cast<uint32_t>(StableHow::kFileSync)) return false;
    result->committed = static_cast<StableHow>(committed);
    result->verifier = read_verifier(from);
  }
  return from.ok();
}

bool decode_commit_result(XdrReader from, CommitResult* result) {
  result->status = from.u32();
  skip_wcc_data(from);
  if (result->status == kNfs3Ok) result->verifier = read_verifier(from);
  return from.ok();
}

}  // namespace nfsrdma
