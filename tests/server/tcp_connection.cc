// SPDX-License-Identifier: GPL-2.0-or-later
#include "tcp_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport.h"  // now_ns()

namespace nfsrdma::memd {

namespace {

constexpr uint32_t kMarkerLength = 4;
constexpr uint32_t kLastFragment = 1u << 31;
/// Room for small calls beyond the largest one.
constexpr size_t kBatchRoom = size_t{256} << 10;
/// Replies are sent once this much has gathered, so that the arena stays in the cache and the
/// client can begin, and at the end of each batch.
constexpr size_t kFlushBytes = size_t{256} << 10;
constexpr uint32_t kDelayedMax = 4096;

}  // namespace

TcpConnection::TcpConnection(int socket, std::string peer_host, uint16_t peer_port, EventLoop& loop,
                             NfsService& service, FaultPlan& faults, const TcpOptions& options,
                             std::atomic<uint32_t>& connections)
    : socket_(socket),
      peer_host_(std::move(peer_host)),
      peer_port_(peer_port),
      loop_(loop),
      service_(service),
      faults_(faults),
      options_(options),
      connections_(connections),
      in_length_(kMarkerLength + service.call_max() + kBatchRoom),
      in_(std::make_unique_for_overwrite<std::byte[]>(in_length_)),
      out_(service) {}

TcpConnection::~TcpConnection() {
  close(socket_);
  connections_.fetch_sub(1);
}

void TcpConnection::start(uint64_t id) {
  id_ = id;
  interest_ = EPOLLIN;
  if (!loop_.watch(socket_, interest_, this)) die();
}

void TcpConnection::die() {
  if (dead_) return;
  dead_ = true;
  shutdown(socket_, SHUT_RDWR);
  loop_.check(id_);
}

bool TcpConnection::may_answer() const {
  return !dead_ && !close_after_flush_ && !out_.full() && delayed_ < kDelayedMax;
}

void TcpConnection::ready(uint32_t events) {
  if (dead_) return;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) return die();
  if ((events & EPOLLOUT) != 0) {
    flush();
    process();  // calls that arrived while the queue was full
  }
  if (!dead_ && (events & EPOLLIN) != 0 && may_answer()) {
    receive();
    process();
  }
  update_interest();
}

void TcpConnection::receive() {
  if (in_begin_ == in_end_) {
    in_begin_ = in_end_ = 0;
  } else if (in_length_ - in_end_ < kBatchRoom) {
    std::memmove(in_.get(), in_.get() + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  ++loop_.recv_calls;
  const ssize_t length = recv(socket_, in_.get() + in_end_, in_length_ - in_end_, MSG_DONTWAIT);
  if (length > 0) {
    in_end_ += static_cast<size_t>(length);
  } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
    die();
  }
}

/// The next whole record, or false: more bytes are needed (or the connection is dead).
/// `consumed` is what it takes up in the buffer.
bool TcpConnection::next_record(ConstBytes& message, size_t& consumed) {
  while (in_end_ - in_begin_ >= kMarkerLength) {
    const std::byte* const at = in_.get() + in_begin_;
    const uint32_t marker = load_be32(at);
    const size_t length = marker & ~kLastFragment;
    if (assembly_.size() + length > service_.call_max()) {
      ++loop_.counters.bad_calls;
      die();
      return false;
    }
    if (in_end_ - in_begin_ < kMarkerLength + length) return false;
    const bool last = (marker & kLastFragment) != 0;
    if (last && assembly_.empty()) {
      message = {at + kMarkerLength, length};
      consumed = kMarkerLength + length;
      return true;
    }
    assembly_.insert(assembly_.end(), at + kMarkerLength, at + kMarkerLength + length);
    in_begin_ += kMarkerLength + length;
    if (last) {
      message = assembly_;
      consumed = 0;
      return true;
    }
  }
  return false;
}

void TcpConnection::process() {
  ConstBytes message;
  size_t consumed = 0;
  while (may_answer() && next_record(message, consumed)) {
    if (!answer(message)) return die();
    in_begin_ += consumed;
    assembly_.clear();
    if (out_.bytes() >= kFlushBytes && !blocked_) flush();
  }
  if (!held_.empty()) release_held();
  if (!dead_ && !blocked_ && !out_.empty()) flush();
}

bool TcpConnection::answer(ConstBytes message) {
  CallMessage call;
  call.head = message;
  call.peer_port = peer_port_;
  call.peer_host = peer_host_;
  reply_.head = out_.head_room();
  if (!service_.handle(call, reply_, loop_.counters)) return false;
  if (faults_.any_of_transport() || (options_.delay_ns != 0 && reply_.data_call)) {
    answer_with_faults(reply_);
  } else {
    out_.push(reply_);
  }
  return true;
}

/// The way of replies that are delayed or spoilt: all of it copied, then treated.
void TcpConnection::answer_with_faults(ReplyMessage& reply) {
  std::vector<std::byte> message = flatten(reply);
  service_.release(reply.spans());
  const auto fires = [&](Fault fault) { return faults_.fires(fault, reply.proc_index); };
  if (fires(Fault::kDrop)) return;
  if (fires(Fault::kCloseBefore)) return die();
  if (fires(Fault::kBadXid)) message[0] ^= std::byte{0x5a};
  if (fires(Fault::kGarbage)) fill_with_garbage(message);
  std::vector<std::byte> record = frame_record(message, fires(Fault::kFragment));
  if (fires(Fault::kHugeRecord)) store_be32(record.data(), UINT32_MAX);
  if (fires(Fault::kClose)) {
    record.resize(record.size() / 2);
    out_.push_raw(std::move(record), false);
    close_after_flush_ = true;
    return;
  }
  uint64_t delay_ns = reply.data_call ? options_.delay_ns : 0;
  if (fires(Fault::kLate)) delay_ns += options_.late_ns;
  const bool trickle = fires(Fault::kTrickle);
  if (fires(Fault::kDupReply)) send_record(record, trickle, delay_ns);
  if (delay_ns == 0 && fires(Fault::kReorder)) {
    held_.push_back(std::move(record));
    return;
  }
  send_record(std::move(record), trickle, delay_ns);
}

void TcpConnection::send_record(std::vector<std::byte> record, bool trickle, uint64_t delay_ns) {
  if (delay_ns == 0) return out_.push_raw(std::move(record), trickle);
  ++delayed_;
  loop_.send_later(id_, now_ns() + delay_ns, std::move(record), trickle);
}

void TcpConnection::release_held() {
  for (auto record = held_.rbegin(); record != held_.rend(); ++record) {
    out_.push_raw(std::move(*record), false);
  }
  held_.clear();
}

void TcpConnection::deliver(std::vector<std::byte> record, bool trickle) {
  --delayed_;
  if (close_after_flush_) return;
  out_.push_raw(std::move(record), trickle);
  if (!blocked_) flush();
  process();
  update_interest();
}

void TcpConnection::flush() {
  switch (out_.flush(socket_, loop_.send_calls)) {
    case SendQueue::Flushed::kAll:
      blocked_ = false;
      if (close_after_flush_) die();
      break;
    case SendQueue::Flushed::kBlocked:
      blocked_ = true;
      break;
    case SendQueue::Flushed::kBroken:
      die();
      break;
  }
}

void TcpConnection::update_interest() {
  if (dead_) return;
  const uint32_t wanted = (may_answer() ? EPOLLIN : 0u) | (blocked_ ? EPOLLOUT : 0u);
  if (wanted == interest_) return;
  interest_ = wanted;
  loop_.rewatch(socket_, wanted, this);
}

}  // namespace nfsrdma::memd
