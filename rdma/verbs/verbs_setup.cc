// SPDX-License-Identifier: GPL-2.0-or-later
// Set-up of a connection through the connection manager, driven by its events. Nothing waits.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport.h"
#include "verbs_connection.h"
#include "verbs_words.h"

namespace nfsrdma::verbs {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint32_t kDepthOfPeerMax = 255;
constexpr uint8_t kRetries = 7;
// A Send that finds no receive is an error of credits, not something to wait for.
constexpr uint8_t kReceiverNotReadyRetries = 0;

}  // namespace

VerbsConnection::VerbsConnection(VerbsFabric& fabric, const ConnectionConfig& config) {
  configure(fabric, config);
}

VerbsConnection::VerbsConnection(EventChannel channel, CmId id, const CmEvent& request,
                                 uint32_t timeout_ms)
    : channel_(std::move(channel)),
      id_(std::move(id)),
      state_(ConnectionState::kRequested),
      client_(false),
      timeout_ms_(timeout_ms),
      deadline_ns_(now_ns() + timeout_ms * kMillisecond),
      asked_ird_(request.responder_resources),
      asked_ord_(request.initiator_depth) {
  peer_name_ = peer_address();
  keep_peer_private(request);
}

void VerbsConnection::configure(VerbsFabric& fabric, const ConnectionConfig& config) {
  fabric_ = &fabric;
  config_ = config;
  receive_requests_.resize(config.receive_count);
  receive_spans_.resize(config.receive_count);
}

bool VerbsConnection::keep_private(ConstBytes private_data) {
  if (private_data.size() > kPrivateDataMax) return false;
  own_private_bytes_ = private_data.size();
  std::copy(private_data.begin(), private_data.end(), own_private_.begin());
  return true;
}

void VerbsConnection::keep_peer_private(const CmEvent& event) {
  peer_private_bytes_ = event.private_bytes;
  std::copy_n(event.private_data.begin(), event.private_bytes, peer_private_.begin());
}

uint32_t VerbsConnection::milliseconds_left() const {
  const uint64_t now = now_ns();
  return now >= deadline_ns_ ? 1 : static_cast<uint32_t>((deadline_ns_ - now) / kMillisecond + 1);
}

// --- client ---

Result<void> VerbsConnection::start_connect(const ConnectRequest& request) {
  if (state_ != ConnectionState::kIdle || fabric_ == nullptr)
    return fail(EBUSY, "the connection is in use");
  if (!keep_private(request.private_data)) return fail(EINVAL, "private data too long");
  ConnectRequest address = request;
  auto* peer = reinterpret_cast<sockaddr*>(&address.peer);
  auto* local = reinterpret_cast<sockaddr*>(&address.local);
  const std::string numeric = address_text(peer);
  if (numeric.empty()) return fail(EAFNOSUPPORT, "verbs needs an IPv4 or IPv6 address");
  peer_name_ = request.peer_name.empty() || numeric.rfind(request.peer_name + ":", 0) == 0
                   ? numeric
                   : request.peer_name + " (" + numeric + ")";
  auto made = make_channel();
  if (!made) return made;
  auto id = make_id(channel_.get());
  if (!id) return tl::unexpected(id.error());
  id_ = std::move(*id);
  client_ = true;
  error_ = {};
  limits_ = {};
  peer_private_bytes_ = 0;
  report_established_ = report_disconnected_ = false;
  timeout_ms_ = request.timeout_ms;
  deadline_ns_ = now_ns() + request.timeout_ms * kMillisecond;
  state_ = ConnectionState::kConnecting;
  phase_ = Phase::kAddress;
  if (rdma_resolve_addr(id_.get(), request.local.ss_family == AF_UNSPEC ? nullptr : local, peer,
                        static_cast<int>(request.timeout_ms)) != 0)
    fail_with(cm_error(RDMA_CM_EVENT_ADDR_ERROR, -errno, timeout_ms_, false));
  return {};
}

