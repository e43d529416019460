// SPDX-License-Identifier: GPL-2.0-or-later
// Calls of the control plane over the job's first connection.
#include <algorithm>
#include <cerrno>

#include "session.h"

namespace nfsrdma {

Result<ConstBytes> Session::call(uint32_t program, uint32_t version, uint32_t procedure,
                                 ConstBytes arguments, uint32_t reply_max) {
  if (program != kNfsProgram || version != kNfsVersion)
    return fail(EINVAL, "a session carries NFSv3 calls only");
  Connection* connection = connections_.front().get();
  Place at{connection, kNoSlot};
  while ((at.slot = connection->transport->acquire()) == kNoSlot) {
    progress();
    if ((at.slot = connection->transport->acquire()) != kNoSlot) break;
    sleep(kNever);
  }
  const Bytes head = connection->transport->head(at.slot);
  if (arguments_at_ + arguments.size() > head.size()) {
    connection->transport->release(at.slot);
    return fail(ENAMETOOLONG,
                rpc_procedure_name(program, procedure) + ": the arguments do not fit into a call");
  }
  CallState& call = connection->calls[at.slot];
  call = CallState{};
  call.kind = CallKind::kControl;
  call.queued_ns = now_ns();
  prepare_head(at, static_cast<NfsProcedure>(procedure));
  std::ranges::copy(arguments, head.begin() + static_cast<ptrdiff_t>(arguments_at_));

  control_done_ = false;
  Call request;
  request.head_length = static_cast<uint32_t>(arguments_at_ + arguments.size());
  request.reply_head_max = reply_max + kReplyHeaderMax;
  connection->transport->submit(at.slot, request);
  ++gathered_calls_;
  flush();
  while (!control_done_) {
    progress();
    if (!control_done_) sleep(kNever);
  }
  if (control_error_.code != 0)
    return fail(control_error_.code,
                rpc_procedure_name(program, procedure) + ": " + control_error_.text);
  const ConstBytes results = ConstBytes(control_reply_).subspan(control_results_);
  if (results.size() > reply_max)
    return fail(EPROTO, rpc_procedure_name(program, procedure) + ": a reply of " +
                            std::to_string(results.size()) + " bytes where at most " +
                            std::to_string(reply_max) + " were expected");
  return results;
}

void Session::control_reply(Connection& connection, uint32_t slot, const Reply& reply) {
  count(connection.calls[slot], reply, reply.error != nullptr, 0);
  control_done_ = true;
  control_error_ = {};
  control_retransmissions_ = reply.retransmissions;
  if (reply.error != nullptr) {
    control_error_ = *reply.error;
    return;
  }
  auto results = decode_reply_header(reply.head);
  if (!results) {
    control_error_ = results.error();
    return;
  }
  control_results_ = *results;
  control_reply_.assign(reply.head.begin(), reply.head.end());
}

}  // namespace nfsrdma
