// SPDX-License-Identifier: GPL-2.0-or-later
// RPC calls (RFC 5531): header and credentials in, program and procedure chosen, reply header out.
#include <sys/random.h>

#include <algorithm>
#include <cassert>

#include "service.h"

namespace nfsrdma::memd {

namespace {

uint64_t random_cookie_verifier() {
  uint64_t word = 1;
  return getrandom(&word, sizeof word, 0) == sizeof word ? word : 1;
}

/// How many words of value FALSE make up the failed result of an NFS procedure: absent attributes
/// and wcc data, behind the status.
constexpr uint32_t kAbsentWords[kNfsProcs] = {0, 0, 2, 1, 1, 1, 1, 2, 2, 2, 2,
                                              2, 2, 2, 4, 3, 1, 1, 1, 1, 1, 2};

}  // namespace

NfsService::NfsService(const ServiceOptions& options, Store& store, FaultPlan& faults, CallLog* log)
    : options_(options),
      store_(store),
      faults_(faults),
      log_(log),
      cookie_verifier_(random_cookie_verifier()) {
  assert(options_.rtmax <= kTransferMax && options_.wtmax <= kTransferMax);
}

/// False: not decodable (AUTH_BADCRED). `supported` false: a flavour we do not serve.
bool NfsService::parse_credentials(XdrReader& in, Credentials& who, bool& supported) const {
  const uint32_t flavour = in.u32();
  const ConstBytes body = in.opaque(kAuthBodyMax);
  in.u32();  // the verifier of AUTH_SYS is AUTH_NONE; nothing in it matters to us
  in.opaque(kAuthBodyMax);
  if (!in.ok()) return false;
  supported = flavour == kAuthNone || flavour == kAuthSys;
  if (flavour != kAuthSys) return true;
  XdrReader sys(body);
  sys.u32();  // stamp
  sys.opaque(kMachineNameMax);
  who.uid = sys.u32();
  who.gid = sys.u32();
  who.group_count = sys.u32();
  if (!sys.ok() || who.group_count > kAuthSysGroupsMax) return false;
  for (uint32_t i = 0; i < who.group_count; ++i) who.groups[i] = sys.u32();
  return sys.ok();
}

void NfsService::accepted(Op& op, AcceptStat stat) const {
  op.out = XdrWriter(op.reply.head);
  op.out.u32(op.xid);
  op.out.u32(kMsgReply);
  op.out.u32(kMsgAccepted);
  op.out.u32(kAuthNone);
  op.out.u32(0);
  op.out.u32(static_cast<uint32_t>(stat));
}

void NfsService::mismatch(Op& op, uint32_t low, uint32_t high) const {
  accepted(op, AcceptStat::kProgMismatch);
  op.out.u32(low);
  op.out.u32(high);
  op.stat = Stat::kNotsupp;
}

void NfsService::rejected(Op& op, AuthStat why) const {
  op.out = XdrWriter(op.reply.head);
  op.out.u32(op.xid);
  op.out.u32(kMsgReply);
  op.out.u32(kMsgDenied);
  op.out.u32(kRejectAuthError);
  op.out.u32(static_cast<uint32_t>(why));
  op.stat = Stat::kPerm;
}

bool NfsService::handle(const CallMessage& call, ReplyMessage& reply, ServiceCounters& counters) {
  assert(reply.head.size() >= kReplyHeadSmall);
  reply.bulk_length = 0;
  reply.bulk_spans = 0;
  reply.data_call = false;
  reply.proc_index = kProcIndexOther;
  Op op{call, reply, XdrReader(call.head), XdrWriter(reply.head), {}, 0, 0, Stat::kOk, counters};
  op.xid = op.in.u32();
  const uint32_t direction = op.in.u32();
  const uint32_t rpc_version = op.in.u32();
  const uint32_t program = op.in.u32();
  const uint32_t version = op.in.u32();
  op.proc = op.in.u32();
  if (!op.in.ok() || direction != kMsgCall) {
    ++counters.bad_calls;
    return false;
  }
  if (program == kNfsProgram && op.proc < kNfsProcs) reply.proc_index = op.proc;
  if (program == kMountProgram && op.proc < kMountProcs) {
    reply.proc_index = kProcIndexMount + op.proc;
  }
  bool supported = false;
  if (rpc_version != kRpcVersion) {
    op.out.u32(op.xid);
    op.out.u32(kMsgReply);
    op.out.u32(kMsgDenied);
    op.out.u32(kRejectRpcMismatch);
    op.out.u32(kRpcVersion);
    op.out.u32(kRpcVersion);
    op.stat = Stat::kNotsupp;
  } else if (!parse_credentials(op.in, op.who, supported)) {
    rejected(op, AuthStat::kBadCred);
  } else if (!supported) {
    rejected(op, AuthStat::kRejectedCred);
  } else if (!faults_.any() || !refuse_by_fault(op, program)) {
    dispatch(op, program, version);
  }
  finish(op);
  return true;
}

void NfsService::finish(Op& op) {
  assert(op.out.ok() && "the head of a reply did not fit");
  op.reply.head_length = static_cast<uint32_t>(op.out.size());
  ++op.counters.calls[op.reply.proc_index];
  if (op.stat != Stat::kOk) ++op.counters.errors[op.reply.proc_index];
}

bool NfsService::refuse_by_fault(Op& op, uint32_t program) {
  const uint32_t index = op.reply.proc_index;
  if (program == kNfsProgram && faults_.fires(Fault::kProgMismatch, index)) {
    mismatch(op, 4, 4);
    return true;
  }
  if (program == kNfsProgram && faults_.fires(Fault::kAuthError, index)) {
    rejected(op, AuthStat::kBadCred);
    return true;
  }
  const bool unreserved = op.call.peer_port >= 1024;
  if (program == kNfsProgram && op.proc != 0 && unreserved &&
      faults_.fires(Fault::kDenyUnreserved, index)) {
    rejected(op, AuthStat::kTooWeak);
    return true;
  }
  return false;
}

void NfsService::dispatch(Op& op, uint32_t program, uint32_t version) {
  static constexpr Procedure kNfs[kNfsProcs] = {
      &NfsService::nfs_null,   &NfsService::nfs_getattr, &NfsService::nfs_setattr,
      &NfsService::nfs_lookup, &NfsService::nfs_access,  &NfsService::nfs_readlink,
      &NfsService::nfs_read,   &NfsService::nfs_write,   &NfsService::nfs_create,
      &NfsService::nfs_mkdir,  &NfsService::nfs_symlink, &NfsService::nfs_mknod,
      &NfsService::nfs_remove, &NfsService::nfs_rmdir,   &NfsService::nfs_rename,
      &NfsService::nfs_link,   &NfsService::nfs_readdir, &NfsService::nfs_readdirplus,
      &NfsService::nfs_fsstat, &NfsService::nfs_fsinfo,  &NfsService::nfs_pathconf,
      &NfsService::nfs_commit};
  static constexpr Procedure kMount[kMountProcs] = {
      &NfsService::mount_null, &NfsService::mount_mnt,     &NfsService::mount_dump,
      &NfsService::mount_umnt, &NfsService::mount_umntall, &NfsService::mount_export};
  constexpr uint32_t kPortmapGetport = 3;
  if (program == kNfsProgram) {
    if (version != kNfsVersion) return mismatch(op, kNfsVersion, kNfsVersion);
    if (op.proc < kNfsProcs) return run(op, kNfs[op.proc]);
  } else if (program == kMountProgram) {
    if (version != kMountVersion) return mismatch(op, kMountVersion, kMountVersion);
    if (op.proc < kMountProcs) return run(op, kMount[op.proc]);
  } else if (program == kPortmapProgram) {
    if (version != kPortmapVersion) return mismatch(op, kPortmapVersion, kPortmapVersion);
    if (op.proc == 0) return run(op, &NfsService::portmap_null);
    if (op.proc == kPortmapGetport) return run(op, &NfsService::portmap_getport);
  } else {
    op.stat = Stat::kNotsupp;
    return accepted(op, AcceptStat::kProgUnavail);
  }
  op.stat = Stat::kNotsupp;
  accepted(op, AcceptStat::kProcUnavail);
}

void NfsService::run(Op& op, Procedure procedure) {
  accepted(op, AcceptStat::kSuccess);
  if ((this->*procedure)(op)) return;
  accepted(op, AcceptStat::kGarbageArgs);
  op.stat = Stat::kInval;
}

Stat NfsService::get_ref(Op& op, Ref& ref) const {
  return store_.resolve(op.in.opaque(kHandleMax), ref);
}

void NfsService::reply_stat(Op& op, Stat stat) const {
  op.stat = stat;
  put_stat(op.out, stat);
}

/// True: the call has been answered with NFS3ERR_JUKEBOX.
bool NfsService::jukebox(Op& op, const Ref& ref, uint64_t offset) {
  if (!faults_.any() || ref.inode == nullptr) return false;
  if (!faults_.jukebox(op.reply.proc_index, ref.inode->index, offset)) return false;
  reply_stat(op, Stat::kJukebox);
  for (uint32_t i = 0; i < kAbsentWords[op.proc]; ++i) op.out.boolean(false);
  return true;
}

void NfsService::log(const Op& op, uint64_t offset, uint32_t count, uint32_t stable,
                     std::string_view name) {
  if (log_ == nullptr) return;
  log_->add({op.xid, op.call.peer_port, op.reply.proc_index, offset, count, stable, name});
}

}  // namespace nfsrdma::memd
