// SPDX-License-Identifier: GPL-2.0-or-later
// RPC-over-RDMA for nfsrdma-memd: a listener of the iwarp or the verbs fabric and worker threads,
// each with a Fabric, staging memory and connections of its own. Connections are dealt out in turn.
//
// Threads: create(), start(), stop() belong to one, the starter's.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "rdma_connection.h"

namespace nfsrdma::memd {

class RdmaServer {
 public:
  /// Binds; port() is known afterwards. `service` and `faults` outlive the server.
  static Result<std::unique_ptr<RdmaServer>> create(const RdmaServerOptions& options,
                                                    NfsService& service, FaultPlan& faults);
  ~RdmaServer();
  RdmaServer(const RdmaServer&) = delete;
  RdmaServer& operator=(const RdmaServer&) = delete;

  [[nodiscard]] uint16_t port() const { return port_; }
  void start();
  /// Ends the threads and their connections; idempotent.
  void stop();

  // After stop():
  void add_counters(ServiceCounters& sum) const;
  [[nodiscard]] uint64_t accepted() const { return accepted_; }

 private:
  class Worker;

  RdmaServer(const RdmaServerOptions& options, NfsService& service, FaultPlan& faults);
  void accept_all();

  const RdmaServerOptions options_;
  NfsService& service_;
  FaultPlan& faults_;
  uint16_t port_ = 0;
  std::unique_ptr<Fabric> listener_fabric_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_{false};
  size_t next_worker_ = 0;
  uint64_t accepted_ = 0;  // by the first worker's thread
};

}  // namespace nfsrdma::memd
