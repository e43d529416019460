// SPDX-License-Identifier: GPL-2.0-or-later
#include "tcp_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace nfsrdma {
namespace {

constexpr uint64_t kLookForStopMs = 500;
constexpr uint16_t kReservedHighest = 1023;
constexpr uint16_t kReservedLowest = 512;  // below live the well-known services

bool bind_to(const Socket& socket, SocketAddress local, uint16_t port) {
  local.set_port(port);
  return bind(socket.fd(), local.get(), local.length) == 0;
}

Result<SocketAddress> local_base(int family, const std::string& local_address) {
  SocketAddress local;
  local.storage.ss_family = static_cast<sa_family_t>(family);
  local.length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (local_address.empty()) return local;
  void* to = family == AF_INET6
                 ? static_cast<void*>(&reinterpret_cast<sockaddr_in6*>(local.get())->sin6_addr)
                 : static_cast<void*>(&reinterpret_cast<sockaddr_in*>(local.get())->sin_addr);
  if (inet_pton(family, local_address.c_str(), to) != 1)
    return fail(EINVAL, "local_address=" + local_address + " is no numeric " +
                            (family == AF_INET6 ? "IPv6" : "IPv4") +
                            " address, as the server's address is");
  return local;
}

Result<Socket> new_socket(int family) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!socket.valid())
    return fail(errno, std::string("cannot make a socket: ") + std::strerror(errno));
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  return socket;
}

// 0: connecting or connected; else errno.
int begin_connect(const Socket& socket, const SocketAddress& to) {
  if (connect(socket.fd(), to.get(), to.length) == 0 || errno == EINPROGRESS) return 0;
  return errno;
}

tl::unexpected<Error> connect_failed(const SocketAddress& to, int code) {
  return fail(code, "cannot connect to " + to.text() + ": " + std::strerror(code));
}

// Walks the ports 1023 downwards. An empty socket: none could be had.
Result<Socket> connect_reserved(const SocketAddress& to, const SocketAddress& local, int* refusal) {
  for (uint16_t port = kReservedHighest; port >= kReservedLowest; --port) {
    auto socket = new_socket(to.family());
    if (!socket) return socket;
    // With SO_REUSEADDR several sockets may share a local port, each to another server.
    if (!bind_to(*socket, local, port)) {
      *refusal = errno;
      if (errno == EADDRINUSE) continue;
      break;
    }
    const int outcome = begin_connect(*socket, to);
    if (outcome == 0) return socket;
    *refusal = outcome;
    if (outcome == EADDRNOTAVAIL || outcome == EADDRINUSE) continue;  // 4-tuple is taken
    return connect_failed(to, outcome);
  }
  return Socket();
}

}  // namespace

uint16_t SocketAddress::port() const {
  return ntohs(family() == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                                    : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

void SocketAddress::set_port(uint16_t port) {
  if (family() == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
}

std::string SocketAddress::text() const {
  char host[NI_MAXHOST];
  if (getnameinfo(get(), length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  const std::string name = family() == AF_INET6 ? "[" + std::string(host) + "]" : std::string(host);
  return name + ":" + std::to_string(port());
}

Result<std::vector<SocketAddress>> resolve(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int outcome = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (outcome != 0)
    return fail(EHOSTUNREACH, "cannot resolve the host name '" + host +
                                  "' (check the URL): " + gai_strerror(outcome));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  std::vector<SocketAddress> found;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
    found.push_back(address);
  }
  return found;
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.fd_;
    other.fd_ = -1;
  }
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Socket::abort() {
  if (fd_ < 0) return;
  const linger reset{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close();
}

Result<Socket> start_connect(const SocketAddress& to, const SourcePolicy& from) {
  auto local = local_base(to.family(), from.local_address);
  if (!local) return tl::unexpected(local.error());

  if (from.port == 0 && from.reserved != ReservedPort::kNo) {
    int refusal = 0;
    auto socket = connect_reserved(to, *local, &refusal);
    if (!socket || socket->valid()) return socket;
    if (from.reserved == ReservedPort::kYes)
      return fail(refusal == 0 ? EACCES : refusal,
                  "no source port below 1024 can be had for " + to.text() + ": " +
                      std::strerror(refusal) +
                      " (run as root, or give fio CAP_NET_BIND_SERVICE with setcap, or use "
                      "reserved_port=auto)");
  }

  auto socket = new_socket(to.family());
  if (!socket) return socket;
  // Bound even if any port will do: one that connect() chooses may be shared with connections of
  // others to other servers, and could then not be bound to again after a loss.
  if (!bind_to(*socket, *local, from.port))
    return fail(errno, "cannot bind to " +
                           (from.local_address.empty() ? std::string("local port")
                                                       : "local_address=" + from.local_address) +
                           (from.port != 0 ? " " + std::to_string(from.port) : std::string()) +
                           ": " + std::strerror(errno));
  const int outcome = begin_connect(*socket, to);
  if (outcome != 0) return connect_failed(to, outcome);
  return socket;
}

Socket hold_port(int family, const std::string& local_address, uint16_t port) {
  auto local = local_base(family, local_address);
  auto socket = new_socket(family);
  if (!local || !socket || !bind_to(*socket, *local, port)) return Socket();
  return std::move(*socket);
}

int connect_outcome(const Socket& socket) {
  int code = 0;
  socklen_t length = sizeof code;
  if (getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &code, &length) != 0) return errno;
  return code;
}

uint16_t local_port(const Socket& socket) {
  SocketAddress local;
  local.length = sizeof local.storage;
  if (getsockname(socket.fd(), local.get(), &local.length) != 0) return 0;
  return local.port();
}

Result<Socket> connect_any(const std::vector<SocketAddress>& to, const SourcePolicy& from,
                           uint64_t deadline_ns, uint32_t waited_ms, StopFlag stop,
                           SocketAddress* connected) {
  Error last{EHOSTUNREACH, "no address to connect to"};
  for (size_t i = 0; i < to.size(); ++i) {
    auto socket = start_connect(to[i], from);
    if (!socket) {
      last = socket.error();
      continue;
    }
    // Each address gets its share of what is left, so that a dead first one leaves time.
    const uint64_t now = now_ns();
    const uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    const uint64_t until = now + left / (to.size() - i);
    pollfd waiting{.fd = socket->fd(), .events = POLLOUT, .revents = 0};
    int ready = 0;
    for (uint64_t begin = now; ready <= 0 && begin < until; begin = now_ns()) {
      if (stopped(stop)) return tl::unexpected(stopped_error("connecting to " + to[i].text()));
      // A signal does not end the wait: it may be for somebody else.
      const uint64_t wait_ms = std::min((until - begin) / 1'000'000 + 1, kLookForStopMs);
      ready = poll(&waiting, 1, static_cast<int>(wait_ms));
      if (ready < 0 && errno != EINTR) break;
    }
    if (ready <= 0) {
      last = Error{ETIMEDOUT, "no answer from " + to[i].text() + " to a TCP connect within " +
                                  std::to_string(waited_ms / 1000) +
                                  " s (check host, port and firewall)"};
      continue;
    }
    const int outcome = connect_outcome(*socket);
    if (outcome != 0) {
      last = connect_failed(to[i], outcome).value();
      continue;
    }
    if (connected != nullptr) *connected = to[i];
    return socket;
  }
  return tl::unexpected(last);
}

}  // namespace nfsrdma
