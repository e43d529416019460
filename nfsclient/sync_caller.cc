// SPDX-License-Identifier: GPL-2.0-or-later
#include "sync_caller.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "recovery.h"

namespace nfsrdma {
namespace {

/// How long a transport may take to bring an abandoned call's buffers out of the peer's reach.
constexpr uint64_t kAbandonNs = 2'000 * kNsPerMs;

std::string seconds(uint32_t ms) {
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + " s";
  return std::to_string(ms) + " ms";
}

int poll_timeout_ms(uint64_t until_ns) {
  const uint64_t now = now_ns();
  if (until_ns <= now) return 0;
  constexpr uint64_t kLongestMs = 1000;  // Never sleeps long on a timer that was misjudged.
  return static_cast<int>(std::min((until_ns - now) / kNsPerMs + 1, kLongestMs));
}

}  // namespace

SyncCaller::SyncCaller(std::unique_ptr<Transport> transport, SyncCallerConfig config)
    : owned_(std::move(transport)), transport_(*owned_), config_(std::move(config)) {
  transport_.set_sink(this);
}

SyncCaller::SyncCaller(Transport& transport, SyncCallerConfig config)
    : transport_(transport), config_(std::move(config)) {
  transport_.set_sink(this);
}

SyncCaller::~SyncCaller() {
  if (owned_ == nullptr) {
    transport_.set_sink(nullptr);
  } else {
    owned_.reset();  // While on_reply() can still be called.
  }
}

void SyncCaller::on_sent(uint32_t /*slot*/, uint64_t /*sent_ns*/) {}

void SyncCaller::on_reply(uint32_t slot, const Reply& reply) {
  if (slot != slot_) return;  // A call that was given up before.
  slot_ = kNoSlot;
  retransmissions_ = reply.retransmissions;
  if (reply.error != nullptr) {
    error_ = *reply.error;
    return;
  }
  too_long_ = reply.head.size() > size_t{reply_max_} + kReplyHeaderMax;
  if (!too_long_) reply_.assign(reply.head.begin(), reply.head.end());
}

void SyncCaller::give_up(Error error) {
  transport_.abandon(error);
  const uint64_t deadline = now_ns() + kAbandonNs;
  while (slot_ != kNoSlot && now_ns() < deadline) {
    transport_.progress();
    pollfd wait{};
    if (slot_ != kNoSlot && transport_.prepare_wait(wait)) ::poll(&wait, 1, 1);
  }
  slot_ = kNoSlot;
  reply_.clear();
  error_ = std::move(error);
}

Error SyncCaller::timed_out(uint64_t bad_replies_before) const {
  std::string text = "no reply within " + seconds(config_.call_timeout_ms);
  if (transport_.counters().bad_replies > bad_replies_before) {
    text += "; what came back answers no call of ours: " + config_.server +
            " does not answer as an NFS server";
  }
  return {ETIMEDOUT, std::move(text)};
}

void SyncCaller::wait(uint64_t deadline_ns) {
  const uint64_t reconnects_before = transport_.counters().reconnects;
  const uint64_t bad_replies_before = transport_.counters().bad_replies;
  const uint64_t begin = now_ns();
  transport_.flush();
  while (slot_ != kNoSlot) {
    transport_.progress();
    if (slot_ == kNoSlot) return;
    if (stopped(config_.stop))
      return give_up(stopped_error("waiting for a reply, which had not come" +
                                   describe_wait(now_ns() - begin)));
    if (now_ns() >= deadline_ns) return give_up(timed_out(bad_replies_before));
    if (transport_.counters().reconnects - reconnects_before >= config_.dropped_connections_max) {
      return give_up({EPROTO, config_.server + " takes connections and drops them without a " +
                                  "reply: it does not answer as an NFS server"});
    }
    pollfd wait{};
    if (!transport_.prepare_wait(wait)) continue;
    ::poll(&wait, 1, poll_timeout_ms(std::min(deadline_ns, transport_.next_timer_ns())));
  }
}

Result<ConstBytes> SyncCaller::call(uint32_t program, uint32_t version, uint32_t procedure,
                                    ConstBytes arguments, uint32_t reply_max) {
  const std::string asked = rpc_procedure_name(program, procedure) + " (program " +
                            std::to_string(program) + " version " + std::to_string(version) +
                            ") of " + config_.server + ": ";
  retransmissions_ = 0;
  const uint32_t slot = transport_.acquire();
  if (slot == kNoSlot) return fail(ENOBUFS, asked + "the transport has no free call slot");

  XdrWriter writer(transport_.head(slot));
  encode_call_header(writer, transport_.xid(slot), program, version, procedure, config_.credential);
  writer.opaque_fixed(arguments);
  if (!writer.ok()) {
    transport_.release(slot);
    return fail(E2BIG, asked + std::to_string(arguments.size()) +
                           " bytes of arguments do not fit into a call");
  }
  slot_ = slot;
  reply_max_ = reply_max;
  too_long_ = false;
  error_ = {};
  reply_.clear();
  Call call;
  call.head_length = static_cast<uint32_t>(writer.size());
  call.reply_head_max = reply_max + kReplyHeaderMax;
  transport_.submit(slot, call);
  wait(now_ns() + config_.call_timeout_ms * kNsPerMs);

  if (error_.code != 0) return fail(error_.code, asked + error_.text);
  if (too_long_) {
    return fail(EPROTO, asked + "the reply has more than " + std::to_string(reply_max) + " bytes");
  }
  auto results = decode_reply_header(reply_);
  if (!results) {
    std::string text = asked + results.error().text;
    if (results.error().code == EPROTO) text += ": it does not answer as an NFS server";
    return fail(results.error().code, std::move(text));
  }
  const ConstBytes body = ConstBytes(reply_).subspan(*results);
  if (body.size() > reply_max) {
    return fail(EPROTO, asked + "the reply has more than " + std::to_string(reply_max) + " bytes");
  }
  return body;
}

}  // namespace nfsrdma
