// SPDX-License-Identifier: GPL-2.0-or-later
#include "verbs_cm.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "transport.h"

namespace nfsrdma::verbs {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

}  // namespace

Result<EventChannel> open_event_channel() {
  EventChannel channel(rdma_create_event_channel());
  if (!channel) {
    const int code = errno != 0 ? errno : ENODEV;
    return fail(code, std::string("no access to the RDMA connection manager (kernel module "
                                  "rdma_ucm, /dev/infiniband/rdma_cm): ") +
                          strerror(code));
  }
  const int flags = fcntl(channel->fd, F_GETFL);
  if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    const int code = errno;
    return fail(
        code, std::string("the RDMA event channel can't be made non-blocking: ") + strerror(code));
  }
  return channel;
}

Result<CmId> make_id(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) {
    const int code = errno;
    return fail(code, std::string("the RDMA connection manager made no id: ") + strerror(code));
  }
  return CmId(id);
}

bool next_event(rdma_event_channel* channel, CmEvent& event) {
  rdma_cm_event* got = nullptr;
  int result;
  do {
    result = rdma_get_cm_event(channel, &got);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return false;
  event.type = got->event;
  event.status = got->status;
  event.id = got->id;
  event.responder_resources = got->param.conn.responder_resources;
  event.initiator_depth = got->param.conn.initiator_depth;
  event.private_bytes = 0;
  if (got->param.conn.private_data != nullptr) {
    event.private_bytes = std::min<size_t>(got->param.conn.private_data_len, kCmPrivateMax);
    std::memcpy(event.private_data.data(), got->param.conn.private_data, event.private_bytes);
  }
  rdma_ack_cm_event(got);
  return true;
}

bool wait_event(rdma_event_channel* channel, uint64_t deadline_ns, CmEvent& event) {
  for (;;) {
    if (next_event(channel, event)) return true;
    const uint64_t now = now_ns();
    if (now >= deadline_ns) return false;
    pollfd wait{channel->fd, POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>((deadline_ns - now + kMillisecond - 1) / kMillisecond));
  }
}

}  // namespace nfsrdma::verbs
