// SPDX-License-Identifier: GPL-2.0-or-later
// MOUNT version 3 (RFC 1813 appendix I): MNT, UMNT, EXPORT.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nfs3_types.h"
#include "result.h"
#include "rpc_caller.h"

namespace nfsrdma {

struct Export {
  std::string path;
  std::vector<std::string> groups;  ///< clients it is exported to; empty: everybody
};

class MountClient {
 public:
  /// `server` is "host:port", for messages. The caller must live longer.
  MountClient(RpcCaller& caller, std::string server)
      : caller_(caller), server_(std::move(server)) {}

  /// MNT: the handle of `path`. A refusal has the errno of its mountstat3 (ENOENT, ENOTDIR,
  /// EACCES, ...); EPROTONOSUPPORT when the server lists flavours and AUTH_SYS is not among them:
  /// the text names those that are.
  Result<FileHandle> mnt(const std::string& path);
  /// UMNT: the server forgets that this client has mounted `path`. Advisory (RFC 1813).
  Result<void> umnt(const std::string& path);
  /// EXPORT: everything that is exported, to whomever; kListMax entries at most.
  Result<std::vector<Export>> exports();

 private:
  Result<ConstBytes> call(MountProcedure procedure, ConstBytes arguments, uint32_t reply_max);
  Result<ConstBytes> call_with_path(MountProcedure procedure, const std::string& path);

  RpcCaller& caller_;
  std::string server_;
};

}  // namespace nfsrdma
