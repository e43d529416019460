// SPDX-License-Identifier: GPL-2.0-or-later
// The fabric interface: what RPC-over-RDMA (RFC 8166 section 2) asks of an RDMA provider. Words
// are those of RFC 5040 and of verbs. Two providers fit behind it: verbs (a reliable connection
// through librdmacm and libibverbs) and iwarp (MPA, DDP and RDMAP over a TCP socket, in user
// space). Nothing above this file knows which one it has.
//
// Objects
//   Fabric      a protection domain: owns registered memory, makes connections and listeners.
//               Registrations outlive connections: a reconnect registers nothing.
//   Connection  one reliable connection. Reusable: after close(), start_connect() again.
//   Listener    hands out Connections that ask to be accepted.
// A Fabric outlives all that was made from it.
//
// Life of a client's connection: make_connection(), start_connect(), then poll() until it reports
// kEstablished or kDisconnected; post_*(), ring(), poll(); close(). Life of a server's: listen(),
// Listener::poll() gives a Connection in state kRequested, accept() or reject(), then the same.
//
// Ownership: memory in a posted operation belongs to the connection until the completion of that
// operation, or until close() has returned. The spans that describe it are copied by the call.
// A receive buffer belongs to the connection from post_receive() until its kReceive.
//
// Order: Sends and Writes take effect at the peer in the order of posting, so a Send that follows
// a Write tells the peer that the Write's bytes are there. A Read may be overtaken by a later Send
// or Write. Completions of Sends and Writes come in the order of posting, those of Reads too;
// nothing else is ordered: the reply's kReceive may come before the kSendDone of its call.
//
// Errors: functions that return Result fail with an errno value and one line for the user.
// post_*() return false when the connection is not established, a queue is full or a limit is
// exceeded; nothing has happened then. An established connection that fails reports one
// kDisconnected, after every completion that came before it, and then nothing more: operations
// without a completion are given back by close(). error() says why, in words.
//
// Threads: a Fabric and what was made from it belong to one thread at a time; distinct Fabrics
// share nothing. A Connection in state kRequested may move to another thread, with a Fabric of that
// thread given to accept(). Nothing blocks, except where said. After set-up nothing is allocated,
// locked or logged.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "result.h"
#include "xdr.h"

namespace nfsrdma {

/// What the peer may do with registered memory; a set of bits. Our own side may always read
/// registered memory as the source of Sends and Writes.
enum class Access : uint32_t {
  kNone = 0,         ///< source of Sends and Writes only
  kLocalWrite = 1,   ///< receive buffers, sinks of Reads
  kRemoteRead = 2,   ///< the peer may read it: Read chunks (RFC 8166 section 4.3.1)
  kRemoteWrite = 4,  ///< the peer may write it: Write and Reply chunks; brings kLocalWrite
};
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr bool has(Access set, Access bits) {
  return (static_cast<uint32_t>(set) & static_cast<uint32_t>(bits)) == static_cast<uint32_t>(bits);
}

/// A registered region of one Fabric. Small, dense numbers.
using RegionId = uint32_t;
constexpr RegionId kNoRegion = UINT32_MAX;

/// A key that the peer names memory by: RFC 5040's STag, verbs' rkey, RFC 8166's handle.
using RemoteKey = uint32_t;

/// Memory of the other side: what an RDMA segment of RFC 8166 holds apart from its length.
struct RemoteMemory {
  RemoteKey key = 0;
  uint64_t address = 0;  ///< tagged offset or virtual address, whichever the fabric counts in
};

/// Memory of ours in an operation. `region` holds all of it.
struct LocalSpan {
  std::byte* address = nullptr;  ///< only read from by Sends and Writes
  uint32_t length = 0;
  RegionId region = kNoRegion;
};

enum class CompletionKind : uint8_t {
  kEstablished,   ///< set-up has ended well; the first completion of a connection
  kReceive,       ///< a Send of the peer is in a receive buffer
  kSendDone,      ///< the memory of a Send is ours again
  kWriteDone,     ///< the memory of a Write is ours again; says nothing of the peer's memory
  kReadDone,      ///< the bytes of a Read are in their sink
  kUnbound,       ///< unbind_key() that returned false: the key is dead now
  kDisconnected,  ///< set-up failed or the connection ended: see error(). Nothing follows
};

struct Completion {
  CompletionKind kind = CompletionKind::kDisconnected;
  bool invalidated = false;  ///< kReceive: it was a Send with Invalidate; `key` is dead
  uint32_t buffer = 0;       ///< kReceive: number of the receive buffer, from 0
  uint32_t bytes = 0;        ///< kReceive: length of the message
  RemoteKey key = 0;         ///< kReceive with `invalidated`: a key of ours
  uint64_t context = 0;      ///< what the posting call was given
};

/// Bits of post_send() and post_write().
constexpr uint32_t kSolicited = 1;   ///< Send with Solicited Event
constexpr uint32_t kInvalidate = 2;  ///< Send with Invalidate: `key` names memory of the peer
/// No completion of its own: that of a later Send or Write covers it. A Send or Write without this
/// bit must follow before the queue (send_depth) is full.
constexpr uint32_t kQuiet = 4;

/// Sizes of a connection, fixed when it is made. Lengths in bytes.
struct ConnectionConfig {
  uint32_t send_depth = 128;  ///< Sends and Writes posted and not completed, at most
  uint32_t read_depth = 0;    ///< Reads posted and not completed, at most; 0: never reads
  uint32_t key_count = 0;     ///< keys bound at once (bind_key), at most

