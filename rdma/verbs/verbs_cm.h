// SPDX-License-Identifier: GPL-2.0-or-later
// The connection manager's channels, ids and events, owned; and route resolution.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cstdint>
#include <memory>

#include "result.h"
#include "xdr.h"

namespace nfsrdma::verbs {

struct ChannelDelete {
  void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
};
/// Non-blocking.
using EventChannel = std::unique_ptr<rdma_event_channel, ChannelDelete>;
Result<EventChannel> open_event_channel();

struct IdDelete {
  void operator()(rdma_cm_id* id) const { rdma_destroy_id(id); }
};
/// Its channel must outlive it; its queue pair is destroyed before.
using CmId = std::unique_ptr<rdma_cm_id, IdDelete>;
Result<CmId> make_id(rdma_event_channel* channel);

constexpr size_t kCmPrivateMax = 256;

/// An event, copied and acknowledged, so that nothing of it is owed to librdmacm.
struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_RESOLVED;
  int status = 0;
  rdma_cm_id* id = nullptr;  ///< a request: the new connection's, to be owned
  uint32_t responder_resources = 0;
  uint32_t initiator_depth = 0;
  size_t private_bytes = 0;
  std::array<std::byte, kCmPrivateMax> private_data;
};
/// False: none is there, or the channel is broken.
bool next_event(rdma_event_channel* channel, CmEvent& event);

/// Waits until `deadline_ns` for the next event of the channel.
bool wait_event(rdma_event_channel* channel, uint64_t deadline_ns, CmEvent& event);

}  // namespace nfsrdma::verbs
