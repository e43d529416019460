// SPDX-License-Identifier: GPL-2.0-or-later
// The transport interface: what carries an RPC call and its reply (RFC 5531), over TCP
// (RFC 5531 section 11) or RPC-over-RDMA (RFC 8166). A transport knows no NFS.
//
// A call is an encoded head and at most one bulk buffer, out (the data of a WRITE, which follow
// the head) or in (the data of a READ). A transport owns a fixed array of call slots, each with
// room for one head; the xid names slot and generation, so a reply finds its call without a
// search, and a late, repeated or forged xid is refused.
//
// Life of a call: acquire() a slot, write its head with the transport's xid as first word,
// submit() it, flush(). The sink hears on_sent() when the last byte has left and on_reply() once,
// with the reply or with an error; after that the slot is free. Between submit() and on_reply()
// the bulk buffer belongs to the transport, which never touches it afterwards: a call that is
// given up is reported only when its buffer is out of the peer's reach.
//
// Threads: a transport and its sink belong to one thread. Nothing is allocated, locked or logged
// per call. Times are nanoseconds of CLOCK_MONOTONIC, as now_ns() gives them.
#pragma once

#include <poll.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "result.h"
#include "xdr.h"

namespace nfsrdma {

inline uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

/// Turns true when waits of whoever has it shall end, from a signal handler or another thread.
/// Null: never.
using StopFlag = const volatile bool*;
inline bool stopped(StopFlag stop) {
  return stop != nullptr && *stop;
}
/// What such a wait ends with.
inline Error stopped_error(const std::string& while_doing) {
  return {EINTR, "told to end while " + while_doing};
}

constexpr uint32_t kNoSlot = UINT32_MAX;
constexpr uint64_t kNever = UINT64_MAX;

/// Where the bulk data of a reply begin, asked of the protocol above while a reply comes in.
/// `reply` is the first bytes of the message, from the xid on.
/// Returns  > 0  the bulk data begin at this offset, their length is the XDR word before it
///          = 0  cannot tell yet: more bytes are needed
///          < 0  this reply has no bulk data (an error, say): all of it is head
using SplitReply = int (*)(ConstBytes reply);

/// What submit() is told of a call. Spans must stay valid until on_reply().
struct Call {
  uint32_t head_length = 0;       ///< bytes written to head(slot); a multiple of 4
  ConstBytes bulk_out;            ///< follows the head on the wire, padded by the transport
  Bytes bulk_in;                  ///< receives the reply's bulk data
  SplitReply split = nullptr;     ///< required when bulk_in is not empty
  uint32_t reply_head_max = 512;  ///< most bytes of reply apart from bulk data; RDMA offers a
                                  ///< Reply chunk when this could exceed the inline size
};

struct Reply {
  const Error* error = nullptr;  ///< set: no reply will come; the other fields are empty
  ConstBytes head;               ///< from the xid on, without bulk data; valid during on_reply()
  uint32_t bulk_length = 0;      ///< bytes of bulk data placed at the start of bulk_in
  uint32_t retransmissions = 0;  ///< how often the call was sent again
  uint64_t received_ns = 0;
};

/// Implemented by whoever makes calls.
class CallSink {
 public:
  /// The call's last byte has been handed to the network. Once a call, for the first sending only.
  virtual void on_sent(uint32_t slot, uint64_t sent_ns) = 0;
  /// The call has ended; its slot is free already, so acquire() and submit() may be called here.
  virtual void on_reply(uint32_t slot, const Reply& reply) = 0;

 protected:
  ~CallSink() = default;
};

enum class ReservedPort { kAuto, kYes, kNo };

/// Everything a transport is told when it is made. Lengths in bytes.
struct TransportConfig {
  std::string host;  ///< name or address, also for messages
  uint16_t port = 0;
  std::string local_address;  ///< source address; empty: the kernel's choice
  ReservedPort reserved_port = ReservedPort::kAuto;

  uint32_t slots = 64;                 ///< calls outstanding at most, 1 to kSlotsMax
  uint32_t head_max = 1536;            ///< largest call head
  uint32_t bulk_max = 1u << 20;        ///< largest bulk buffer of a call, in or out
  uint32_t reply_head_max = 1u << 16;  ///< largest reply apart from its bulk data