  /// Receive buffers: `receive_count` buffers of `receive_size` each, numbered from 0 at the start
  /// of `receive_memory`, which lies in `receive_region` (kLocalWrite). All are posted before
  /// set-up begins, again with each start_connect().
  Bytes receive_memory;
  RegionId receive_region = kNoRegion;
  uint32_t receive_count = 0;
  uint32_t receive_size = 0;

  uint32_t ird = 1;  ///< Reads of the peer that we answer at once (inbound), at least 1
  uint32_t ord = 0;  ///< Reads of ours outstanding (outbound); cut to the peer's IRD
};

/// Private data of connection set-up: what fits every fabric (RFC 8797 uses 8).
constexpr uint32_t kPrivateDataMax = 56;

struct ConnectRequest {
  sockaddr_storage peer = {};   ///< numeric address and port
  sockaddr_storage local = {};  ///< source address; ss_family AF_UNSPEC: the fabric's choice
  std::string peer_name;        ///< host as the user wrote it, for messages; may be empty
  ConstBytes private_data;      ///< at most kPrivateDataMax; copied
  uint32_t timeout_ms = 2'000;  ///< all of set-up; ETIMEDOUT after it
};

enum class ConnectionState : uint8_t {
  kIdle,         ///< made, or closed
  kRequested,    ///< from a Listener: waits for accept() or reject()
  kConnecting,   ///< set-up runs, poll() drives it
  kEstablished,  ///< operations may be posted
  kFailed,       ///< kDisconnected was, or is about to be, reported; only close() is left
};

/// What a connection allows; what depends on the peer is right once established.
struct ConnectionLimits {
  uint32_t inline_max = 0;   ///< Sends up to this length are copied when posted (0: none)
  uint32_t gather_max = 0;   ///< spans of a Send or Write
  uint32_t message_max = 0;  ///< length of a Send, Write or Read
  uint32_t ird = 0;          ///< as agreed
  uint32_t ord = 0;          ///< as agreed; Reads beyond it wait in order
};

struct FabricCounters {
  uint64_t send_calls = 0;  ///< system calls, or doorbells, that sent
  uint64_t recv_calls = 0;  ///< system calls, or polls of the queue, that received
};

class Fabric;

class Connection {
 public:
  virtual ~Connection() = default;  ///< as close()
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Begins set-up; kIdle only. Fails at once only for what can't be tried; else poll() reports
  /// kEstablished or kDisconnected (refused, rejected with its reason, timed out, ...).
  virtual Result<void> start_connect(const ConnectRequest& request) = 0;

  /// kRequested only. `fabric` and `config` are those that the connection has from then on (of the
  /// calling thread). Private data at most kPrivateDataMax. poll() reports as above.
  virtual Result<void> accept(Fabric& fabric, const ConnectionConfig& config,
                              ConstBytes private_data) = 0;
  /// kRequested only. The peer's connect fails; `private_data` tells it why. The state is kIdle
  /// afterwards.
  virtual void reject(ConstBytes private_data) = 0;

  /// Private data that came with the peer's request (server) or reply (client; also with a
  /// rejection). Valid until close().
  virtual ConstBytes peer_private_data() const = 0;

  virtual ConnectionState state() const = 0;
  /// Why the state is kFailed.
  virtual const Error& error() const = 0;
  virtual const ConnectionLimits& limits() const = 0;

  /// Gives receive buffer `buffer` (its kReceive was seen) back to the fabric. In force at the
  /// next ring() or poll(), before any Send posted after it.
  virtual bool post_receive(uint32_t buffer) = 0;

  /// Operations. They are handed over, in one batch, by the next ring().
  /// Send: one message, at most the peer's receive size. `key` with kInvalidate only.
  virtual bool post_send(uint64_t context, std::span<const LocalSpan> gather, uint32_t flags = 0,
                         RemoteKey key = 0) = 0;
  /// RDMA Write to memory of the peer; kQuiet is the only flag.
  virtual bool post_write(uint64_t context, std::span<const LocalSpan> gather, RemoteMemory sink,
                          uint32_t flags = 0) = 0;
  /// RDMA Read from memory of the peer into one span of ours (its region: kLocalWrite). Never
  /// quiet. The number outstanding is bounded by the fabric.
  virtual bool post_read(uint64_t context, LocalSpan sink, RemoteMemory source) = 0;
  /// The doorbell. What the network does not take now goes out with later ring() or poll() calls.
  virtual void ring() = 0;

  /// Takes in what has arrived, sends what waits, drives set-up, runs timers. Never waits. Fills in
  /// at most completions.size() (at least 1) and returns how many.
  virtual uint32_t poll(std::span<Completion> completions) = 0;

