// SPDX-License-Identifier: GPL-2.0-or-later
// The data path of one job: I/Os become READ, WRITE and COMMIT calls over the job's connections,
// and come back as completions. What the words of fio mean in NFS is decided above; here are
// splitting at rtmax and wtmax, short results, JUKEBOX, write stability (RFC 1813 section 4.8),
// statistics, and waiting.
//
// One thread, its own. After the constructor nothing is allocated, locked or logged per I/O.
// Offsets and lengths in bytes.
//
// session.cc: set-up, waiting, completions; session_data.cc: READ and WRITE; session_commit.cc:
// COMMIT, fsync, resends; session_control.cc: calls of the control plane.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nfs3_data.h"
#include "rpc_caller.h"
#include "rpc_message.h"
#include "statistics.h"
#include "transport.h"
#include "write_back.h"

namespace nfsrdma {

enum class PollMode : uint8_t { kEvent, kBusy, kHybrid };

struct SessionConfig {
  uint32_t depth = 1;         ///< I/Os outstanding at most
  uint32_t rtmax = 1u << 20;  ///< largest READ and WRITE, as FSINFO says
  uint32_t wtmax = 1u << 20;
  PollMode poll = PollMode::kHybrid;
  uint64_t uncommitted_max = 0;       ///< kept data at most; 0: keeps none
  uint64_t commit_bytes = 64u << 20;  ///< kept data that bring a COMMIT by themselves
  uint32_t commit_ms = 5000;          ///< age of kept data that brings one
  bool soft = true;
  uint32_t timeo_ms = 60'000;
  uint32_t retrans = 2;
};

/// UNSTABLE writes whose data were not kept.
struct UnkeptWrites {
  uint64_t count = 0;
  WriteVerifier verifier = 0;
  bool mixed = false;  ///< they had several verifiers: some are lost already
};

/// An open file. Made by Session::open_file(), which owns it.
struct SessionFile {
  SessionFile(std::string file_name, const FileHandle& file_handle, KeptFile kept_file)
      : name(std::move(file_name)), handle(file_handle), kept(std::move(kept_file)) {}

  std::string name;  ///< for messages
  FileHandle handle;
  KeptFile kept;
  uint64_t kept_since_ns = 0;  ///< when the oldest kept byte was written
  UnkeptWrites unkept;         ///< since the last COMMIT was sent
  UnkeptWrites commit_unkept;  ///< that the COMMIT on its way covers
  bool commit_out = false;
  bool commit_wanted = false;
  uint64_t commit_stamp = 0;
  uint32_t resends = 0;                ///< of lost data, answered; a READ sent before is stale
  uint32_t commit_rounds = 0;          ///< COMMITs in a row that found lost data
  std::vector<uint32_t> sync_waiting;  ///< I/Os that wait for the next COMMIT
  std::vector<uint32_t> sync_covered;  ///< I/Os that wait for the one on its way
  bool unlinked = false;               ///< removed while open: nothing of it matters any more
  int write_error = 0;                 ///< of kept data that were given up; told by the next sync
};

enum class IoKind : uint8_t { kRead, kWrite, kSync };

/// An I/O that has ended.
struct IoCompletion {
  void* user = nullptr;
  int error = 0;       ///< errno value
  uint32_t bytes = 0;  ///< read or written from the start of the range
};

/// Hears when an I/O is really sent, for latencies that count from there.
class IssueSink {
 public:
  virtual void on_issued(void* user) = 0;

 protected:
  ~IssueSink() = default;
};

class Session final : public RpcCaller {
 public:
  /// `connections` are connected and belong to the session from here on. `statistics` is written
  /// to all the time and outlives the session.
  Session(const SessionConfig& config, std::vector<std::unique_ptr<Transport>> connections,
          const Credential& credential, SessionStatistics* statistics, IssueSink* issues);
  ~Session() override;

  /// Makes I/O memory, and with the first call the session's own, known to all connections.
  Result<void> add_memory(Bytes memory);

  /// Call slots that a session of this shape uses on each of its connections.
  static uint32_t slots_per_connection(const SessionConfig& config, uint32_t connections,
                                       uint64_t block_max);

  SessionFile* open_file(std::string name, const FileHandle& handle);
  /// Commits what is kept of the file, waits for it, and forgets the file. An error: data lost.
  Result<void> close_file(SessionFile* file);
  /// The file of that name is about to be removed: what is kept of it needs no COMMIT any more.
  void forget_unlinked(const std::string& name);

