// SPDX-License-Identifier: GPL-2.0-or-later
// From a route, or an address of our own, to the RDMA device, and what that can do.
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport.h"
#include "verbs_fabric_impl.h"
#include "verbs_words.h"

namespace nfsrdma {

bool verbs_device_present() {
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  if (devices == nullptr) return false;
  ibv_free_device_list(devices);
  return count > 0;
}

}  // namespace nfsrdma

namespace nfsrdma::verbs {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint32_t kVendorRxe = 0xffffff;

bool is_wildcard(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == INADDR_ANY;
  if (address.ss_family == AF_INET6)
    return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return true;
}

sockaddr* bare(sockaddr_storage& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

// librdmacm says only that it failed; these are the words for why.
Error no_device(int code, const std::string& where) {
  if (code == ENODEV || code == EADDRNOTAVAIL || code == ENOENT)
    return {ENODEV, where + " has no RDMA device"};
  return {code, where + " was not resolved for RDMA: " + strerror(code)};
}

}  // namespace

Result<void> VerbsFabric::find_route() {
  const std::string where = "the route to " + address_text(bare(options_.peer));
  sockaddr* source = options_.local.ss_family == AF_UNSPEC ? nullptr : bare(options_.local);
  const uint64_t deadline = now_ns() + options_.timeout_ms * kMillisecond;
  if (rdma_resolve_addr(id_.get(), source, bare(options_.peer),
                        static_cast<int>(options_.timeout_ms)) != 0)
    return tl::unexpected(no_device(errno, where));
  CmEvent event;
  if (!wait_event(channel_.get(), deadline, event))
    return fail(ETIMEDOUT, where + " was not resolved for RDMA within " +
                               std::to_string(options_.timeout_ms) + " ms");
  if (event.type == RDMA_CM_EVENT_ADDR_ERROR)
    return tl::unexpected(no_device(event.status < 0 ? -event.status : EHOSTUNREACH, where));
  if (event.type != RDMA_CM_EVENT_ADDR_RESOLVED)
    return tl::unexpected(cm_error(event.type, event.status, options_.timeout_ms, false));
  context_ = id_->verbs;
  if (context_ == nullptr) return fail(ENODEV, where + " has no RDMA device");
  return {};
}

Result<void> VerbsFabric::find_local() {
  if (!is_wildcard(options_.local)) {
    const std::string where = "the address " + address_text(bare(options_.local));
    sockaddr_storage any_port = options_.local;
    if (any_port.ss_family == AF_INET)
      reinterpret_cast<sockaddr_in&>(any_port).sin_port = 0;
    else
      reinterpret_cast<sockaddr_in6&>(any_port).sin6_port = 0;
    if (rdma_bind_addr(id_.get(), bare(any_port)) != 0)
      return tl::unexpected(no_device(errno, where));
    context_ = id_->verbs;
    if (context_ == nullptr) return fail(ENODEV, where + " has no RDMA device");
    return {};
  }
  int count = 0;
  ibv_context** devices = rdma_get_devices(&count);
  if (devices == nullptr || count == 0) {
    if (devices != nullptr) rdma_free_devices(devices);
    return fail(ENODEV, "this machine has no RDMA device");
  }
  context_ = devices[0];
  rdma_free_devices(devices);
  if (count > 1)
    return fail(EINVAL, "this machine has " + std::to_string(count) +
                            " RDMA devices: name the address of one instead of the wildcard");
  return {};
}

Result<void> VerbsFabric::ask_device(uint32_t port) {
  const int code = ibv_query_device(context_, &limits_.attr);
  if (code != 0) return fail(code, "RDMA device " + device() + ": " + strerror(code));
  limits_.iwarp = context_->device->transport_type == IBV_TRANSPORT_IWARP;
  ibv_port_attr port_attr{};
  // Before the first connection a server knows no port; all ports of a device are of one kind.
  if (ibv_query_port(context_, static_cast<uint8_t>(port != 0 ? port : 1), &port_attr) != 0)
    return fail(EIO, "RDMA device " + device() + " does not tell of its port");
  constexpr uint32_t kMessageMax = 1u << 30;
  limits_.message_max = std::min(port_attr.max_msg_sz, kMessageMax);
  limits_.transport = limits_.iwarp                                     ? "iwarp"
                      : port_attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "roce"
                                                                        : "infiniband";
  const unsigned flags = limits_.attr.device_cap_flags;
  limits_.send_invalidate = (flags & IBV_DEVICE_MEM_MGT_EXTENSIONS) != 0;
  // rxe (6.1) hands out the kernel's flag for Send with Invalidate, which has another value in user
  // space: that of a checksum's, which a reliable connection never has. A key that dies unnoticed
  // would be invalidated once more, which rxe does not survive.
  if (limits_.attr.vendor_id == kVendorRxe) limits_.invalidated_flags |= IBV_WC_IP_CSUM_OK;
  if ((flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0) {
    // Some drivers of user space lack what the device has.
    ibv_mw* window = ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
    limits_.windows = window != nullptr;
    if (window != nullptr) ibv_dealloc_mw(window);
  }
  return {};
}

Result<std::unique_ptr<Fabric>> VerbsFabric::open(const VerbsOptions& options) {
  if (!verbs_device_present()) return fail(ENODEV, "this machine has no RDMA device");
  std::unique_ptr<VerbsFabric> fabric(new VerbsFabric(options));
  auto channel = open_event_channel();
  if (!channel) return tl::unexpected(channel.error());
  fabric->channel_ = std::move(*channel);
  auto id = make_id(fabric->channel_.get());
  if (!id) return tl::unexpected(id.error());
  fabric->id_ = std::move(*id);
  auto found = options.peer.ss_family != AF_UNSPEC ? fabric->find_route() : fabric->find_local();
  if (!found) return tl::unexpected(found.error());
  fabric->pd_ = ibv_alloc_pd(fabric->context_);
  if (fabric->pd_ == nullptr) {
    const int code = errno;
    return fail(
        code, "RDMA device " + fabric->device() + " gave no protection domain: " + strerror(code));
  }
  auto asked = fabric->ask_device(fabric->id_->port_num);
  if (!asked) return tl::unexpected(asked.error());
  return std::unique_ptr<Fabric>(std::move(fabric));
}

}  // namespace nfsrdma::verbs
