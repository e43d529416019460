// SPDX-License-Identifier: GPL-2.0-or-later
// A peer made of a plain socket and hand-made frames, which may say anything. It shares no code
// with the fabric: what it sends and expects is written down from the RFCs.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "iwarp_pair.h"
#include "iwarp_plain_crc.h"

namespace nfsrdma::test {

using Octets = std::vector<uint8_t>;

inline void add16(Octets& to, uint32_t value) {
  to.push_back(static_cast<uint8_t>(value >> 8));
  to.push_back(static_cast<uint8_t>(value));
}
inline void add32(Octets& to, uint32_t value) {
  add16(to, value >> 16);
  add16(to, value & 0xffff);
}
inline void add64(Octets& to, uint64_t value) {
  add32(to, static_cast<uint32_t>(value >> 32));
  add32(to, static_cast<uint32_t>(value));
}
inline uint32_t get32(const Octets& from, size_t at) {
  return uint32_t{from[at]} << 24 | uint32_t{from[at + 1]} << 16 | uint32_t{from[at + 2]} << 8 |
         from[at + 3];
}
inline uint64_t get64(const Octets& from, size_t at) {
  return uint64_t{get32(from, at)} << 32 | get32(from, at + 4);
}
inline Octets octets(size_t count, uint8_t value) {
  return Octets(count, value);
}

/// RDMAP opcodes (RFC 5040 figure 4).
enum : uint8_t { kWrite, kReadReq, kReadResp, kSend, kSendInv, kSendSe, kSendSeInv, kTerminate };

/// Bytes of DDP and RDMAP control; 1 is the version of both.
struct Control {
  uint8_t ddp_version = 1;
  uint8_t rdmap_version = 1;
};

inline Octets tagged(uint8_t opcode, bool last, uint32_t stag, uint64_t offset,
                     const Octets& payload, Control control = {}) {
  Octets ulpdu;
  ulpdu.push_back(static_cast<uint8_t>(0x80 | (last ? 0x40 : 0) | control.ddp_version));
  ulpdu.push_back(static_cast<uint8_t>(control.rdmap_version << 6 | opcode));
  add32(ulpdu, stag);
  add64(ulpdu, offset);
  ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
  return ulpdu;
}

inline Octets untagged(uint8_t opcode, bool last, uint32_t queue, uint32_t msn, uint32_t offset,
                       const Octets& payload, uint32_t invalidate = 0, Control control = {}) {
  Octets ulpdu;
  ulpdu.push_back(static_cast<uint8_t>((last ? 0x40 : 0) | control.ddp_version));
  ulpdu.push_back(static_cast<uint8_t>(control.rdmap_version << 6 | opcode));
  add32(ulpdu, invalidate);
  add32(ulpdu, queue);
  add32(ulpdu, msn);
  add32(ulpdu, offset);
  ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
  return ulpdu;
}

inline Octets read_request(uint32_t msn, uint32_t sink, uint64_t sink_offset, uint32_t length,
                           uint32_t source, uint64_t source_offset) {
  Octets body;
  add32(body, sink);
  add64(body, sink_offset);
  add32(body, length);
  add32(body, source);
  add64(body, source_offset);
  return untagged(kReadReq, true, 1, msn, 0, body);
}

class RawPeer {
 public:
  ~RawPeer() { reset(); }
  RawPeer() = default;
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  /// Listens; returns the port.
  uint16_t listen(int backlog = 16) {
    listening_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bound_window(listening_);
    sockaddr_storage address = loopback(0);
    EXPECT_EQ(bind(listening_, reinterpret_cast<sockaddr*>(&address), sizeof(sockaddr_in)), 0);
    EXPECT_EQ(::listen(listening_, backlog), 0);
    socklen_t length = sizeof address;
    getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &length);
    return ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
  }
  /// Bytes that have come and were not taken.
  int unread() const {
    int bytes = 0;
    ioctl(fd_, FIONREAD, &bytes);
    return bytes;
  }
  bool accept() {
    if (fd_ < 0) fd_ = ::accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return fd_ >= 0;
  }
  void connect(uint16_t port) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bound_window(fd_);
    sockaddr_storage address = loopback(port);
    ASSERT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(sockaddr_in)), 0);
    fcntl(fd_, F_SETFL, O_NONBLOCK);
  }
  void close() {
    ::close(fd_);
    fd_ = -1;
  }
  /// As new.
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    if (listening_ >= 0) ::close(listening_);
    fd_ = listening_ = -1;
    closed_ = false;
    in_.clear();
  }
  void finish_sending() { shutdown(fd_, SHUT_WR); }

  void send(const Octets& bytes) {
    size_t done = 0;
    const uint64_t end = now_ns() + 10'000'000'000u;
    while (done < bytes.size() && now_ns() < end) {
      const ssize_t sent =
          ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) done += static_cast<size_t>(sent);
      if (sent < 0 && errno != EAGAIN) return;  // the other side has ended the connection
    }
  }
  /// Takes in what has arrived; true once the peer has closed.
  bool receive() {
    for (;;) {
      uint8_t some[65536];
      const ssize_t got = recv(fd_, some, sizeof some, MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) return closed_;
      if (got <= 0) return closed_ = true;
      in_.insert(in_.end(), some, some + got);
    }
  }
  /// The next `count` bytes once they are there.
  std::optional<Octets> take(size_t count) {
    receive();
    if (in_.size() < count) return std::nullopt;
    Octets bytes(in_.begin(), in_.begin() + static_cast<long>(count));
    in_.erase(in_.begin(), in_.begin() + static_cast<long>(count));
    return bytes;
  }
  size_t buffered() const { return in_.size(); }

  /// An FPDU around `ulpdu`; its CRC right, zero (off), or wrong.
  Octets frame(const Octets& ulpdu, bool spoil = false) const {
    Octets all;
    add16(all, static_cast<uint32_t>(ulpdu.size()));
    all.insert(all.end(), ulpdu.begin(), ulpdu.end());
    while (all.size() % 4 != 0) all.push_back(0);
    const uint32_t value = (crc ? plain_crc32c(all) : 0) ^ (spoil ? 0x100u : 0u);
    for (int byte = 0; byte < 4; ++byte) all.push_back(static_cast<uint8_t>(value >> (8 * byte)));
    return all;
  }
  void send_fpdu(const Octets& ulpdu, bool spoil = false) { send(frame(ulpdu, spoil)); }

  /// The ULPDU of the next whole FPDU; its CRC and pad are checked.
  std::optional<Octets> next_ulpdu() {
    receive();
    if (in_.size() < 2) return std::nullopt;
    const size_t length = size_t{in_[0]} << 8 | in_[1];
    const size_t padded = (2 + length + 3) & ~size_t{3};
    const auto whole = take(padded + 4);
    if (!whole) return std::nullopt;
    const Octets covered(whole->begin(), whole->begin() + static_cast<long>(padded));
    const uint32_t expected = crc ? plain_crc32c(covered) : 0;
    for (size_t byte = 0; byte < 4; ++byte) {
      EXPECT_EQ((*whole)[padded + byte], static_cast<uint8_t>(expected >> (8 * byte)));
    }
    for (size_t at = 2 + length; at < padded; ++at) EXPECT_EQ((*whole)[at], 0);
    return Octets(whole->begin() + 2, whole->begin() + 2 + static_cast<long>(length));
  }

  bool crc = true;
  int window =
      0;  ///< bytes of SO_RCVBUF; 0: the system's choice. Set before the connection is made

 private:
  void bound_window(int fd) const {
    if (window != 0) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
  }

  int listening_ = -1;
  int fd_ = -1;
  bool closed_ = false;
  Octets in_;
};

/// An MPA frame: key, flags and revision, private data as they stand on the wire.
inline Octets mpa(const char* key, uint16_t flags, const Octets& private_data) {
  Octets all(key, key + 16);
  add16(all, flags);
  add16(all, static_cast<uint32_t>(private_data.size()));
  all.insert(all.end(), private_data.begin(), private_data.end());
  return all;
}
constexpr const char* kRequestKey = "MPA ID Req Frame";
constexpr const char* kReplyKey = "MPA ID Rep Frame";
inline Octets ird_ord(uint32_t ird, uint32_t ord) {
  Octets all;
  add16(all, ird);
  add16(all, ord);
  return all;
}

}  // namespace nfsrdma::test
