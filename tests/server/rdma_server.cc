// SPDX-License-Identifier: GPL-2.0-or-later
#include "rdma_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "iwarp_fabric.h"
#include "tcp_socket.h"
#include "verbs_fabric.h"

namespace nfsrdma::memd {
namespace {

constexpr uint32_t kStagingSmall = 512;
constexpr uint32_t kStagingLarge = 64;
constexpr size_t kConnectionsMax = 1024;
constexpr uint64_t kSleepMaxNs = 1'000'000'000;

Result<std::unique_ptr<Fabric>> make_fabric(const RdmaServerOptions& options,
                                            const SocketAddress& address) {
  if (!options.verbs) return make_iwarp_fabric({.crc = options.crc});
  VerbsOptions verbs;
  verbs.local = address.storage;
  verbs.reads = true;
  return make_verbs_fabric(verbs);
}

}  // namespace

// One thread and its connections. Only the mailbox is touched by others.
class RdmaServer::Worker {
 public:
  Worker(RdmaServer& server, int wake, std::unique_ptr<Fabric> fabric)
      : server_(server),
        wake_(wake),
        fabric_(std::move(fabric)),
        shared_{server.options_, server.service_, server.faults_, *fabric_, {}, false, {}, {}, {}} {
  }
  ~Worker() {
    connections_.clear();
    mailbox_.clear();
    close(wake_);
  }

  Result<void> prepare() {
    shared_.reply_head = std::make_unique_for_overwrite<std::byte[]>(kReplyHeadMax);
    return shared_.staging.make(*fabric_, kStagingSmall, kStagingLarge);
  }
  void wake() {
    const uint64_t one = 1;
    if (write(wake_, &one, sizeof one) < 0) return;  // it is awake already
  }
  void post(std::unique_ptr<Connection> connection) {
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      mailbox_.push_back(std::move(connection));
    }
    wake();
  }
  void run();
  [[nodiscard]] const ServiceCounters& counters() const { return shared_.counters; }

 private:
  void adopt();
  void progress_all();
  void sleep();

  RdmaServer& server_;
  const int wake_;
  std::unique_ptr<Fabric> fabric_;
  RdmaShared shared_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> mailbox_;
  struct Client {
    std::unique_ptr<RdmaConnection> connection;
    bool ready = true;
  };
  std::vector<Client> connections_;
  std::vector<pollfd> polled_;
};

void RdmaServer::Worker::run() {
  while (!server_.stopping_.load()) {
    if (this == server_.workers_.front().get()) server_.accept_all();
    adopt();
    progress_all();
    sleep();
  }
  connections_.clear();
}

void RdmaServer::Worker::adopt() {
  std::vector<std::unique_ptr<Connection>> fresh;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    fresh.swap(mailbox_);
  }
  for (auto& connection : fresh) {
    if (connections_.size() >= kConnectionsMax) continue;
    auto client = std::make_unique<RdmaConnection>(std::move(connection), shared_);
    if (client->accept()) connections_.push_back({std::move(client), true});
  }
}

void RdmaServer::Worker::progress_all() {
  const uint64_t now = now_ns();
  for (Client& client : connections_) {
    if (client.ready || client.connection->next_timer_ns() <= now) client.connection->progress(now);
  }
  while (shared_.staging_freed) {
    shared_.staging_freed = false;
    for (Client& client : connections_) {
      if (!client.connection->dead() && client.connection->starved()) client.connection->resume();
    }
  }
  std::erase_if(connections_, [](const Client& client) { return client.connection->dead(); });
}

void RdmaServer::Worker::sleep() {
  const uint64_t now = now_ns();
  uint64_t until = now + kSleepMaxNs;
  polled_.clear();
  polled_.push_back({.fd = wake_, .events = POLLIN, .revents = 0});
  pollfd listener{.fd = -1, .events = 0, .revents = 0};
  if (this == server_.workers_.front().get()) {
    if (!server_.listener_->prepare_wait(listener)) until = now;
    until = std::min(until, server_.listener_->next_timer_ns());
  }
  polled_.push_back(listener);
  for (Client& client : connections_) {
    pollfd wait{.fd = -1, .events = 0, .revents = 0};
    client.ready = !client.connection->prepare_wait(wait);
    if (client.ready) until = now;
    until = std::min(until, client.connection->next_timer_ns());
    polled_.push_back(wait);
  }
  const timespec left{.tv_sec = static_cast<time_t>((std::max(until, now) - now) / 1'000'000'000),
                      .tv_nsec = static_cast<long>((std::max(until, now) - now) % 1'000'000'000)};
  if (ppoll(polled_.data(), polled_.size(), &left, nullptr) <= 0) return;
  uint64_t drained = 0;
  if (polled_[0].revents != 0 && read(wake_, &drained, sizeof drained) < 0) return;
  for (size_t i = 0; i < connections_.size(); ++i) {
    if (polled_[i + 2].revents != 0) connections_[i].ready = true;
  }
}

RdmaServer::RdmaServer(const RdmaServerOptions& options, NfsService& service, FaultPlan& faults)
    : options_(options), service_(service), faults_(faults) {}

Result<std::unique_ptr<RdmaServer>> RdmaServer::create(const RdmaServerOptions& options,
                                                       NfsService& service, FaultPlan& faults) {
  std::unique_ptr<RdmaServer> server(new RdmaServer(options, service, faults));
  auto addresses = resolve(options.listen, options.port);
  if (!addresses) return tl::unexpected(addresses.error());
  auto fabric = make_fabric(options, addresses->front());
  if (!fabric) return tl::unexpected(fabric.error());
  server->listener_fabric_ = std::move(*fabric);
  ListenConfig listen;
  listen.local = addresses->front().storage;
  listen.backlog = 1024;
  listen.half_open_max = 256;
  auto listener = server->listener_fabric_->listen(listen);
  if (!listener) return tl::unexpected(listener.error());
  server->listener_ = std::move(*listener);
  server->port_ = server->listener_->port();
  for (uint32_t i = 0; i < std::max(options.threads, 1u); ++i) {
    auto own = make_fabric(options, addresses->front());
    if (!own) return tl::unexpected(own.error());
    const int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake < 0) return fail(errno, std::string("no eventfd: ") + std::strerror(errno));
    server->workers_.push_back(std::make_unique<Worker>(*server, wake, std::move(*own)));
    auto prepared = server->workers_.back()->prepare();
    if (!prepared) return tl::unexpected(prepared.error());
  }
  return server;
}

RdmaServer::~RdmaServer() {
  stop();
}

void RdmaServer::accept_all() {
  while (auto connection = listener_->poll()) {
    ++accepted_;
    workers_[next_worker_]->post(std::move(connection));
    next_worker_ = (next_worker_ + 1) % workers_.size();
  }
}

void RdmaServer::start() {
  for (const auto& worker : workers_) threads_.emplace_back([&worker = *worker] { worker.run(); });
}

void RdmaServer::stop() {
  stopping_.store(true);
  for (const auto& worker : workers_) worker->wake();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void RdmaServer::add_counters(ServiceCounters& sum) const {
  for (const auto& worker : workers_) {
    const ServiceCounters& counters = worker->counters();
    for (uint32_t i = 0; i < kProcIndices; ++i) {
      sum.calls[i] += counters.calls[i];
      sum.errors[i] += counters.errors[i];
    }
    sum.bytes_read += counters.bytes_read;
    sum.bytes_written += counters.bytes_written;
    sum.bad_calls += counters.bad_calls;
  }
}

}  // namespace nfsrdma::memd
