// SPDX-License-Identifier: GPL-2.0-or-later
// The server's side of set-up until the request is whole: sockets that have been accepted and have
// not shown a valid MPA request yet are held here, a bounded number of them, each with a deadline.
#include <netinet/in.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "iwarp_connection.h"
#include "iwarp_fabric_impl.h"
#include "transport.h"

namespace nfsrdma::iwarp {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint32_t kHalfOpenMax = 4096;
// How long accept rests when the process has no file descriptor left.
constexpr uint64_t kAcceptRestNs = 100 * kMillisecond;
constexpr uint32_t kListenTag = UINT32_MAX;

struct HalfOpen {
  Socket socket;
  uint64_t deadline_ns = 0;
  MpaFrameReader reader;
};

class IwarpListener final : public Listener {
 public:
  IwarpListener(Socket listening, Socket events, const ListenConfig& config)
      : listening_(std::move(listening)),
        events_(std::move(events)),
        timeout_ns_(config.setup_timeout_ms * kMillisecond),
        half_open_(std::clamp(config.half_open_max, 1u, kHalfOpenMax)) {
    watch_listening(true);
  }

  uint16_t port() const override;
  std::unique_ptr<Connection> poll() override;
  bool prepare_wait(pollfd& wait) override {
    wait = {events_.get(), POLLIN, 0};
    return true;
  }
  uint64_t next_timer_ns() const override;

 private:
  void watch_listening(bool on);
  void accept_one();
  std::unique_ptr<Connection> advance(HalfOpen& peer);
  std::unique_ptr<Connection> judge(HalfOpen& peer);
  void drop(HalfOpen& peer) {
    peer.socket.reset();
    --used_;
    watch_listening(true);
  }
  void expire(uint64_t now);

  Socket listening_;
  Socket events_;
  uint64_t timeout_ns_;
  std::vector<HalfOpen> half_open_;
  uint32_t used_ = 0;
  uint64_t rest_until_ns_ = 0;
  bool watching_ = false;
  bool added_ = false;
};

uint16_t IwarpListener::port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &length);
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void IwarpListener::watch_listening(bool on) {
  if (on && (used_ == half_open_.size() || rest_until_ns_ != 0)) return;
  if (added_ && on == watching_) return;
  epoll_event event{};
  event.events = on ? EPOLLIN : 0u;
  event.data.u32 = kListenTag;
  epoll_ctl(events_.get(), added_ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, listening_.get(), &event);
  added_ = true;
  watching_ = on;
}

void IwarpListener::accept_one() {
  Socket accepted(accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      rest_until_ns_ = now_ns() + kAcceptRestNs;
      watch_listening(false);
    }
    return;
  }
  set_no_delay(accepted.get());
  const auto free = std::find_if(half_open_.begin(), half_open_.end(),
                                 [](const HalfOpen& peer) { return !peer.socket; });
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<uint32_t>(free - half_open_.begin());
  if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, accepted.get(), &event) != 0) return;
  free->socket = std::move(accepted);
  free->deadline_ns = now_ns() + timeout_ns_;
  free->reader.reset();
  if (++used_ == half_open_.size()) watch_listening(false);
}

std::unique_ptr<Connection> IwarpListener::advance(HalfOpen& peer) {
  switch (peer.reader.read(peer.socket.get(), false)) {
    case MpaFrameReader::Status::kMore:
      return nullptr;
    case MpaFrameReader::Status::kWhole:
      return judge(peer);
    case MpaFrameReader::Status::kClosed:
    case MpaFrameReader::Status::kError:
      break;
  }
  drop(peer);
  return nullptr;
}

// RFC 6581 section 6: who does not speak the enhanced set-up of revision 2, or wants markers, gets
// a rejection in the form that it speaks.
std::unique_ptr<Connection> IwarpListener::judge(HalfOpen& peer) {
  const Result<MpaFrame> request = decode_mpa_frame(peer.reader.bytes());
  if (request && request->revision == 2 && request->enhanced && !request->markers &&
      !request->reject) {
    epoll_ctl(events_.get(), EPOLL_CTL_DEL, peer.socket.get(), nullptr);
    auto connection =
        std::make_unique<IwarpConnection>(std::move(peer.socket), *request, peer.deadline_ns);
    drop(peer);
    return connection;
  }
  if (request) {
    MpaFrame reply;
    reply.reply = reply.reject = true;
    reply.crc = request->crc;
    reply.enhanced = request->enhanced;
    reply.revision = std::min<uint8_t>(request->revision, 2);
    std::array<std::byte, kMpaFrameBytes + kMpaEnhancedBytes> buffer;
    const size_t bytes = encode_mpa_frame(reply, buffer);
    // Best effort: the peer sees the connection close in any case.
    (void)!send(peer.socket.get(), buffer.data(), bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  drop(peer);
  return nullptr;
}

void IwarpListener::expire(uint64_t now) {
  if (rest_until_ns_ != 0 && now >= rest_until_ns_) {
    rest_until_ns_ = 0;
    watch_listening(true);
  }
  if (used_ == 0) return;
  for (HalfOpen& peer : half_open_) {
    if (peer.socket && now >= peer.deadline_ns) drop(peer);
  }
}

std::unique_ptr<Connection> IwarpListener::poll() {
  expire(now_ns());
  epoll_event ready[32];
  // Each round accepts or advances; a set-up that is whole ends the call. Bounded by what is there.
  for (uint32_t round = 0; round < 4; ++round) {
    const int count = epoll_wait(events_.get(), ready, std::size(ready), 0);
    if (count <= 0) return nullptr;
    for (int at = 0; at < count; ++at) {
      const uint32_t tag = ready[at].data.u32;
      if (tag == kListenTag) {
        accept_one();
      } else if (half_open_[tag].socket) {
        std::unique_ptr<Connection> made = advance(half_open_[tag]);
        if (made) return made;
      }
    }
  }
  return nullptr;
}

uint64_t IwarpListener::next_timer_ns() const {
  uint64_t next = rest_until_ns_ != 0 ? rest_until_ns_ : kNever;
  if (used_ == 0) return next;
  for (const HalfOpen& peer : half_open_) {
    if (peer.socket) next = std::min(next, peer.deadline_ns);
  }
  return next;
}

}  // namespace

Result<std::unique_ptr<Listener>> make_iwarp_listener(const ListenConfig& config) {
  const socklen_t length = address_length(config.local);
  if (length == 0) return fail(EAFNOSUPPORT, "iWARP listens on an IPv4 or IPv6 address");
  Result<Socket> made = tcp_socket(config.local.ss_family);
  if (!made) return tl::unexpected(made.error());
  const int on = 1;
  setsockopt(made->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(made->get(), reinterpret_cast<const sockaddr*>(&config.local), length) != 0 ||
      ::listen(made->get(), static_cast<int>(config.backlog)) != 0) {
    const int code = errno;
    return fail(code, "no iWARP listener on " + address_text(config.local) + ": " + strerror(code));
  }
  Socket events(epoll_create1(EPOLL_CLOEXEC));
  if (!events) {
    const int code = errno;
    return fail(code, std::string("no epoll: ") + strerror(code));
  }
  return std::make_unique<IwarpListener>(std::move(*made), std::move(events), config);
}

}  // namespace nfsrdma::iwarp