void VerbsConnection::address_resolved() {
  if (id_->verbs != fabric_->context()) {
    const char* other = id_->verbs != nullptr ? ibv_get_device_name(id_->verbs->device) : "none";
    fail_with({ENODEV, "the route there leads to another RDMA device (" + std::string(other) +
                           ") than the one that memory is registered with (" + fabric_->device() +
                           ")"});
    return;
  }
  phase_ = Phase::kRoute;
  if (rdma_resolve_route(id_.get(), static_cast<int>(milliseconds_left())) != 0)
    fail_with(cm_error(RDMA_CM_EVENT_ROUTE_ERROR, -errno, timeout_ms_, false));
}

void VerbsConnection::route_resolved() {
  const ibv_device_attr& device = fabric_->limits().attr;
  asked_ird_ = std::clamp<uint32_t>(
      config_.ird, 1, std::clamp<uint32_t>(device.max_qp_rd_atom, 1, kDepthOfPeerMax));
  asked_ord_ = std::min<uint32_t>(
      config_.ord, std::clamp<uint32_t>(device.max_qp_init_rd_atom, 0, kDepthOfPeerMax));
  auto made = make_queues();
  if (!made) {
    fail_with(made.error());
    return;
  }
  phase_ = Phase::kReply;
  rdma_conn_param parameters = connect_parameters();
  if (rdma_connect(id_.get(), &parameters) == 0) return;
  // siw makes the TCP connection within this call.
  if (fabric_->limits().iwarp)
    fail_with(cm_error(RDMA_CM_EVENT_REJECTED, -errno, timeout_ms_, true));
  else
    fail_with({errno, std::string("the RDMA set-up could not begin: ") + strerror(errno)});
}

rdma_conn_param VerbsConnection::connect_parameters() {
  rdma_conn_param parameters{};
  parameters.private_data = own_private_bytes_ != 0 ? own_private_.data() : nullptr;
  parameters.private_data_len = static_cast<uint8_t>(own_private_bytes_);
  parameters.responder_resources = static_cast<uint8_t>(asked_ird_);
  parameters.initiator_depth = static_cast<uint8_t>(asked_ord_);
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = kReceiverNotReadyRetries;
  return parameters;
}

// --- server ---

Result<void> VerbsConnection::accept(Fabric& fabric, const ConnectionConfig& config,
                                     ConstBytes private_data) {
  if (state_ != ConnectionState::kRequested) return fail(EBUSY, "no set-up waits to be accepted");
  if (fabric.name() != "verbs") return fail(EINVAL, "accepted by another fabric");
  auto& own = static_cast<VerbsFabric&>(fabric);
  if (own.context() != id_->verbs)
    return fail(EINVAL, "accepted by a fabric of another RDMA device");
  const Result<void> checked = own.check(config);
  if (!checked) return checked;
  if (!keep_private(private_data)) return fail(EINVAL, "private data too long");
  configure(own, config);
  // What the peer asked for bounds what we grant. Its numbers are seen from our side already.
  const ibv_device_attr& device = own.limits().attr;
  asked_ird_ = std::min({config.ird, asked_ird_, kDepthOfPeerMax,
                         static_cast<uint32_t>(std::max(device.max_qp_rd_atom, 1))});
  asked_ord_ = std::min({config.ord, asked_ord_, kDepthOfPeerMax,
                         static_cast<uint32_t>(std::max(device.max_qp_init_rd_atom, 0))});
  state_ = ConnectionState::kConnecting;
  phase_ = Phase::kReply;
  auto made = make_channel();
  if (made) made = make_queues();
  if (!made) {
    const Error error = made.error();
    rdma_reject(id_.get(), nullptr, 0);
    fail_with(error);
    return {};
  }
  rdma_conn_param parameters = connect_parameters();
  if (rdma_accept(id_.get(), &parameters) != 0)
    fail_with({errno, std::string("the set-up was not accepted: ") + strerror(errno)});
  else
    was_connected_ = true;
  return {};
}

