// SPDX-License-Identifier: GPL-2.0-or-later
// The linker turns the fabric's send and receive calls into these (--wrap), so that a test decides
// how a stream is cut: any byte can be the last of a system call.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>

#include "iwarp_pair.h"

size_t nfsrdma::test::Shim::recv_max = 0;
size_t nfsrdma::test::Shim::send_max = 0;

namespace {

struct Cut {
  Cut(const msghdr* from, size_t most) : message(*from) {
    size_t count = 0;
    for (size_t i = 0; i < from->msg_iovlen && most != 0 && count < std::size(parts); ++i) {
      parts[count] = from->msg_iov[i];
      parts[count].iov_len = std::min(parts[count].iov_len, most);
      most -= parts[count].iov_len;
      ++count;
    }
    message.msg_iov = parts;
    message.msg_iovlen = count;
  }
  msghdr message;
  iovec parts[16];
};

}  // namespace

extern "C" {

ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
ssize_t __real_recvmsg(int fd, msghdr* message, int flags);
ssize_t __real_send(int fd, const void* data, size_t bytes, int flags);
ssize_t __real_recv(int fd, void* data, size_t bytes, int flags);

__attribute__((visibility("default"))) ssize_t __wrap_sendmsg(int fd, const msghdr* message,
                                                              int flags) {
  if (nfsrdma::test::Shim::send_max == 0) return __real_sendmsg(fd, message, flags);
  const Cut cut(message, nfsrdma::test::Shim::send_max);
  return __real_sendmsg(fd, &cut.message, flags);
}

__attribute__((visibility("default"))) ssize_t __wrap_recvmsg(int fd, msghdr* message, int flags) {
  if (nfsrdma::test::Shim::recv_max == 0) return __real_recvmsg(fd, message, flags);
  Cut cut(message, nfsrdma::test::Shim::recv_max);
  return __real_recvmsg(fd, &cut.message, flags);
}

__attribute__((visibility("default"))) ssize_t __wrap_send(int fd, const void* data, size_t bytes,
                                                           int flags) {
  const size_t most = nfsrdma::test::Shim::send_max;
  return __real_send(fd, data, most == 0 ? bytes : std::min(bytes, most), flags);
}

__attribute__((visibility("default"))) ssize_t __wrap_recv(int fd, void* data, size_t bytes,
                                                           int flags) {
  const size_t most = nfsrdma::test::Shim::recv_max;
  return __real_recv(fd, data, most == 0 ? bytes : std::min(bytes, most), flags);
}

}  // extern "C"