  uint32_t timeo_ms = 60'000;  ///< nfs(5) timeo: first wait for a reply before sending again
  uint32_t retrans = 2;        ///< nfs(5) retrans: sendings again before a major timeout
  bool soft = true;            ///< a major timeout ends the call with ETIMEDOUT; else try for ever
  uint32_t connect_timeout_ms = 10'000;
  StopFlag stop = nullptr;  ///< ends the wait for the first connection with EINTR

  bool split_marker = false;  ///< TCP: the record marker in a send call of its own
};

constexpr uint32_t kSlotsMax = 1u << 16;

/// Counters since the transport was made; read by its own thread.
struct TransportCounters {
  uint64_t connects = 0;       ///< the first connection
  uint64_t reconnects = 0;     ///< connections after the first
  uint64_t credit_stalls = 0;  ///< calls that had to wait for a credit
  uint64_t send_calls = 0;     ///< system calls, or doorbells, that sent
  uint64_t recv_calls = 0;     ///< system calls, or polls, that received
  uint64_t bad_replies = 0;    ///< replies dropped: unknown, late or repeated xid
  uint32_t depth_max = 0;      ///< most calls on the wire at once
};

/// What was agreed with the server, for the summary and for stats_json: names are fixed, values
/// are text or decimal numbers.
struct TransportInfo {
  std::string transport;  ///< "tcp" or "rdma"
  std::string fabric;     ///< "verbs", "iwarp" or empty
  std::string server;     ///< numeric address and port
  std::vector<std::pair<std::string, std::string>> negotiated;
};

class Transport {
 public:
  virtual ~Transport() = default;
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual void set_sink(CallSink* sink) = 0;

  /// Makes memory that will hold bulk buffers known to the transport, before the first call that
  /// uses it. RDMA registers it; it stays known until the transport is destroyed.
  virtual Result<void> add_memory(Bytes memory) = 0;

  /// A free slot, or kNoSlot.
  virtual uint32_t acquire() = 0;
  /// Gives back a slot that was not submitted.
  virtual void release(uint32_t slot) = 0;
  /// Where the head of the slot's call is written; head_max bytes. Keeps what was there.
  virtual Bytes head(uint32_t slot) = 0;
  /// The xid that the head must begin with; changes with every acquire().
  virtual uint32_t xid(uint32_t slot) const = 0;
  /// Queues the call behind those submitted before. Sends nothing yet.
  virtual void submit(uint32_t slot, const Call& call) = 0;

  /// Sends as many queued calls as connection and credits allow, in order, without waiting.
  virtual void flush() = 0;
  /// Takes in what has arrived, sends what can be sent, runs timers, reconnects. Never waits.
  /// Returns the number of calls that ended.
  virtual uint32_t progress() = 0;

  /// Calls submitted and not ended.
  virtual uint32_t outstanding() const = 0;
  /// Calls queued and not sent.
  virtual uint32_t unsent() const = 0;

  /// Fills in what to poll for before sleeping. False: something is there already, call
  /// progress() instead of sleeping.
  virtual bool prepare_wait(pollfd& wait) = 0;
  /// Sleeps in the receive call itself until something has come, which the next progress() takes
  /// in, or until about 20 ms later: cheaper than poll(2) and a receive call. False: no sleep,
  /// because there is no such call, something else than a message is waited for, or `until_ns` or a
  /// timer comes sooner than that; then it is prepare_wait() and poll(2).
  virtual bool sleep_receiving(uint64_t now_ns, uint64_t until_ns) {
    static_cast<void>(now_ns);
    static_cast<void>(until_ns);
    return false;
  }
  /// When progress() must be called next though nothing arrives, or kNever.
  virtual uint64_t next_timer_ns() const = 0;

  /// Ends every outstanding call with `error`, after its buffer is out of the peer's reach.
  virtual void abandon(const Error& error) = 0;

  virtual const TransportCounters& counters() const = 0;
  virtual TransportInfo info() const = 0;
};

}  // namespace nfsrdma
