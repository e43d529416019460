// SPDX-License-Identifier: GPL-2.0-or-later
// Listening sockets and the loops' threads. Connections are dealt out to the loops in turn.
//
// Threads: create(), start(), stop() belong to one, the starter's.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "event_loop.h"
#include "tcp_connection.h"

namespace nfsrdma::memd {

class TcpServer {
 public:
  /// Binds; port() is known afterwards. `service` and `faults` outlive the server.
  static Result<std::unique_ptr<TcpServer>> create(const TcpOptions& options, NfsService& service,
                                                   FaultPlan& faults);
  ~TcpServer();
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] uint16_t portmap_port() const { return portmap_port_; }
  /// The listening address as it stands in a URL, IPv6 in brackets.
  [[nodiscard]] const std::string& url_host() const { return url_host_; }

  void start();
  /// Ends the threads and their connections; idempotent.
  void stop();

  // After stop():
  [[nodiscard]] ServiceCounters counters() const;
  [[nodiscard]] uint64_t send_calls() const;
  [[nodiscard]] uint64_t recv_calls() const;
  [[nodiscard]] uint64_t accepted() const { return accepted_.load(); }

 private:
  class Listener;

  TcpServer(const TcpOptions& options, NfsService& service, FaultPlan& faults);
  Result<uint16_t> listen_on(uint16_t port);
  void accept_all(int listener);
  void deal_out(int socket, std::string peer_host, uint16_t peer_port);

  const TcpOptions options_;
  NfsService& service_;
  FaultPlan& faults_;
  uint16_t port_ = 0;
  uint16_t portmap_port_ = 0;
  std::string url_host_;
  size_t next_loop_ = 0;
  std::atomic<uint64_t> accepted_{0};
  std::atomic<uint32_t> connections_{0};
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::vector<std::thread> threads_;
};

}  // namespace nfsrdma::memd
