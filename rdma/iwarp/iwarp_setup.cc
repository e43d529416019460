// SPDX-License-Identifier: GPL-2.0-or-later
// Set-up of a connection: TCP, then MPA request and reply, revision 2, enhanced (RFC 6581).
//
// A server's first Send may follow its set-up at once, as the peer has received first; a client
// sends first by nature of RPC, so no ready-to-receive message is asked for. A peer that does ask
// for one gets it named in the reply, and is established when it has come.
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "iwarp_connection.h"
#include "socket_io.h"
#include "transport.h"

namespace nfsrdma::iwarp {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

std::string milliseconds(uint32_t ms) {
  return std::to_string(ms) + " ms";
}

}  // namespace

MpaFrameReader::Status MpaFrameReader::read(int fd, bool reply) {
  for (;;) {
    const Result<size_t> length = mpa_frame_length({buffer_.data(), got_}, reply);
    if (!length) {
      error_ = length.error();
      return Status::kError;
    }
    const size_t wanted = *length != 0 ? *length : kMpaFrameBytes;
    if (*length != 0 && got_ == wanted) return Status::kWhole;
    const ssize_t got = recv(fd, &buffer_[got_], wanted - got_, MSG_DONTWAIT);
    if (got == 0) return Status::kClosed;
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return Status::kMore;
      error_ = {errno, std::string("connection lost: ") + strerror(errno)};
      return Status::kError;
    }
    got_ += static_cast<size_t>(got);
  }
}

bool IwarpConnection::keep_private(ConstBytes private_data) {
  if (private_data.size() > kPrivateDataMax) return false;
  own_private_bytes_ = private_data.size();
  if (own_private_bytes_ != 0) {
    std::memcpy(own_private_.data(), private_data.data(), own_private_bytes_);
  }
  return true;
}

// --- client ---

Result<void> IwarpConnection::start_connect(const ConnectRequest& request) {
  if (state_ != ConnectionState::kIdle || fabric_ == nullptr) {
    return fail(EBUSY, "the connection is in use");
  }
  if (!keep_private(request.private_data)) return fail(EINVAL, "private data too long");
  const socklen_t length = address_length(request.peer);
  if (length == 0) return fail(EAFNOSUPPORT, "iWARP needs an IPv4 or IPv6 address");
  Result<Socket> made = tcp_socket(request.peer.ss_family);
  if (!made) return tl::unexpected(made.error());

  const std::string numeric = address_text(request.peer);
  peer_name_ = request.peer_name.empty() ? numeric : request.peer_name + " (" + numeric + ")";
  if (request.local.ss_family != AF_UNSPEC) {
    const int on = 1;
    setsockopt(made->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(made->get(), reinterpret_cast<const sockaddr*>(&request.local),
             address_length(request.local)) != 0) {
      const int code = errno;
      return fail(code,
                  "no connection from " + address_text(request.local) + ": " + strerror(code));
    }
  }
  client_ = true;
  error_ = {};
  limits_ = {};
  peer_private_bytes_ = 0;
  reader_.reset();
  report_established_ = report_disconnected_ = false;
  timeout_ms_ = request.timeout_ms;
  deadline_ns_ = now_ns() + uint64_t{request.timeout_ms} * kMillisecond;
  ird_ = config_.ird;
  ord_ = config_.ord;
  socket_ = std::move(*made);
  state_ = ConnectionState::kConnecting;
  phase_ = Phase::kTcp;
  int result;
  do {
    result = connect(socket_.get(), reinterpret_cast<const sockaddr*>(&request.peer), length);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno != EINPROGRESS) {
    fail_with(errno, std::string("no TCP connection: ") + strerror(errno));
  }
  return {};
}

void IwarpConnection::tcp_connected() {
  pollfd wait{socket_.get(), POLLOUT, 0};
  if (::poll(&wait, 1, 0) <= 0) return;
  int code = 0;
  socklen_t length = sizeof code;
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &code, &length);
  if (code == ECONNREFUSED) {
    fail_with(code, "TCP connection refused: no iWARP service listens on that port");
    return;
  }
  if (code != 0) {
    fail_with(code, std::string("no TCP connection: ") + strerror(code));
    return;
  }
  MpaFrame request;
  request.crc = fabric_->options().crc;
  request.enhanced = true;
  request.ird = ird_;
  request.ord = ord_;
  request.private_data = {own_private_.data(), own_private_bytes_};
  if (send_frame(request)) phase_ = Phase::kReply;
}