  /// Starts an I/O. False: `depth` I/Os are outstanding or complete and not taken. Nothing is sent
  /// before flush() or wait(), except that commit() sends once enough has gathered.
  bool read(void* user, SessionFile* file, uint64_t offset, Bytes to);
  /// UNSTABLE: data are kept until committed (or counted), the buffer is free at completion.
  /// `commit_after`: UNSTABLE, then COMMIT, before completion: what O_DIRECT does above wtmax.
  bool write(void* user, SessionFile* file, uint64_t offset, ConstBytes from, StableHow stable,
             bool commit_after);
  bool sync(void* user, SessionFile* file);

  /// Sends what has gathered if it is worth a send call, or nothing else is on its way.
  void commit();
  void flush();

  /// Sends what is left; then waits until `min` completions are ready, or `deadline_ns`. Returns
  /// how many are ready.
  uint32_t wait(uint32_t min, uint64_t deadline_ns);
  [[nodiscard]] uint32_t ready() const { return ready_count_; }
  /// The next completion; ready() says how many there are.
  IoCompletion take();

  /// A call of the control plane over the first connection; I/O goes on meanwhile.
  Result<ConstBytes> call(uint32_t program, uint32_t version, uint32_t procedure,
                          ConstBytes arguments, uint32_t reply_max) override;
  [[nodiscard]] uint32_t retransmissions() const override { return control_retransmissions_; }

  /// Gives up all that is outstanding, and whatever is not committed: for a server that does not
  /// answer any more. The I/Os complete with `error`; files are closed without a COMMIT.
  void abandon(const Error& error);

  /// The last error with its words, for the log; empty when none came since the last call.
  std::string take_error_text();

  /// Copies the transports' counters into the statistics.
  void update_counters();
  [[nodiscard]] TransportInfo info() const { return connections_.front()->transport->info(); }
  [[nodiscard]] uint32_t outstanding() const { return ios_used_; }
  /// Bytes kept or lost and not yet committed, over all files.
  [[nodiscard]] uint64_t uncommitted() const { return kept_.used(); }

 private:
  static constexpr uint32_t kNoIo = UINT32_MAX;

  struct Io {
    void* user = nullptr;
    SessionFile* file = nullptr;
    std::byte* buffer = nullptr;
    uint64_t offset = 0;
    uint32_t length = 0;
    uint32_t started = 0;  // bytes for which calls were made
    uint32_t calls = 0;    // calls on their way
    uint32_t good = 0;     // bytes from the start that are read or written
    int error = 0;
    IoKind kind = IoKind::kRead;
    StableHow stable = StableHow::kUnstable;
    bool kept = false;  // WRITE whose data go through WriteBack
    bool commit_after = false;
    bool verifier_seen = false;
    bool verifier_mixed = false;
    bool issued = false;
    bool listed = false;  // waits on waiting_ or stalled_
    uint8_t rounds = 0;
    WriteVerifier verifier = 0;
    uint64_t queued_ns = 0;
  };

  enum class CallKind : uint8_t { kRead, kWrite, kResend, kCommitFile, kCommitRange, kControl };

  struct CallState {
    CallKind kind = CallKind::kRead;
    uint8_t empty_replies = 0;  // in a row, without progress
    uint8_t delays = 0;         // JUKEBOX answers
    uint32_t io = kNoIo;
    SessionFile* file = nullptr;
    Extent* extent = nullptr;  // WRITE of kept data
    std::byte* data = nullptr;
    uint64_t offset = 0;
    uint32_t length = 0;
    uint32_t resends = 0;         // READ: its file's when it was sent
    bool unstable = false;        // WRITE of kept data: not all of it is stable,
    bool verifier_mixed = false;  // and its parts had several verifiers
    WriteVerifier verifier = 0;
    uint64_t stamp = 0;
    uint64_t queued_ns = 0;
    uint64_t sent_ns = 0;
  };

  struct Connection final : CallSink {
    Session* session = nullptr;
    uint32_t index = 0;
    std::unique_ptr<Transport> transport;
    std::vector<CallState> calls;
    void on_sent(uint32_t slot, uint64_t sent_ns) override;
    void on_reply(uint32_t slot, const Reply& reply) override;
  };

  enum class Progress : uint8_t {
    kStarted,
    kNoSlot,   // every slot is taken
    kStalled,  // a kept write has no room, or an overlapping WRITE is on its way
  };

  struct Delayed {
    Connection* connection;
    uint32_t slot;
    uint64_t due_ns;
  };

