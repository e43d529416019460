// SPDX-License-Identifier: GPL-2.0-or-later
// READ, WRITE and COMMIT of NFSv3 (RFC 1813 sections 3.3.6, 3.3.7 and 3.3.21): the codecs of the
// data path. They work on the head of a call or reply; the data themselves stand apart, as the
// transport's bulk buffer. Nothing is allocated. Offsets and lengths in bytes.
#pragma once

#include <array>
#include <cstdint>

#include "nfs3_types.h"
#include "xdr.h"

namespace nfsrdma {

using WriteVerifier = uint64_t;  ///< writeverf3: 8 opaque bytes, compared and nothing else

/// Largest arguments of the three, without data: WRITE's.
constexpr uint32_t kDataArgumentsMax = 4 + kFileHandleMax + 8 + 4 + 4 + 4;

void encode_read_args(XdrWriter& to, const FileHandle& file, uint64_t offset, uint32_t count);
/// Ends with the length word of the data; the data follow as bulk.
void encode_write_args(XdrWriter& to, const FileHandle& file, uint64_t offset, uint32_t count,
                       StableHow stable);
/// `count` 0: to the end of the file.
void encode_commit_args(XdrWriter& to, const FileHandle& file, uint64_t offset, uint32_t count);

/// SplitReply (transport.h) for READ: the data begin behind their length word.
int split_read_reply(ConstBytes reply);

struct ReadResult {
  uint32_t status = 0;  ///< nfsstat3; the rest is set with NFS3_OK only
  uint32_t count = 0;   ///< bytes read, as the server says
  bool eof = false;
  uint32_t data_length = 0;  ///< length word of the data
};

struct WriteResult {
  uint32_t status = 0;
  uint32_t count = 0;
  StableHow committed = StableHow::kUnstable;
  WriteVerifier verifier = 0;
};

struct CommitResult {
  uint32_t status = 0;
  WriteVerifier verifier = 0;
};

/// Decode results, what follows the RPC reply header. False: not what RFC 1813 says.
bool decode_read_result(XdrReader from, ReadResult* result);
bool decode_write_result(XdrReader from, WriteResult* result);
bool decode_commit_result(XdrReader from, CommitResult* result);

}  // namespace nfsrdma
