// SPDX-License-Identifier: GPL-2.0-or-later
// The queues of a connection: made during set-up, with what the device has; drained and destroyed
// at its end, after which the peer reaches no memory of ours.
#include <fcntl.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport.h"
#include "verbs_connection.h"

namespace nfsrdma::verbs {
namespace {

// Asked for in this order until the device grants one.
constexpr std::array<uint32_t, 4> kInlineWanted{256, 128, 64, 0};
constexpr uint32_t kInlineMost = 512;
// Zero-length Writes of wake_peer().
constexpr uint32_t kWakeRoom = 8;
constexpr uint64_t kDrainNs = 500'000'000;
// Devices of which the marker never comes back (siw) say nothing any more for so long.
constexpr uint64_t kDrainQuietNs = 5'000'000;
constexpr timespec kDrainPause{0, 200'000};

Error no_queue(int code, const std::string& device, const std::string& what) {
  return {code, "RDMA device " + device + " gave no " + what + ": " + strerror(code) +
                    (code == ENOMEM ? " (its limits, or `ulimit -l`)" : "")};
}

bool watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> VerbsConnection::make_channel() {
  if (!channel_) {
    auto channel = open_event_channel();
    if (!channel) return tl::unexpected(channel.error());
    channel_ = std::move(*channel);
  }
  if (wake_fd_.get() >= 0) return {};
  wake_fd_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (wake_fd_.get() < 0 || !watch(wake_fd_.get(), channel_->fd)) {
    const int code = errno;
    wake_fd_ = Descriptor();
    return fail(code, std::string("no epoll: ") + strerror(code));
  }
  return {};
}

Result<void> VerbsConnection::make_queues() {
  ibv_context* context = fabric_->context();
  const ibv_device_attr& device = fabric_->limits().attr;
  const uint32_t keys = fabric_->limits().windows ? config_.key_count : 0;
  // A key takes two places: one to bind it, one to invalidate it.
  queue_size_ = config_.send_depth + config_.read_depth + 2 * keys + kWakeRoom;
  if (queue_size_ > static_cast<uint32_t>(device.max_qp_wr))
    return fail(EINVAL, "RDMA device " + fabric_->device() + " has queues of " +
                            std::to_string(device.max_qp_wr) + " entries, " +
                            std::to_string(queue_size_) + " are needed: lower credits");
  completions_ = ibv_create_comp_channel(context);
  if (completions_ == nullptr)
    return tl::unexpected(no_queue(errno, fabric_->device(), "completion channel"));
  const int flags = fcntl(completions_->fd, F_GETFL);
  if (flags < 0 || fcntl(completions_->fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
      !watch(wake_fd_.get(), completions_->fd))
    return tl::unexpected(no_queue(errno, fabric_->device(), "usable completion channel"));
  const uint32_t entries = queue_size_ + config_.receive_count + 1;
  cq_ = ibv_create_cq(context, static_cast<int>(entries), nullptr, completions_, 0);
  if (cq_ == nullptr)
    return tl::unexpected(no_queue(errno, fabric_->device(),
                                   "completion queue of " + std::to_string(entries) + " entries"));
  auto made = make_queue_pair();
  if (!made) return made;
  if (keys != 0) {
    made = windows_.open(fabric_->pd(), keys);
    if (!made) return made;
  } else {
    registrations_.open(config_.key_count);
  }
  posted_.open(queue_size_);
  requests_.resize(kBatchMax);
  spans_.resize(size_t{kBatchMax} * kGatherMax);
  inline_copies_.resize(size_t{kBatchMax} * limits_.inline_max);
  unsignalled_ = pending_ = binds_pending_ = 0;
  armed_ = slept_ = more_ = false;
  idle_polls_ = 0;
  heard_ = sent_ = false;
  wake_at_ns_ = 0;
  return post_all_receives();
}

Result<void> VerbsConnection::make_queue_pair() {
  const ibv_device_attr& device = fabric_->limits().attr;
  int code = EINVAL;
  for (const uint32_t inline_wanted : kInlineWanted) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq_;
    wanted.qp_type = IBV_QPT_RC;
    wanted.sq_sig_all = 0;
    wanted.cap.max_send_wr = queue_size_;
    wanted.cap.max_recv_wr = std::max(config_.receive_count, 1u);
    wanted.cap.max_send_sge = std::min<uint32_t>(kGatherMax, static_cast<uint32_t>(device.max_sge));
    wanted.cap.max_recv_sge = 1;
    wanted.cap.max_inline_data = inline_wanted;
    if (rdma_create_qp(id_.get(), fabric_->pd(), &wanted) == 0) {
      qp_ = id_->qp;
      limits_.inline_max = std::min(wanted.cap.max_inline_data, kInlineMost);
      return {};
    }
    code = errno;
  }
  return tl::unexpected(no_queue(code, fabric_->device(),
                                 "queue pair with " + std::to_string(queue_size_) + " sends and " +
                                     std::to_string(config_.receive_count) + " receives"));
}

Result<void> VerbsConnection::post_all_receives() {
  receives_posted_ = receives_pending_ = 0;
  if (config_.receive_count == 0) return {};
  const ibv_mr* mr = fabric_->holding(config_.receive_region, config_.receive_memory.data(),
                                      config_.receive_memory.size(), Access::kLocalWrite);
  if (mr == nullptr) return fail(EINVAL, "the region of the receive buffers is gone");
  receive_lkey_ = mr->lkey;
  for (uint32_t buffer = 0; buffer < config_.receive_count; ++buffer) queue_receive(buffer);
  if (!push_receives())
    return fail(EIO, "RDMA device " + fabric_->device() + " took no receive buffers");
  return {};
}

// Every receive comes back flushed once the queue pair is in error, and so does a last request put
// behind the Sends. Bounded: the destruction that follows stops the device in any case.
void VerbsConnection::drain() {
  bool marked = false;
  ibv_send_wr marker{};
  marker.wr_id = UINT64_MAX >> 1;
  marker.opcode = IBV_WR_SEND;
  marker.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  // Some devices take no request in this state, others take it and are silent.
  if (ibv_post_send(qp_, &marker, &bad) == 0) marked = true;
  uint64_t heard_at = now_ns();
  const uint64_t deadline = heard_at + kDrainNs;
  std::array<ibv_wc, 32> done;
  while (receives_posted_ > 0 || marked) {
    const int count = ibv_poll_cq(cq_, static_cast<int>(done.size()), done.data());
    if (count < 0) return;
    for (int i = 0; i < count; ++i) {
      if (is_receive(done[i].wr_id) && receives_posted_ > 0) --receives_posted_;
      if (done[i].wr_id == marker.wr_id) marked = false;
    }
    const uint64_t now = now_ns();
    if (count > 0) {
      heard_at = now;
      continue;
    }
    if (now >= deadline || (receives_posted_ == 0 && now - heard_at >= kDrainQuietNs)) return;
    nanosleep(&kDrainPause, nullptr);
  }
}

void VerbsConnection::destroy_queues() {
  if (cq_ != nullptr && unacked_ != 0) ibv_ack_cq_events(cq_, unacked_);
  unacked_ = 0;
  // Windows hold on to the queue pair that they are bound to.
  windows_.close();
  registrations_.close();
  if (qp_ != nullptr) rdma_destroy_qp(id_.get());
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
  if (completions_ != nullptr) ibv_destroy_comp_channel(completions_);
  qp_ = nullptr;
  cq_ = nullptr;
  completions_ = nullptr;
}

void VerbsConnection::close() {
  if (qp_ != nullptr) {
    if (was_connected_) {
      rdma_disconnect(id_.get());
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_ERR;
      ibv_modify_qp(qp_, &attr, IBV_QP_STATE);
      drain();
    }
  }
  destroy_queues();
  id_.reset();
  was_connected_ = false;
  state_ = ConnectionState::kIdle;
  phase_ = Phase::kNone;
  report_established_ = report_disconnected_ = false;
  peer_private_bytes_ = 0;
  posted_.clear();
  pending_ = receives_pending_ = receives_posted_ = 0;
}

}  // namespace nfsrdma::verbs
