// SPDX-License-Identifier: GPL-2.0-or-later
// One thread that waits on many descriptors, with timers; connections live on one loop each.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <unordered_map>
#include <vector>

#include "result.h"
#include "service.h"

namespace nfsrdma::memd {

/// What a loop waits for.
class Pollable {
 public:
  virtual ~Pollable() = default;
  /// `events` as epoll reports them. On the loop's thread.
  virtual void ready(uint32_t events) = 0;
};

/// A connection as its loop sees it.
class LoopClient : public Pollable {
 public:
  /// A record put off by EventLoop::send_later() is due.
  virtual void deliver(std::vector<std::byte> record, bool trickle) = 0;
  /// True: the loop destroys it after this round of events.
  [[nodiscard]] virtual bool dead() const = 0;
};

class EventLoop {
 public:
  static Result<std::unique_ptr<EventLoop>> create();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Runs until stop(). The thread that calls it is the loop's thread.
  void run();

  // From any thread:
  void stop();
  /// Runs `task` on the loop's thread, soon.
  void post(std::function<void()> task);

  // From the loop's thread (or before run()):
  Result<void> watch(int descriptor, uint32_t events, Pollable* pollable);
  void rewatch(int descriptor, uint32_t events, Pollable* pollable);
  uint64_t adopt(std::unique_ptr<LoopClient> client);
  /// Hands `record` to the client's deliver() at `due_ns`; dropped if the client is gone by then.
  void send_later(uint64_t client, uint64_t due_ns, std::vector<std::byte> record, bool trickle);
  /// Client `client` may be dead: look after this round.
  void check(uint64_t client) { doubtful_.push_back(client); }

  ServiceCounters counters;
  uint64_t send_calls = 0;
  uint64_t recv_calls = 0;

 private:
  struct Delayed {
    uint64_t due_ns = 0;
    uint64_t order = 0;  ///< equal times keep their order
    uint64_t client = 0;
    bool trickle = false;
    std::vector<std::byte> record;
    bool operator<(const Delayed& other) const {
      return due_ns != other.due_ns ? due_ns > other.due_ns : order > other.order;
    }
  };

  EventLoop() = default;
  void wake();
  void run_tasks();
  void run_timers();
  void arm_timer();
  void bury();

  int epoll_ = -1;
  int wake_ = -1;
  int timer_ = -1;
  std::atomic<bool> stopping_{false};
  std::mutex tasks_mutex_;
  std::vector<std::function<void()>> tasks_;
  uint64_t next_client_ = 1;
  uint64_t next_order_ = 0;
  uint64_t armed_ns_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<LoopClient>> clients_;
  std::vector<uint64_t> doubtful_;
  std::priority_queue<Delayed> delayed_;
};

}  // namespace nfsrdma::memd
