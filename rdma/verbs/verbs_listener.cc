// SPDX-License-Identifier: GPL-2.0-or-later
// The server's side of set-up: the connection manager keeps set-ups until their request is whole,
// so there is nothing half open to hold here.
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs_connection.h"
#include "verbs_fabric_impl.h"
#include "verbs_words.h"

namespace nfsrdma::verbs {
namespace {

constexpr uint32_t kEventsPerPoll = 32;

class VerbsListener final : public Listener {
 public:
  VerbsListener(VerbsFabric& fabric, EventChannel channel, CmId id, uint32_t timeout_ms)
      : fabric_(fabric),
        channel_(std::move(channel)),
        id_(std::move(id)),
        timeout_ms_(timeout_ms) {}

  uint16_t port() const override { return ntohs(rdma_get_src_port(id_.get())); }
  std::unique_ptr<Connection> poll() override;
  bool prepare_wait(pollfd& wait) override {
    wait = {channel_->fd, POLLIN, 0};
    return true;
  }
  uint64_t next_timer_ns() const override { return UINT64_MAX; }

 private:
  std::unique_ptr<Connection> take_request(const CmEvent& event);

  VerbsFabric& fabric_;
  EventChannel channel_;
  CmId id_;
  uint32_t timeout_ms_;
};

// The id moves to a channel of its own, so that the connection may live in another thread.
std::unique_ptr<Connection> VerbsListener::take_request(const CmEvent& event) {
  CmId id(event.id);
  auto channel = open_event_channel();
  if (id->verbs != fabric_.context() || !channel ||
      rdma_migrate_id(id.get(), channel->get()) != 0) {
    rdma_reject(id.get(), nullptr, 0);
    return nullptr;
  }
  return std::make_unique<VerbsConnection>(std::move(*channel), std::move(id), event, timeout_ms_);
}

std::unique_ptr<Connection> VerbsListener::poll() {
  CmEvent event;
  for (uint32_t i = 0; i < kEventsPerPoll && next_event(channel_.get(), event); ++i) {
    if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) continue;
    std::unique_ptr<Connection> made = take_request(event);
    if (made) return made;
  }
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<Listener>> make_verbs_listener(VerbsFabric& fabric,
                                                      const ListenConfig& config) {
  auto channel = open_event_channel();
  if (!channel) return tl::unexpected(channel.error());
  auto id = make_id(channel->get());
  if (!id) return tl::unexpected(id.error());
  ListenConfig wanted = config;
  auto* local = reinterpret_cast<sockaddr*>(&wanted.local);
  if (rdma_bind_addr(id->get(), local) != 0 ||
      rdma_listen(id->get(), static_cast<int>(config.backlog)) != 0) {
    const int code = errno;
    return fail(code, "no RDMA listener on " + address_text(local) + ": " + strerror(code));
  }
  return std::make_unique<VerbsListener>(fabric, std::move(*channel), std::move(*id),
                                         config.setup_timeout_ms);
}

}  // namespace nfsrdma::verbs
