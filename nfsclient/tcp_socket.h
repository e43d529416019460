// SPDX-License-Identifier: GPL-2.0-or-later
// Addresses and non-blocking TCP sockets: resolving, source ports, connecting with a deadline.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "result.h"
#include "transport.h"

namespace nfsrdma {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] uint16_t port() const;
  void set_port(uint16_t port);
  /// Numeric: 192.0.2.1:2049 or [2001:db8::1]:2049.
  [[nodiscard]] std::string text() const;
};

/// All stream addresses of a host name or a numeric address. May ask a name server, so it is
/// called at start only.
Result<std::vector<SocketAddress>> resolve(const std::string& host, uint16_t port);

/// An owned file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  void close();
  /// Closes with a reset, so that the local port can be used again at once.
  void abort();

 private:
  int fd_ = -1;
};

/// Where a connection shall come from.
struct SourcePolicy {
  std::string local_address;  ///< empty: the kernel's choice
  ReservedPort reserved = ReservedPort::kAuto;
  uint16_t port = 0;  ///< not 0: this port and no other (a reconnect)
};

/// Creates a non-blocking socket bound as the policy says and starts to connect it. With
/// ReservedPort::kYes fails with EACCES when no port below 1024 may be had; with kAuto takes any
/// port then.
Result<Socket> start_connect(const SocketAddress& to, const SourcePolicy& from);

/// Keeps `port` while nothing is connected from it: the kernel gives it to nobody, sockets of
/// start_connect() may still be bound to it. Invalid when it is taken already.
Socket hold_port(int family, const std::string& local_address, uint16_t port);

/// The outcome of a connect that poll() reported as done: 0 or an errno value.
int connect_outcome(const Socket& socket);

/// The local port of a connected or bound socket, 0 when unknown.
uint16_t local_port(const Socket& socket);

/// start_connect() to the first of `to` that answers, waiting at most until `deadline_ns` for
/// all of them, or until `stop`. `waited_ms` is for the message.
Result<Socket> connect_any(const std::vector<SocketAddress>& to, const SourcePolicy& from,
                           uint64_t deadline_ns, uint32_t waited_ms, StopFlag stop,
                           SocketAddress* connected);

}  // namespace nfsrdma
