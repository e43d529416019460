// SPDX-License-Identifier: GPL-2.0-or-later
// Registered memory and its keys.
#include "verbs_fabric.h"

#include <algorithm>
#include <cerrno>

#include "verbs_connection.h"
#include "verbs_fabric_impl.h"
#include "verbs_words.h"

namespace nfsrdma::verbs {
namespace {

constexpr uint32_t kRegionsMax = 4096;
constexpr uint32_t kDepthMax = 1u << 17;

int rights(Access access) {
  int flags = 0;
  if (has(access, Access::kLocalWrite)) flags |= IBV_ACCESS_LOCAL_WRITE;
  if (has(access, Access::kRemoteRead)) flags |= IBV_ACCESS_REMOTE_READ;
  if (has(access, Access::kRemoteWrite)) flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  return flags;
}

}  // namespace

VerbsFabric::~VerbsFabric() {
  for (const Region& region : regions_) {
    if (region.mr != nullptr) ibv_dereg_mr(region.mr);
  }
  if (pd_ != nullptr) ibv_dealloc_pd(pd_);
}

// With keys of their own the calls' memory grants nothing by itself, but windows can be bound to
// it.
int VerbsFabric::verbs_access(Access access) const {
  int flags = rights(access);
  if (options_.key_per_call) {
    flags &= IBV_ACCESS_LOCAL_WRITE;
    if (limits_.windows) flags |= IBV_ACCESS_MW_BIND;
  }
  if (options_.reads && limits_.iwarp && has(access, Access::kLocalWrite))
    flags |= IBV_ACCESS_REMOTE_WRITE;
  return flags;
}

Result<RegionId> VerbsFabric::register_memory(Bytes memory, Access access) {
  if (memory.empty()) return fail(EINVAL, "an empty range can't be registered");
  if (has(access, Access::kRemoteWrite)) access = access | Access::kLocalWrite;
  auto place = std::find_if(regions_.begin(), regions_.end(),
                            [](const Region& region) { return region.mr == nullptr; });
  if (place == regions_.end()) {
    if (regions_.size() == kRegionsMax)
      return fail(ENOSPC, "the verbs fabric keeps " + std::to_string(kRegionsMax) +
                              " memory regions, all are in use");
    place = regions_.insert(regions_.end(), Region{});
  }
  ibv_mr* mr = ibv_reg_mr(pd_, memory.data(), memory.size(), verbs_access(access));
  if (mr == nullptr)
    return tl::unexpected(registration_error(errno, memory.size(), registered_bytes_, device()));
  registered_bytes_ += memory.size();
  *place = {mr, access};
  return static_cast<RegionId>(place - regions_.begin());
}

void VerbsFabric::deregister_memory(RegionId region) {
  if (region >= regions_.size() || regions_[region].mr == nullptr) return;
  registered_bytes_ -= regions_[region].mr->length;
  ibv_dereg_mr(regions_[region].mr);
  regions_[region] = {};
}

RemoteMemory VerbsFabric::remote_memory(RegionId region, const std::byte* at) const {
  return {regions_[region].mr->rkey, reinterpret_cast<uint64_t>(at)};
}

Result<ibv_mr*> VerbsFabric::register_for_call(ConstBytes memory, Access access) {
  ibv_mr* mr =
      ibv_reg_mr(pd_, const_cast<std::byte*>(memory.data()), memory.size(), rights(access));
  if (mr == nullptr)
    return tl::unexpected(registration_error(errno, memory.size(), registered_bytes_, device()));
  return mr;
}

Result<void> VerbsFabric::check(const ConnectionConfig& config) const {
  if (config.send_depth == 0 || config.send_depth > kDepthMax || config.read_depth > kDepthMax ||
      config.receive_count > kDepthMax || config.key_count > kDepthMax)
    return fail(EINVAL, "a queue of a verbs connection holds 1 to " + std::to_string(kDepthMax) +
                            " entries");
  if (config.ird == 0) return fail(EINVAL, "IRD must be at least 1");
  if (config.read_depth != 0 && limits_.iwarp && !options_.reads)
    return fail(EINVAL, "this verbs fabric was made for connections without Reads");
  const uint64_t bytes = uint64_t{config.receive_count} * config.receive_size;
  if (bytes > config.receive_memory.size())
    return fail(EINVAL, std::to_string(config.receive_count) + " receive buffers of " +
                            std::to_string(config.receive_size) + " bytes need " +
                            std::to_string(bytes) + " bytes");
  if (config.receive_count != 0 &&
      holding(config.receive_region, config.receive_memory.data(), config.receive_memory.size(),
              Access::kLocalWrite) == nullptr)
    return fail(EINVAL, "receive buffers must lie in a region registered for local writes");
  return {};
}

Result<std::unique_ptr<Connection>> VerbsFabric::make_connection(const ConnectionConfig& config) {
  const Result<void> checked = check(config);
  if (!checked) return tl::unexpected(checked.error());
  return std::make_unique<VerbsConnection>(*this, config);
}

Result<std::unique_ptr<Listener>> VerbsFabric::listen(const ListenConfig& config) {
  return make_verbs_listener(*this, config);
}

}  // namespace nfsrdma::verbs

namespace nfsrdma {

Result<std::unique_ptr<Fabric>> make_verbs_fabric(const VerbsOptions& options) {
  return verbs::VerbsFabric::open(options);
}

}  // namespace nfsrdma
