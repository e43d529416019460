// SPDX-License-Identifier: GPL-2.0-or-later
#include "iwarp_fabric.h"

#include <cerrno>

#include "iwarp_connection.h"
#include "iwarp_fabric_impl.h"

namespace nfsrdma::iwarp {
namespace {

constexpr uint32_t kRegionsMax = 4096;
constexpr uint32_t kDepthMax = 1u << 17;
constexpr uint32_t kKeysMax = 1u << kStagIndexBits;

}  // namespace

IwarpFabric::IwarpFabric(const IwarpOptions& options)
    : options_(options), regions_(StagClass::kRegion, kRegionsMax) {}

Result<RegionId> IwarpFabric::register_memory(Bytes memory, Access access) {
  if (memory.empty()) return fail(EINVAL, "an empty range can't be registered");
  if (has(access, Access::kRemoteWrite)) access = access | Access::kLocalWrite;
  const uint32_t stag = regions_.insert(memory, access);
  if (stag == 0) {
    return fail(ENOSPC, "the iwarp fabric keeps " + std::to_string(kRegionsMax) +
                            " memory regions, all are in use");
  }
  return stag_index(stag);
}

void IwarpFabric::deregister_memory(RegionId region) {
  regions_.erase(regions_.stag_of(region));
}

RemoteMemory IwarpFabric::remote_memory(RegionId region, const std::byte* at) const {
  return {regions_.stag_of(region), static_cast<uint64_t>(at - regions_.memory(region).data())};
}

Result<void> IwarpFabric::check(const ConnectionConfig& config) const {
  if (config.send_depth == 0 || config.send_depth > kDepthMax || config.read_depth > kDepthMax ||
      config.receive_count > kDepthMax || config.key_count > kKeysMax) {
    return fail(EINVAL, "a queue of an iWARP connection holds " + std::to_string(kDepthMax) +
                            " entries and " + std::to_string(kKeysMax) + " keys at most");
  }
  if (config.ird == 0 || config.ird > kReadsMax || config.ord > kReadsMax) {
    return fail(EINVAL, "IRD must be 1 to " + std::to_string(kReadsMax) + ", ORD at most that");
  }
  const uint64_t bytes = uint64_t{config.receive_count} * config.receive_size;
  if (bytes > config.receive_memory.size()) {
    return fail(EINVAL, std::to_string(config.receive_count) + " receive buffers of " +
                            std::to_string(config.receive_size) + " bytes need " +
                            std::to_string(bytes) + " bytes");
  }
  if (config.receive_count == 0) return {};
  const Bytes region = regions_.memory(config.receive_region);
  if (config.receive_memory.data() < region.data() ||
      config.receive_memory.data() + config.receive_memory.size() > region.data() + region.size() ||
      !has(regions_.access(config.receive_region), Access::kLocalWrite)) {
    return fail(EINVAL, "receive buffers must lie in a region registered for local writes");
  }
  return {};
}

Result<std::unique_ptr<Connection>> IwarpFabric::make_connection(const ConnectionConfig& config) {
  const Result<void> checked = check(config);
  if (!checked) return tl::unexpected(checked.error());
  return std::make_unique<IwarpConnection>(*this, config);
}

Result<std::unique_ptr<Listener>> IwarpFabric::listen(const ListenConfig& config) {
  return make_iwarp_listener(config);
}

}  // namespace nfsrdma::iwarp

namespace nfsrdma {

std::unique_ptr<Fabric> make_iwarp_fabric(const IwarpOptions& options) {
  return std::make_unique<iwarp::IwarpFabric>(options);
}

}  // namespace nfsrdma