  /// Fills in what to poll(2) for before sleeping, as Transport::prepare_wait(). False: something
  /// may be there already, call poll() instead. True arms the fabric's wake-up for one sleep.
  virtual bool prepare_wait(pollfd& wait) = 0;
  /// As Transport::sleep_receiving(); poll() takes in what has come. Completions of Sends and
  /// Writes that are there already are no reason not to sleep.
  virtual bool sleep_receiving(uint64_t now_ns, uint64_t until_ns) {
    static_cast<void>(now_ns);
    static_cast<void>(until_ns);
    return false;
  }
  /// When poll() must be called next though nothing arrives (now_ns() of transport.h), or
  /// UINT64_MAX.
  virtual uint64_t next_timer_ns() const = 0;

  /// A key for `memory` (inside `region`, whose access includes `access`) that only this connection
  /// honours. In force before any Send posted after it. Fails when key_count keys are bound.
  /// A bound key dies by unbind_key(), by the peer's Send with Invalidate, or by close().
  virtual Result<RemoteMemory> bind_key(RegionId region, ConstBytes memory, Access access) = 0;
  /// True: the peer can't use the key any more. False: it can until kUnbound, with `context`, is
  /// polled. Not for keys that the peer invalidated: those are gone.
  virtual bool unbind_key(RemoteKey key, uint64_t context) = 0;

  /// Ends the connection, or its set-up. When it returns the peer can no longer read or write any
  /// memory of ours through it, no operation is outstanding, nothing will be reported and every key
  /// bound is dead. May take as long as the device takes to drain its queues. The state is kIdle.
  virtual void close() = 0;

  /// Numeric address and port, "127.0.0.1:20049" or "[::1]:20049"; empty when not connected.
  virtual std::string peer_address() const = 0;
  virtual std::string local_address() const = 0;
  /// What the fabric agreed with the peer, for the summary: ("ird", "16"), ("crc", "on"), ...
  virtual std::vector<std::pair<std::string, std::string>> negotiated() const = 0;
  /// Over all connections that this object has had.
  virtual const FabricCounters& counters() const = 0;
};

struct ListenConfig {
  sockaddr_storage local = {};        ///< address and port; port 0: a free one
  uint32_t backlog = 128;             ///< connections that the system keeps for us
  uint32_t half_open_max = 64;        ///< set-ups that have not yet shown their request
  uint32_t setup_timeout_ms = 2'000;  ///< from a peer's first byte until kEstablished
};

class Listener {
 public:
  virtual ~Listener() = default;  ///< stops listening; connections handed out live on
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// The port, also when port 0 was asked for.
  virtual uint16_t port() const = 0;
  /// Drives set-ups. The next connection in state kRequested, or null when there is none now.
  virtual std::unique_ptr<Connection> poll() = 0;
  /// As Connection's.
  virtual bool prepare_wait(pollfd& wait) = 0;
  virtual uint64_t next_timer_ns() const = 0;
};

/// How a Fabric carries out bind_key().
enum class KeyPerCall : uint8_t {
  kTableEntry,    ///< iwarp: an entry of the STag table
  kMemoryWindow,  ///< verbs: memory window type 2, bound and invalidated on the connection
  kRegistration,  ///< verbs without windows: ibv_reg_mr and ibv_dereg_mr, slow
};
constexpr std::string_view to_string(KeyPerCall how) {
  switch (how) {
    case KeyPerCall::kTableEntry:
      return "table entry";
    case KeyPerCall::kMemoryWindow:
      return "memory window type 2";
    case KeyPerCall::kRegistration:
      return "register and deregister";
  }
  return "";
}

/// Made by make_iwarp_fabric() (iwarp_fabric.h) or the verbs fabric's own function; its device is
/// known from then on.
class Fabric {
 public:
  virtual ~Fabric() = default;
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// "iwarp" or "verbs".
  virtual std::string_view name() const = 0;
  /// The device, "siw0" say; empty where there is none.
  virtual std::string device() const = 0;

  /// Registers memory, until deregister_memory() or the end of the Fabric. Slow: once a range, not
  /// per operation. A refusal for want of lockable memory names the bytes wanted and `ulimit -l`.
  virtual Result<RegionId> register_memory(Bytes memory, Access access) = 0;
  /// The peers can't use it any more when this returns. Close connections first on which an
  /// operation, a key bound in it or a Read of the peer may use it.
  virtual void deregister_memory(RegionId region) = 0;
  /// Names `at`, inside `region`, to a peer: the key of the whole region, which every connection
  /// of this Fabric honours. Valid until the region is deregistered. Cheap.
  virtual RemoteMemory remote_memory(RegionId region, const std::byte* at) const = 0;

  virtual KeyPerCall key_per_call() const = 0;
  /// Whether the peer's Send with Invalidate can kill a bound key (RFC 8797's flag). Keys of whole
  /// regions never can be invalidated by the peer: with those the flag stays clear.
  virtual bool remote_invalidation() const = 0;

  virtual Result<std::unique_ptr<Connection>> make_connection(const ConnectionConfig& config) = 0;
  virtual Result<std::unique_ptr<Listener>> listen(const ListenConfig& config) = 0;
};

}  // namespace nfsrdma
