// SPDX-License-Identifier: GPL-2.0-or-later
#include "tcp_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nfsrdma::memd {

namespace {

constexpr int kBacklog = 1024;
constexpr uint32_t kConnectionsMax = 4096;

/// Numeric host and port of an address.
bool name_of(const sockaddr_storage& address, socklen_t length, std::string& host, uint16_t& port) {
  char text[NI_MAXHOST];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, text, sizeof text, nullptr,
                  0, NI_NUMERICHOST) != 0) {
    return false;
  }
  host = text;
  port =
      ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(address).sin_port);
  return true;
}

}  // namespace

class TcpServer::Listener final : public Pollable {
 public:
  Listener(TcpServer& server, int socket) : server_(server), socket_(socket) {}
  ~Listener() override { close(socket_); }
  void ready(uint32_t) override { server_.accept_all(socket_); }

 private:
  TcpServer& server_;
  const int socket_;
};

TcpServer::TcpServer(const TcpOptions& options, NfsService& service, FaultPlan& faults)
    : options_(options), service_(service), faults_(faults) {}

Result<std::unique_ptr<TcpServer>> TcpServer::create(const TcpOptions& options, NfsService& service,
                                                     FaultPlan& faults) {
  std::unique_ptr<TcpServer> server(new TcpServer(options, service, faults));
  for (uint32_t i = 0; i < options.threads; ++i) {
    auto loop = EventLoop::create();
    if (!loop) return tl::unexpected(loop.error());
    server->loops_.push_back(std::move(*loop));
  }
  const auto port = server->listen_on(options.port);
  if (!port) return tl::unexpected(port.error());
  server->port_ = *port;
  if (options.portmap_port != 0) {
    const auto portmap = server->listen_on(options.portmap_port);
    if (!portmap) return tl::unexpected(portmap.error());
    server->portmap_port_ = *portmap;
  }
  return server;
}

TcpServer::~TcpServer() {
  stop();
}

Result<uint16_t> TcpServer::listen_on(uint16_t port) {
  const std::string where = options_.listen + " port " + std::to_string(port);
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(options_.listen.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return fail(EINVAL, "--listen " + options_.listen + " is not a numeric address");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> address(found, &freeaddrinfo);
  const int socket_fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) return fail(errno, "no socket for " + where + ": " + std::strerror(errno));
  auto listener = std::make_unique<Listener>(*this, socket_fd);
  const int on = 1;
  setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket_fd, address->ai_addr, address->ai_addrlen) != 0 ||
      listen(socket_fd, kBacklog) != 0) {
    return fail(errno, "cannot listen on " + where + ": " + std::strerror(errno));
  }
  sockaddr_storage bound = {};
  socklen_t length = sizeof bound;
  uint16_t bound_port = 0;
  if (getsockname(socket_fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0 ||
      !name_of(bound, length, url_host_, bound_port)) {
    return fail(errno, "cannot tell the port of " + where);
  }
  if (bound.ss_family == AF_INET6) url_host_ = "[" + url_host_ + "]";
  const auto watched = loops_.front()->watch(socket_fd, EPOLLIN, listener.get());
  if (!watched) return tl::unexpected(watched.error());
  listeners_.push_back(std::move(listener));
  return bound_port;
}

void TcpServer::accept_all(int listener) {
  while (true) {
    sockaddr_storage peer = {};
    socklen_t length = sizeof peer;
    const int accepted_fd = accept4(listener, reinterpret_cast<sockaddr*>(&peer), &length,
                                    SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted_fd < 0) return;
    std::string host;
    uint16_t port = 0;
    if (connections_.load() >= kConnectionsMax || !name_of(peer, length, host, port)) {
      close(accepted_fd);
      continue;
    }
    const int on = 1;
    setsockopt(accepted_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    accepted_.fetch_add(1);
    connections_.fetch_add(1);
    deal_out(accepted_fd, std::move(host), port);
  }
}

void TcpServer::deal_out(int socket, std::string peer_host, uint16_t peer_port) {
  EventLoop& loop = *loops_[next_loop_];
  next_loop_ = (next_loop_ + 1) % loops_.size();
  const auto adopt = [this, &loop, socket, host = std::move(peer_host), peer_port] {
    auto connection = std::make_unique<TcpConnection>(socket, host, peer_port, loop, service_,
                                                      faults_, options_, connections_);
    TcpConnection& adopted = *connection;
    adopted.start(loop.adopt(std::move(connection)));
  };
  if (&loop == loops_.front().get()) return adopt();  // the listeners' own loop
  loop.post(adopt);
}

void TcpServer::start() {
  for (const auto& loop : loops_) threads_.emplace_back([&loop = *loop] { loop.run(); });
}

void TcpServer::stop() {
  for (const auto& loop : loops_) loop->stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

ServiceCounters TcpServer::counters() const {
  ServiceCounters sum;
  for (const auto& loop : loops_) {
    for (uint32_t i = 0; i < kProcIndices; ++i) {
      sum.calls[i] += loop->counters.calls[i];
      sum.errors[i] += loop->counters.errors[i];
    }
    sum.bytes_read += loop->counters.bytes_read;
    sum.bytes_written += loop->counters.bytes_written;
    sum.bad_calls += loop->counters.bad_calls;
  }
  return sum;
}

uint64_t TcpServer::send_calls() const {
  uint64_t sum = 0;
  for (const auto& loop : loops_) sum += loop->send_calls;
  return sum;
}

uint64_t TcpServer::recv_calls() const {
  uint64_t sum = 0;
  for (const auto& loop : loops_) sum += loop->recv_calls;
  return sum;
}

}  // namespace nfsrdma::memd
