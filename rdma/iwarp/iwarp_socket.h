// SPDX-License-Identifier: GPL-2.0-or-later
// Small things about TCP sockets that set-up needs. Any thread.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "result.h"

namespace nfsrdma::iwarp {

/// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { reset(); }
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept {
    reset(other.release());
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Length of an IPv4 or IPv6 address; 0 for another family.
socklen_t address_length(const sockaddr_storage& address);
/// "127.0.0.1:20049", "[::1]:20049"; empty for another family.
std::string address_text(const sockaddr_storage& address);
std::string peer_text(int fd);
std::string local_text(int fd);

/// A non-blocking TCP socket with TCP_NODELAY.
Result<Socket> tcp_socket(int family);
void set_no_delay(int fd);

/// The longest FPDU: `wanted`, or when that is 0 the connection's segment size, within what the
/// ULPDU length and our headers allow.
uint32_t segment_size(int fd, uint32_t wanted);

}  // namespace nfsrdma::iwarp