void VerbsConnection::reject(ConstBytes private_data) {
  if (state_ != ConnectionState::kRequested) return;
  const size_t bytes = private_data.size() <= kPrivateDataMax ? private_data.size() : 0;
  rdma_reject(id_.get(), bytes != 0 ? private_data.data() : nullptr, static_cast<uint8_t>(bytes));
  close();
}

// --- both ---

void VerbsConnection::establish(const CmEvent& event) {
  const DeviceLimits& device = fabric_->limits();
  if (client_) {
    keep_peer_private(event);
    // The event tells what the peer can do, seen from our side; some iWARP drivers leave it empty.
    if (event.initiator_depth != 0) asked_ord_ = std::min(asked_ord_, event.initiator_depth);
    if (event.responder_resources != 0)
      asked_ird_ = std::min(asked_ird_, event.responder_resources);
  }
  limits_.gather_max = std::min<uint32_t>(kGatherMax, static_cast<uint32_t>(device.attr.max_sge));
  limits_.message_max = device.message_max;
  limits_.ird = asked_ird_;
  limits_.ord = asked_ord_;
  state_ = ConnectionState::kEstablished;
  phase_ = Phase::kNone;
  was_connected_ = true;
  report_established_ = true;
}

void VerbsConnection::take_event(const CmEvent& event) {
  if (id_ == nullptr || event.id != id_.get()) return;
  const bool setting_up = state_ == ConnectionState::kConnecting;
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (setting_up && phase_ == Phase::kAddress) address_resolved();
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (setting_up && phase_ == Phase::kRoute) route_resolved();
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      if (setting_up && phase_ == Phase::kReply) establish(event);
      return;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_ADDR_CHANGE:
    case RDMA_CM_EVENT_MULTICAST_JOIN:
    case RDMA_CM_EVENT_MULTICAST_ERROR:
      return;
    case RDMA_CM_EVENT_REJECTED:
      keep_peer_private(event);
      break;
    default:
      break;
  }
  fail_with(cm_error(event.type, event.status, timeout_ms_,
                     fabric_ != nullptr && fabric_->limits().iwarp));
}

void VerbsConnection::drive_setup() {
  CmEvent event;
  while (state_ == ConnectionState::kConnecting && next_event(channel_.get(), event))
    take_event(event);
  if (state_ == ConnectionState::kConnecting && now_ns() >= deadline_ns_) setup_timed_out();
}

void VerbsConnection::setup_timed_out() {
  const std::string waited = " within " + std::to_string(timeout_ms_) + " ms";
  switch (phase_) {
    case Phase::kAddress:
      fail_with({ETIMEDOUT, "its address was not resolved by the RDMA device's network" + waited});
      return;
    case Phase::kRoute:
      fail_with({ETIMEDOUT, "no RDMA route there" + waited});
      return;
    case Phase::kReply:
    case Phase::kNone:
      break;
  }
  fail_with(
      {ETIMEDOUT, "no answer to the RDMA set-up" + waited +
                      (client_ ? ": too many set-ups at once, or no RDMA service there" : "")});
}

std::string VerbsConnection::peer_address() const {
  return id_ != nullptr ? address_text(rdma_get_peer_addr(id_.get())) : std::string();
}

std::string VerbsConnection::local_address() const {
  return id_ != nullptr ? address_text(rdma_get_local_addr(id_.get())) : std::string();
}

std::vector<std::pair<std::string, std::string>> VerbsConnection::negotiated() const {
  return {{"link", fabric_ != nullptr ? fabric_->limits().transport : ""},
          {"ird", std::to_string(limits_.ird)},
          {"ord", std::to_string(limits_.ord)},
          {"send_copied_to", std::to_string(limits_.inline_max)}};
}

}  // namespace nfsrdma::verbs
