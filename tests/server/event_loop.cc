// SPDX-License-Identifier: GPL-2.0-or-later
#include "event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "transport.h"  // now_ns()

namespace nfsrdma::memd {

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  std::unique_ptr<EventLoop> loop(new EventLoop);
  loop->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  loop->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  loop->timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (loop->epoll_ < 0 || loop->wake_ < 0 || loop->timer_ < 0) {
    return fail(errno, std::string("cannot make an event loop: ") + std::strerror(errno));
  }
  for (int* descriptor : {&loop->wake_, &loop->timer_}) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = descriptor;  // told apart from Pollables by address
    if (epoll_ctl(loop->epoll_, EPOLL_CTL_ADD, *descriptor, &event) != 0) {
      return fail(errno, std::string("cannot watch a descriptor: ") + std::strerror(errno));
    }
  }
  return loop;
}

EventLoop::~EventLoop() {
  clients_.clear();
  for (const int descriptor : {epoll_, wake_, timer_}) {
    if (descriptor >= 0) close(descriptor);
  }
}

void EventLoop::wake() {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the loop wakes anyway.
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
}

void EventLoop::stop() {
  stopping_ = true;
  wake();
}

void EventLoop::post(std::function<void()> task) {
  {
    const std::lock_guard<std::mutex> guard(tasks_mutex_);
    tasks_.push_back(std::move(task));
  }
  wake();
}

Result<void> EventLoop::watch(int descriptor, uint32_t events, Pollable* pollable) {
  epoll_event event = {};
  event.events = events;
  event.data.ptr = pollable;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
  return fail(errno, std::string("cannot watch a socket: ") + std::strerror(errno));
}

void EventLoop::rewatch(int descriptor, uint32_t events, Pollable* pollable) {
  epoll_event event = {};
  event.events = events;
  event.data.ptr = pollable;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event);
}

uint64_t EventLoop::adopt(std::unique_ptr<LoopClient> client) {
  const uint64_t id = next_client_++;
  clients_.emplace(id, std::move(client));
  return id;
}

void EventLoop::send_later(uint64_t client, uint64_t due_ns, std::vector<std::byte> record,
                           bool trickle) {
  delayed_.push({due_ns, next_order_++, client, trickle, std::move(record)});
}

void EventLoop::run_tasks() {
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard<std::mutex> guard(tasks_mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task();
}

void EventLoop::run_timers() {
  while (!delayed_.empty() && delayed_.top().due_ns <= now_ns()) {
    // The queue gives out const references only; the order does not depend on the record.
    auto& due = const_cast<Delayed&>(delayed_.top());
    std::vector<std::byte> record = std::move(due.record);
    const uint64_t id = due.client;
    const bool trickle = due.trickle;
    delayed_.pop();
    const auto client = clients_.find(id);
    if (client != clients_.end() && !client->second->dead()) {
      client->second->deliver(std::move(record), trickle);
    }
  }
}

void EventLoop::arm_timer() {
  if (delayed_.empty() || delayed_.top().due_ns == armed_ns_) return;
  const uint64_t due_ns = delayed_.top().due_ns;
  armed_ns_ = due_ns;
  constexpr uint64_t kSecond = 1'000'000'000;
  itimerspec at = {};
  at.it_value.tv_sec = static_cast<time_t>(due_ns / kSecond);
  at.it_value.tv_nsec = static_cast<long>(due_ns % kSecond);
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &at, nullptr);
}

void EventLoop::bury() {
  for (const uint64_t id : doubtful_) {
    const auto client = clients_.find(id);
    if (client != clients_.end() && client->second->dead()) clients_.erase(client);
  }
  doubtful_.clear();
}

void EventLoop::run() {
  constexpr int kEventsMax = 64;
  epoll_event events[kEventsMax];
  while (!stopping_) {
    const int count = epoll_wait(epoll_, events, kEventsMax, -1);
    for (int i = 0; i < count; ++i) {
      void* const what = events[i].data.ptr;
      if (what == &wake_ || what == &timer_) {
        uint64_t ticks;
        [[maybe_unused]] const ssize_t got = read(*static_cast<int*>(what), &ticks, sizeof ticks);
        if (what == &wake_) run_tasks();
        if (what == &timer_) armed_ns_ = 0;
      } else {
        static_cast<Pollable*>(what)->ready(events[i].events);
      }
    }
    if (!delayed_.empty()) {
      run_timers();
      arm_timer();
    }
    if (!doubtful_.empty()) bury();
  }
}

}  // namespace nfsrdma::memd
