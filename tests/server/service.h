// SPDX-License-Identifier: GPL-2.0-or-later
// The protocol core of nfsrdma-memd: an RPC call in, a reply out. Knows no socket and no RDMA.
//
// A transport hands over each call and the memory for the head of its reply, and sends what comes
// back: the head, then for READ the bulk spans, which point into the stored file. The spans are
// pinned; the transport gives them back with release() when they have been sent (or copied).
//
// Threads: handle() may run on any number of threads at once; each has its own ServiceCounters.
// Nothing is allocated by READ, WRITE, COMMIT, GETATTR, LOOKUP and ACCESS but file data.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "call_log.h"
#include "faults.h"
#include "nfs3_codec.h"
#include "store.h"

namespace nfsrdma::memd {

struct CallMessage {
  ConstBytes head;  ///< from the xid on; over TCP the whole record
  /// RPC-over-RDMA: the bytes of the Read chunk, which do not stand in `head`. Then `head` ends
  /// after the length word of the WRITE's data.
  std::span<const ConstBytes> bulk;
  bool bulk_apart = false;               ///< `bulk` counts, empty or not
  uint32_t bulk_out_max = kTransferMax;  ///< most bytes of READ data the caller has room for
  uint16_t peer_port = 0;                ///< 0 over RDMA
  std::string_view peer_host;
};

struct ReplyMessage {
  Bytes head;                ///< in: memory for the head, kReplyHeadMax serves every call
  uint32_t head_length = 0;  ///< out
  uint32_t bulk_length = 0;  ///< bytes of `bulk`; the XDR pad is the transport's
  uint32_t bulk_spans = 0;
  uint32_t proc_index = kProcIndexOther;
  bool data_call = false;  ///< READ, WRITE or COMMIT: --delay-us applies
  std::array<BulkSpan, kBulkSpansMax> bulk;

  [[nodiscard]] std::span<const BulkSpan> spans() const { return {bulk.data(), bulk_spans}; }
};

/// Written by one thread; read when that thread has ended.
struct ServiceCounters {
  std::array<uint64_t, kProcIndices> calls{};
  std::array<uint64_t, kProcIndices> errors{};
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t bad_calls = 0;  ///< not an RPC call: the connection was closed
};

struct ServiceOptions {
  uint32_t rtmax = kTransferMax;
  uint32_t wtmax = kTransferMax;
  bool mount_exports_only = false;     ///< MNT of a folder below an export is refused
  uint64_t verifier_change_after = 0;  ///< WRITEs until a simulated restart; 0: never
  uint16_t nfs_port = 0;               ///< what portmap's GETPORT answers
};

class NfsService {
 public:
  /// All three outlive the service; `log` may be nullptr.
  NfsService(const ServiceOptions& options, Store& store, FaultPlan& faults, CallLog* log);

  /// False: the bytes are no RPC call; no reply exists and the connection should be closed.
  bool handle(const CallMessage& call, ReplyMessage& reply, ServiceCounters& counters);

  /// Gives back the bulk spans of a reply.
  void release(std::span<const BulkSpan> spans) { store_.release(spans); }

  /// Known only once the sockets are bound; before the first call.
  void set_nfs_port(uint16_t port) { options_.nfs_port = port; }

  [[nodiscard]] uint32_t call_max() const { return options_.wtmax + kCallHeadMax; }

  /// Longest call apart from WRITE data.
  static constexpr uint32_t kCallHeadMax = 1u << 14;

 private:
  struct Op {
    const CallMessage& call;
    ReplyMessage& reply;
    XdrReader in;
    XdrWriter out;
    Credentials who;
    uint32_t xid = 0;
    uint32_t proc = 0;
    Stat stat = Stat::kOk;
    ServiceCounters& counters;
  };
  /// False: the arguments cannot be decoded (GARBAGE_ARGS).
  using Procedure = bool (NfsService::*)(Op&);

  // rpc_dispatch.cc
  bool parse_credentials(XdrReader& in, Credentials& who, bool& supported) const;
  void accepted(Op& op, AcceptStat stat) const;
  void mismatch(Op& op, uint32_t low, uint32_t high) const;
  void rejected(Op& op, AuthStat why) const;
  void dispatch(Op& op, uint32_t program, uint32_t version);
  void run(Op& op, Procedure procedure);
  bool refuse_by_fault(Op& op, uint32_t program);
  void finish(Op& op);

  // Helpers of the procedures.
  Stat get_ref(Op& op, Ref& ref) const;
  void reply_stat(Op& op, Stat stat) const;
  bool jukebox(Op& op, const Ref& ref, uint64_t offset);
  void log(const Op& op, uint64_t offset, uint32_t count, uint32_t stable, std::string_view name);

  // nfs3_procs_data.cc
  bool nfs_read(Op& op);
  bool nfs_write(Op& op);
  bool nfs_commit(Op& op);
  void reply_read(Op& op, uint32_t count, ReadResult& result);
  // nfs3_procs_attr.cc
  bool nfs_null(Op& op);
  bool nfs_getattr(Op& op);
  bool nfs_setattr(Op& op);
  bool nfs_access(Op& op);
  bool nfs_fsstat(Op& op);
  bool nfs_fsinfo(Op& op);
  bool nfs_pathconf(Op& op);
  // nfs3_procs_name.cc
  bool nfs_lookup(Op& op);
  bool nfs_readlink(Op& op);
  bool nfs_create(Op& op);
  bool nfs_mkdir(Op& op);
  bool nfs_symlink(Op& op);
  bool nfs_mknod(Op& op);
  bool nfs_remove(Op& op);
  bool nfs_rmdir(Op& op);
  bool nfs_rename(Op& op);
  bool nfs_link(Op& op);
  bool make(Op& op, const Ref& dir, Stat stat, std::string_view name, const CreateRequest& request);
  bool unlink(Op& op, bool rmdir);
  void put_handle(Op& op, const Ref& ref) const;
  // nfs3_procs_dir.cc
  bool nfs_readdir(Op& op);
  bool nfs_readdirplus(Op& op);
  // mount.cc
  bool mount_null(Op& op);
  bool mount_mnt(Op& op);
  bool mount_dump(Op& op);
  bool mount_umnt(Op& op);
  bool mount_umntall(Op& op);
  bool mount_export(Op& op);
  Stat walk(const Credentials& who, std::string_view path, Ref& ref);
  bool portmap_null(Op& op);
  bool portmap_getport(Op& op);

  ServiceOptions options_;
  Store& store_;
  FaultPlan& faults_;
  CallLog* const log_;
  const uint64_t cookie_verifier_;
  std::atomic<uint64_t> writes_{0};
  std::atomic<uint64_t> wrong_verifiers_{0};
  std::mutex mounts_mutex_;
  std::vector<std::pair<std::string, std::string>> mounts_;  ///< host, path; for DUMP
};

}  // namespace nfsrdma::memd