bool IwarpConnection::send_frame(const MpaFrame& frame) {
  std::array<std::byte, kMpaFrameBytes + kMpaPrivateMax> buffer;
  const size_t bytes = encode_mpa_frame(frame, buffer);
  // The first bytes of a connection always fit the socket's buffer.
  const ssize_t sent = send(socket_.get(), buffer.data(), bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  ++counters_.send_calls;
  if (sent == static_cast<ssize_t>(bytes)) return true;
  const int code = sent < 0 ? errno : EPIPE;
  fail_with(code, std::string("set-up frame not sent: ") + strerror(code));
  return false;
}

void IwarpConnection::read_reply() {
  ++counters_.recv_calls;
  switch (reader_.read(socket_.get(), true)) {
    case MpaFrameReader::Status::kMore:
      return;
    case MpaFrameReader::Status::kClosed:
      fail_with(ECONNREFUSED,
                "closed the connection instead of an MPA reply: its iWARP service is not ready, or "
                "that port is no iWARP one");
      return;
    case MpaFrameReader::Status::kError:
      fail_with(reader_.error().code, reader_.error().text);
      return;
    case MpaFrameReader::Status::kWhole:
      break;
  }
  const Result<MpaFrame> reply = decode_mpa_frame(reader_.bytes());
  if (!reply) {
    fail_with(reply.error().code, reply.error().text);
    return;
  }
  peer_private_bytes_ = reply->private_data.size();
  std::copy(reply->private_data.begin(), reply->private_data.end(), peer_private_.begin());
  judge_reply(*reply);
}

void IwarpConnection::judge_reply(const MpaFrame& reply) {
  if (reply.revision != 2 || !reply.enhanced) {
    fail_with(EPROTONOSUPPORT, "speaks MPA revision " + std::to_string(reply.revision) +
                                   (reply.revision == 2 ? " without the enhanced set-up" : "") +
                                   "; the enhanced set-up of revision 2 (RFC 6581) is needed");
    return;
  }
  if (reply.reject) {
    fail_with(ECONNREFUSED, "rejected the set-up (asked with IRD " + std::to_string(ird_) +
                                ", ORD " + std::to_string(ord_) + ", " +
                                std::to_string(own_private_bytes_) + " bytes of private data)");
    return;
  }
  if (reply.markers) {
    fail_with(EPROTONOSUPPORT, "wants MPA markers, which are not supported");
    return;
  }
  agree(reply);
  // A peer that would have more Reads outstanding than we said: our tables have room for the
  // largest number of all, so only beyond that it is refused.
  if (reply.ord > kReadsMax) {
    establish();
    rx_->fail_stream(term::kInsufficientIrd, "wants " + std::to_string(reply.ord) +
                                                 " Reads outstanding, " +
                                                 std::to_string(kReadsMax) + " is the most");
    report_established_ = false;
    stream_failed();
    return;
  }
  establish();
}

/// Each side's ORD is bounded by the other's IRD.
void IwarpConnection::agree(const MpaFrame& peer) {
  crc_ = fabric_->options().crc || peer.crc;
  ord_ = std::min(ord_, std::min(peer.ird, kReadsMax));
  ird_ = std::max(ird_, std::min(peer.ord, kReadsMax));
}

// --- server ---

IwarpConnection::IwarpConnection(Socket socket, const MpaFrame& request, uint64_t deadline_ns)
    : socket_(std::move(socket)),
      state_(ConnectionState::kRequested),
      client_(false),
      deadline_ns_(deadline_ns),
      request_(request) {
  peer_name_ = peer_address();
  peer_private_bytes_ = request.private_data.size();
  std::copy(request.private_data.begin(), request.private_data.end(), peer_private_.begin());
  request_.private_data = {};
}

Result<void> IwarpConnection::accept(Fabric& fabric, const ConnectionConfig& config,
                                     ConstBytes private_data) {
  if (state_ != ConnectionState::kRequested) return fail(EBUSY, "no set-up waits to be accepted");
  if (fabric.name() != "iwarp") return fail(EINVAL, "accepted by another fabric");
  auto& own = static_cast<IwarpFabric&>(fabric);
  const Result<void> checked = own.check(config);
  if (!checked) return checked;
  if (!keep_private(private_data)) return fail(EINVAL, "private data too long");
  configure(own, config);

  ird_ = config.ird;
  ord_ = config.ord;
  agree(request_);
  MpaFrame reply;
  reply.reply = true;
  reply.enhanced = true;
  reply.crc = crc_;
  reply.ird = ird_;
  reply.ord = ord_;
  reply.peer_to_peer = request_.peer_to_peer;
  if (request_.peer_to_peer) {
    // Of the forms offered, the one that needs no resource of ours; a Write also when none of
    // those that we know was offered.
    const bool read_only = (request_.rtr & (kRtrWrite | kRtrRead)) == kRtrRead;
    reply.rtr = read_only ? kRtrRead : kRtrWrite;
  }
  reply.private_data = {own_private_.data(), own_private_bytes_};
  state_ = ConnectionState::kConnecting;
  if (!send_frame(reply)) return {};
  if (request_.peer_to_peer) {
    establish();
    report_established_ = false;
    state_ = ConnectionState::kConnecting;
    phase_ = Phase::kReadyToReceive;
  } else {
    establish();
  }
  return {};
}

void IwarpConnection::reject(ConstBytes private_data) {
  if (state_ != ConnectionState::kRequested) return;
  MpaFrame reply;
  reply.reply = true;
  reply.reject = true;
  reply.enhanced = true;
  reply.crc = request_.crc;
  if (private_data.size() <= kPrivateDataMax) reply.private_data = private_data;
  send_frame(reply);
  close();
}

// --- both ---

void IwarpConnection::establish() {
  segment_ = segment_size(socket_.get(), fabric_->options().segment_max);
  tx_->start(socket_.get(), segment_, crc_, ord_, ird_, !client_);
  rx_->start(socket_.get(), crc_);
  may_sleep_ = client_ && let_receive_sleep(socket_.get());
  limits_.inline_max = 0;
  limits_.gather_max = kGatherMax;
  limits_.message_max = kMessageMax;
  limits_.ird = ird_;
  limits_.ord = ord_;
  state_ = ConnectionState::kEstablished;
  phase_ = Phase::kNone;
  report_established_ = true;
  wake_at_ns_ = 0;
}

void IwarpConnection::drive_setup() {
  if (phase_ == Phase::kTcp) tcp_connected();
  if (phase_ == Phase::kReply && state_ == ConnectionState::kConnecting) read_reply();
  if (phase_ == Phase::kReadyToReceive) {
    // Its first byte is enough: the Transmitter stays held until an FPDU was found whole and valid.
    std::byte first;
    const ssize_t got = recv(socket_.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0) {
      state_ = ConnectionState::kEstablished;
      phase_ = Phase::kNone;
      report_established_ = true;
    } else if (got == 0 || errno != EAGAIN) {
      fail_with(ECONNRESET, "closed the connection before its ready-to-receive message");
    }
  }
  if (state_ == ConnectionState::kConnecting && now_ns() >= deadline_ns_) setup_timed_out();
}

void IwarpConnection::setup_timed_out() {
  const std::string waited = client_ ? " within " + milliseconds(timeout_ms_) : " in time";
  if (phase_ == Phase::kTcp) {
    fail_with(ETIMEDOUT, "no TCP connection" + waited);
  } else if (phase_ == Phase::kReply) {
    fail_with(ETIMEDOUT, "TCP connected, but no MPA reply" + waited +
                             ": too many set-ups at once, or that port is no iWARP one");
  } else {
    fail_with(ETIMEDOUT, "no ready-to-receive message" + waited);
  }
}

}  // namespace nfsrdma::iwarp
