// SPDX-License-Identifier: GPL-2.0-or-later
#include "iwarp_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nfsrdma::iwarp {
namespace {

constexpr uint32_t kSegmentMin = 128;
constexpr uint32_t kSegmentMax = 65'532;

}  // namespace

void Socket::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

socklen_t address_length(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return sizeof(sockaddr_in);
  if (address.ss_family == AF_INET6) return sizeof(sockaddr_in6);
  return 0;
}

std::string address_text(const sockaddr_storage& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const socklen_t length = address_length(address);
  if (length == 0 ||
      getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {};
  }
  if (address.ss_family == AF_INET6) return std::string("[") + host + "]:" + port;
  return std::string(host) + ":" + port;
}

std::string peer_text(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  return address_text(address);
}

std::string local_text(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  return address_text(address);
}

void set_no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Result<Socket> tcp_socket(int family) {
  Socket made(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!made) {
    const int code = errno;
    return fail(code, std::string("no TCP socket: ") + strerror(code));
  }
  set_no_delay(made.get());
  return made;
}

uint32_t segment_size(int fd, uint32_t wanted) {
  uint32_t segment = wanted;
  if (segment == 0) {
    int mss = 0;
    socklen_t length = sizeof mss;
    if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &length) == 0 && mss > 0) {
      segment = static_cast<uint32_t>(mss);
    }
  }
  return std::clamp(segment, kSegmentMin, kSegmentMax);
}

}  // namespace nfsrdma::iwarp
