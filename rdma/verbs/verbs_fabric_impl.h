// SPDX-License-Identifier: GPL-2.0-or-later
// The verbs fabric's own side of verbs_fabric.h: device, protection domain, registered regions.
#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <vector>

#include "verbs_cm.h"
#include "verbs_fabric.h"

namespace nfsrdma::verbs {

/// What the device can do, asked once.
struct DeviceLimits {
  ibv_device_attr attr{};
  uint32_t message_max = 0;
  bool iwarp = false;
  bool windows = false;          ///< memory windows of type 2
  bool send_invalidate = false;  ///< Send with Invalidate
  /// The bits of ibv_wc::wc_flags that mean: a Send with Invalidate.
  unsigned invalidated_flags = IBV_WC_WITH_INV;
  const char* transport = "";  ///< "iwarp", "infiniband" or "roce"
};

class VerbsFabric final : public Fabric {
 public:
  /// Finds the device.
  static Result<std::unique_ptr<Fabric>> open(const VerbsOptions& options);
  ~VerbsFabric() override;

  std::string_view name() const override { return "verbs"; }
  std::string device() const override { return ibv_get_device_name(context_->device); }

  Result<RegionId> register_memory(Bytes memory, Access access) override;
  void deregister_memory(RegionId region) override;
  RemoteMemory remote_memory(RegionId region, const std::byte* at) const override;

  KeyPerCall key_per_call() const override {
    return limits_.windows ? KeyPerCall::kMemoryWindow : KeyPerCall::kRegistration;
  }
  bool remote_invalidation() const override { return limits_.windows; }

  Result<std::unique_ptr<Connection>> make_connection(const ConnectionConfig& config) override;
  Result<std::unique_ptr<Listener>> listen(const ListenConfig& config) override;

  /// Whether a connection can be made with it.
  Result<void> check(const ConnectionConfig& config) const;

  ibv_context* context() const { return context_; }
  ibv_pd* pd() const { return pd_; }
  const DeviceLimits& limits() const { return limits_; }

  /// The region's registration when `memory` lies in it and it has the rights; else null.
  ibv_mr* holding(RegionId region, const std::byte* memory, uint64_t bytes, Access access) const {
    if (region >= regions_.size() || regions_[region].mr == nullptr) return nullptr;
    const Region& held = regions_[region];
    const auto* begin = static_cast<const std::byte*>(held.mr->addr);
    if (memory < begin || bytes > held.mr->length ||
        static_cast<uint64_t>(memory - begin) > held.mr->length - bytes ||
        !has(held.access, access))
      return nullptr;
    return held.mr;
  }
  /// Registers memory with the rights of a key for one call.
  Result<ibv_mr*> register_for_call(ConstBytes memory, Access access);

 private:
  struct Region {
    ibv_mr* mr = nullptr;
    Access access = Access::kNone;
  };

  explicit VerbsFabric(const VerbsOptions& options) : options_(options) {}
  Result<void> find_route();
  Result<void> find_local();
  Result<void> ask_device(uint32_t port);
  int verbs_access(Access access) const;

  VerbsOptions options_;
  EventChannel channel_;
  CmId id_;  // keeps librdmacm's hold on the device
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  DeviceLimits limits_;
  std::vector<Region> regions_;
  uint64_t registered_bytes_ = 0;
};

Result<std::unique_ptr<Listener>> make_verbs_listener(VerbsFabric& fabric,
                                                      const ListenConfig& config);

}  // namespace nfsrdma::verbs