  struct Place {
    Connection* connection = nullptr;
    uint32_t slot = kNoSlot;
  };

  // session.cc
  static StatProcedure procedure_of(CallKind kind);
  uint32_t take_io(void* user, SessionFile* file, IoKind kind);
  void complete(uint32_t io);
  void end_unstarted(uint32_t io, const Error& error);
  Place place();
  std::byte* arguments(const Place& at) const;
  void prepare_head(const Place& at, NfsProcedure procedure);
  void submit(const Place& at, size_t arguments_length, ConstBytes out, Bytes in);
  void progress();
  void pump();
  bool sleep_receiving(uint64_t now, uint64_t until_ns);
  void sleep(uint64_t until_ns);
  void count(const CallState& call, const Reply& reply, bool failed, uint64_t bytes);
  void note_error(const std::string& text);
  void note_status(const CallState& call, uint32_t status);
  int reply_error(const Reply& reply, const CallState& call, size_t* results_at);
  std::string describe(const CallState& call) const;

  // session_data.cc
  void start(uint32_t io);
  Progress start_calls(uint32_t io);
  Progress start_next_call(uint32_t io);
  void put_aside(uint32_t io, Progress progress);
  void send_read(const Place& at);
  void send_write(const Place& at);
  void restart_waiting();
  void restart_stalled();
  void read_reply(Connection& connection, uint32_t slot, const Reply& reply);
  void write_reply(Connection& connection, uint32_t slot, const Reply& reply);
  void unstable_written(CallState& call, const WriteResult& result);
  void call_ended(uint32_t io);
  bool delay(Connection& connection, const CallState& call);
  void send_delayed(uint64_t now);
  void resubmit(const Place& at);

  // session_commit.cc
  void send_commit(const Place& at);
  void advance_commits(SessionFile& file);
  void commit_reply(Connection& connection, uint32_t slot, const Reply& reply);
  void file_committed(SessionFile& file, int error, WriteVerifier verifier);
  void range_committed(uint32_t io, int error, WriteVerifier verifier);
  void start_range_commit(uint32_t io);
  void finish_syncs(SessionFile& file, int error);
  void send_lost(SessionFile& file);
  void resend_failed(SessionFile& file, Extent* extent, int error);
  void commit_by_age(uint64_t now);
  void want_commits();
  void saw_verifier(WriteVerifier verifier);

  // session_control.cc
  void control_reply(Connection& connection, uint32_t slot, const Reply& reply);

  SessionConfig config_;
  SessionStatistics* statistics_;
  IssueSink* issues_;
  WriteBack kept_;
  bool kept_added_ = false;
  std::vector<std::unique_ptr<Connection>> connections_;
  uint32_t next_connection_ = 0;
  Credential credential_;
  size_t arguments_at_ = 0;  // in a head: behind the call header

  std::vector<Io> ios_;
  std::vector<uint32_t> free_ios_;
  uint32_t ios_used_ = 0;
  std::vector<uint32_t> waiting_;  // ring: I/Os whose calls found no slot, in order
  uint32_t waiting_head_ = 0;
  uint32_t waiting_count_ = 0;
  std::vector<uint32_t> stalled_;  // kept writes that wait for room or for an overlapping one
  bool stalled_changed_ = false;
  std::vector<Delayed> delayed_;
  uint64_t delayed_due_ns_ = kNever;

  std::vector<IoCompletion> ready_;  // ring
  uint32_t ready_head_ = 0;
  uint32_t ready_count_ = 0;

  std::vector<std::unique_ptr<SessionFile>> files_;
  bool commits_pending_ = false;  // some file has a COMMIT or resend to be sent
  uint64_t commit_check_ns_ = kNever;
  bool verifier_known_ = false;
  WriteVerifier verifier_ = 0;
  WriteVerifier previous_verifier_ = 0;

  uint32_t gathered_calls_ = 0;
  uint64_t gathered_bytes_ = 0;
  uint32_t on_wire_ = 0;
  uint64_t series_end_ns_ = 0;

  std::vector<pollfd> polls_;
  uint64_t expected_wait_ns_ = 0;  // of the last waits, the later the more it counts

  bool control_done_ = false;
  uint32_t control_retransmissions_ = 0;
  Error control_error_;
  std::vector<std::byte> control_reply_;
  size_t control_results_ = 0;
  std::string error_text_;
  bool abandoned_ = false;
};

}  // namespace nfsrdma
