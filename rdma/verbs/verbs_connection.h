// SPDX-License-Identifier: GPL-2.0-or-later
// One connection of the verbs fabric: a queue pair, its completion queue, and the connection
// manager's id, all made anew by each set-up.
//
// verbs_setup.cc: client's and server's set-up; verbs_queues.cc: making, draining, destroying the
// queues; verbs_post.cc: posting; verbs_poll.cc: completions, waiting, failures.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "verbs_cm.h"
#include "verbs_fabric_impl.h"
#include "verbs_requests.h"

namespace nfsrdma::verbs {

/// Spans of a Send or Write: head, bulk data, pad, and one to spare.
constexpr uint32_t kGatherMax = 4;
/// Work requests that one doorbell hands over at most.
constexpr uint32_t kBatchMax = 128;

/// Work request ids: of a receive, this bit and the buffer; of the send queue, the number.
constexpr uint64_t kReceiveBit = uint64_t{1} << 63;
constexpr bool is_receive(uint64_t wr_id) {
  return (wr_id & kReceiveBit) != 0;
}

/// A file descriptor, owned.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

class VerbsConnection final : public Connection {
 public:
  /// A client's, idle.
  VerbsConnection(VerbsFabric& fabric, const ConnectionConfig& config);
  /// A server's, in state kRequested: `id` is already of `channel`.
  VerbsConnection(EventChannel channel, CmId id, const CmEvent& request, uint32_t timeout_ms);
  ~VerbsConnection() override { close(); }

  Result<void> start_connect(const ConnectRequest& request) override;
  Result<void> accept(Fabric& fabric, const ConnectionConfig& config,
                      ConstBytes private_data) override;
  void reject(ConstBytes private_data) override;
  ConstBytes peer_private_data() const override {
    return {peer_private_.data(), peer_private_bytes_};
  }
  ConnectionState state() const override { return state_; }
  const Error& error() const override { return error_; }
  const ConnectionLimits& limits() const override { return limits_; }

  bool post_receive(uint32_t buffer) override;
  bool post_send(uint64_t context, std::span<const LocalSpan> gather, uint32_t flags,
                 RemoteKey key) override;
  bool post_write(uint64_t context, std::span<const LocalSpan> gather, RemoteMemory sink,
                  uint32_t flags) override;
  bool post_read(uint64_t context, LocalSpan sink, RemoteMemory source) override;
  void ring() override;
  uint32_t poll(std::span<Completion> completions) override;
  bool prepare_wait(pollfd& wait) override;
  uint64_t next_timer_ns() const override;
  Result<RemoteMemory> bind_key(RegionId region, ConstBytes memory, Access access) override;
  bool unbind_key(RemoteKey key, uint64_t context) override;
  void close() override;

  std::string peer_address() const override;
  std::string local_address() const override;
  std::vector<std::pair<std::string, std::string>> negotiated() const override;
  const FabricCounters& counters() const override { return counters_; }

 private:
  enum class Phase : uint8_t { kNone, kAddress, kRoute, kReply };

  // verbs_setup.cc
  void configure(VerbsFabric& fabric, const ConnectionConfig& config);
  void drive_setup();
  void take_event(const CmEvent& event);
  void address_resolved();
  void route_resolved();
  void establish(const CmEvent& event);
  rdma_conn_param connect_parameters();
  void keep_peer_private(const CmEvent& event);
  bool keep_private(ConstBytes private_data);
  void setup_timed_out();
  uint32_t milliseconds_left() const;

  // verbs_queues.cc
  Result<void> make_channel();
  Result<void> make_queues();
  Result<void> make_queue_pair();
  Result<void> post_all_receives();
  void drain();
  void destroy_queues();

  // verbs_post.cc
  ibv_send_wr* next_request(ibv_wr_opcode opcode, bool quiet);
  bool fill_gather(ibv_send_wr& wr, std::span<const LocalSpan> gather, bool copy);
  void commit_request(ibv_send_wr& wr, const Request& request);
  void queue_receive(uint32_t buffer);
  bool push_receives();
  bool push_sends();
  void send_wake();

  // verbs_poll.cc
  bool take_completion(const ibv_wc& wc, Completion& out);
  bool take_receive(const ibv_wc& wc, Completion& out);
  bool retire(uint64_t number, Completion& out);
  void take_wakeup();
  void look_at_events();
  void wake_peer();
  void fail_with(Error error);

  VerbsFabric* fabric_ = nullptr;
  ConnectionConfig config_;
  EventChannel channel_;
  CmId id_;
  Descriptor wake_fd_;  // epoll over the two channels, so that one poll(2) sees both
  ibv_comp_channel* completions_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;

  ConnectionState state_ = ConnectionState::kIdle;
  Phase phase_ = Phase::kNone;
  bool client_ = true;
  bool was_connected_ = false;  // the queue pair may hold work that must be drained
  bool report_established_ = false;
  bool report_disconnected_ = false;
  Error error_;
  ConnectionLimits limits_;
  FabricCounters counters_;

  std::string peer_name_;
  uint32_t timeout_ms_ = 0;
  uint64_t deadline_ns_ = 0;
  uint32_t asked_ird_ = 1, asked_ord_ = 0;
  std::array<std::byte, kPrivateDataMax> own_private_;
  size_t own_private_bytes_ = 0;
  std::array<std::byte, kCmPrivateMax> peer_private_;
  size_t peer_private_bytes_ = 0;

  // The send queue. The last pending_ of what was posted wait for the doorbell.
  RequestQueue posted_;
  uint32_t queue_size_ = 0;
  uint32_t unsignalled_ = 0;  // since the last signalled one
  uint32_t pending_ = 0;
  uint32_t binds_pending_ = 0;  // of them
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> spans_;
  std::vector<std::byte> inline_copies_;

  // The receive queue.
  std::vector<ibv_recv_wr> receive_requests_;
  std::vector<ibv_sge> receive_spans_;
  uint32_t receive_lkey_ = 0;
  uint32_t receives_pending_ = 0;
  uint32_t receives_posted_ = 0;

  bool armed_ = false;    // the completion channel wakes at the next completion
  bool slept_ = false;    // prepare_wait() has said so
  bool more_ = false;     // the last poll filled its batch
  uint32_t unacked_ = 0;  // events of the completion channel
  uint32_t idle_polls_ = 0;

  WindowPool windows_;
  RegistrationPool registrations_;

  // siw's accept race (see wake_peer()).
  bool heard_ = false;
  bool sent_ = false;
  uint64_t wake_at_ns_ = 0;
  uint64_t wake_delay_ns_ = 0;
};

}  // namespace nfsrdma::verbs
