// SPDX-License-Identifier: GPL-2.0-or-later
// The iwarp fabric's own side of iwarp_fabric.h: options and the table of regions.
#pragma once

#include "iwarp_fabric.h"
#include "stag_table.h"

namespace nfsrdma::iwarp {

class IwarpFabric final : public Fabric {
 public:
  explicit IwarpFabric(const IwarpOptions& options);

  std::string_view name() const override { return "iwarp"; }
  std::string device() const override { return {}; }

  Result<RegionId> register_memory(Bytes memory, Access access) override;
  void deregister_memory(RegionId region) override;
  RemoteMemory remote_memory(RegionId region, const std::byte* at) const override;

  KeyPerCall key_per_call() const override { return KeyPerCall::kTableEntry; }
  bool remote_invalidation() const override { return true; }

  Result<std::unique_ptr<Connection>> make_connection(const ConnectionConfig& config) override;
  Result<std::unique_ptr<Listener>> listen(const ListenConfig& config) override;

  /// Whether a connection can be made with it: sizes within bounds, receive buffers in a region.
  Result<void> check(const ConnectionConfig& config) const;
  const IwarpOptions& options() const { return options_; }
  StagTable& regions() { return regions_; }

 private:
  IwarpOptions options_;
  StagTable regions_;
};

Result<std::unique_ptr<Listener>> make_iwarp_listener(const ListenConfig& config);

}  // namespace nfsrdma::iwarp
