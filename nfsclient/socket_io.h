// SPDX-License-Identifier: GPL-2.0-or-later
// The system calls of a stream socket's data path, each in its cheapest form. Both transports that
// own their sockets use them. One thread a socket.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace nfsrdma {

/// How long a receive call that may sleep does so at most, give or take a tick of the system's
/// clock (4 ms, 10 ms with HZ=100).
constexpr uint64_t kReceiveSleepNs = 20'000'000;

/// A sleep in the receive call saves poll(2), but ends by the system's clock: it is for waits whose
/// end nobody has set sooner than this.
constexpr bool may_sleep_receiving(uint64_t now_ns, uint64_t until_ns) {
  return until_ns > now_ns && until_ns - now_ns > 2 * kReceiveSleepNs;
}

/// From now on calls on this connected socket sleep unless told not to by MSG_DONTWAIT, receive
/// calls for about kReceiveSleepNs. False: refused, the socket does not sleep.
inline bool let_receive_sleep(int fd) {
  const timeval limit{.tv_sec = 0, .tv_usec = kReceiveSleepNs / 1000};
  if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) return false;
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

/// As recvmsg(2) and sendmsg(2). One piece, which is the rule, goes without a message header, that
/// the system would have to copy and check.
inline ssize_t receive_pieces(int fd, iovec* pieces, size_t count, int flags) {
  if (count == 1) return recv(fd, pieces->iov_base, pieces->iov_len, flags);
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = count;
  return recvmsg(fd, &message, flags);
}

inline ssize_t send_pieces(int fd, iovec* pieces, size_t count, int flags) {
  if (count == 1) return send(fd, pieces->iov_base, pieces->iov_len, flags);
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = count;
  return sendmsg(fd, &message, flags);
}

}  // namespace nfsrdma
