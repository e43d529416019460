// SPDX-License-Identifier: GPL-2.0-or-later
// nfsrdma-memd: an NFSv3 server that keeps its files in memory, for tests and benchmarks.
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "rdma_server.h"
#include "tcp_server.h"
#include "verbs_fabric.h"

namespace nfsrdma::memd {

namespace {

struct Settings {
  StoreOptions store;
  ServiceOptions service;
  TcpOptions tcp;
  RdmaServerOptions rdma;
  std::vector<std::string> faults;
  std::string log_calls;
  bool counters = false;
};

uint64_t half_of_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) / 2
                               : uint64_t{1} << 30;
}

void add_options(CLI::App& app, Settings& settings, uint64_t& delay_us, uint64_t& late_ms) {
  const CLI::AsSizeValue size(false);
  app.add_option("--port", settings.tcp.port, "TCP port of NFS and MOUNT; 0: a free one");
  app.add_option("--rdma-port", settings.rdma.port,
                 "port of RPC-over-RDMA (iWARP in user space, and the RDMA device that has the "
                 "address of --listen); 0: a free one");
  app.add_option("--credits", settings.rdma.credits, "RDMA: the grant in each reply")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--rdma-inline", settings.rdma.inline_size, "RDMA: inline size, whole KiB")
      ->check(CLI::Range(1024, 65536))
      ->capture_default_str();
  app.add_flag("--no-rdma-crc{false}", settings.rdma.crc,
               "iWARP: CRC of the FPDUs only where the client asks for it");
  app.add_option("--listen", settings.tcp.listen, "numeric address to listen on")
      ->capture_default_str();
  app.add_option("--portmap-port", settings.tcp.portmap_port,
                 "also answer portmap v2 GETPORT on this TCP port")
      ->check(CLI::Range(1, 65535));
  app.add_option("--threads", settings.tcp.threads, "event-loop threads")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--export", settings.store.exports, "path to export; may be given again")
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--capacity", settings.store.capacity,
                 "bytes of file data to hold (suffixes k, m, g, t), then NFS3ERR_NOSPC; default: "
                 "half of the memory, with --synthetic 1024 TiB")
      ->transform(size);
  app.add_option("--max-files", settings.store.files_max, "files and directories to hold")
      ->check(CLI::Range(2, 1 << 24))
      ->capture_default_str();
  app.add_flag("--read-only", settings.store.read_only, "changes answer NFS3ERR_ROFS");
  app.add_flag("--check-access", settings.store.check_access,
               "mode bits and owners count; else everyone may do everything");
  app.add_flag("--synthetic", settings.store.synthetic,
               "keep sizes only: READ returns a fixed pattern, WRITE drops the data");
  app.add_flag("--lossy", settings.store.lossy,
               "a simulated restart drops UNSTABLE data that no COMMIT has covered");
  app.add_option("--verifier-change-after", settings.service.verifier_change_after,
                 "simulate a restart after that many WRITEs (SIGUSR1: at any time)");
  app.add_option("--rtmax", settings.service.rtmax, "largest READ")
      ->transform(size)
      ->check(CLI::Range(512u, kTransferMax));
  app.add_option("--wtmax", settings.service.wtmax, "largest WRITE")
      ->transform(size)
      ->check(CLI::Range(512u, kTransferMax));
  app.add_option("--max-handle", settings.store.handle_length, "length of file handles")
      ->check(CLI::Range(kHandleMin, kHandleMax))
      ->capture_default_str();
  app.add_flag("--mount-exports-only", settings.service.mount_exports_only,
               "MNT of a folder below an export answers MNT3ERR_ACCES");
  app.add_option("--delay-us", delay_us, "put off each reply to READ, WRITE, COMMIT by this")
      ->check(CLI::Range(0, 60'000'000));
  app.add_option("--fault", settings.faults,
                 "KIND[:N[:PROCS[:TIMES]]]: spoil each Nth reply to PROCS (READ+WRITE), at most "
                 "TIMES times; may be given again. Kinds: " +
                     fault_names())
      ->allow_extra_args(false);
  app.add_option("--late-ms", late_ms, "how long --fault late puts off a reply")
      ->check(CLI::Range(0, 600'000))
      ->capture_default_str();
  app.add_option("--log-calls", settings.log_calls,
                 "write a line to this file for each call but READ");
  app.add_flag("--counters", settings.counters, "print counters as a line of JSON at the end");
}

/// What CLI11 cannot tell by itself; empty: all is well.
std::string contradiction(const Settings& settings) {
  if (settings.store.exports.size() > 64) return "at most 64 exports";
  for (const std::string& path : settings.store.exports) {
    if (path.empty() || path.front() != '/' || path.size() > kPathMax ||
        (path.size() > 1 && path.back() == '/')) {
      return "--export " + path + ": write an absolute path without a slash at its end";
    }
  }
  if (settings.store.lossy && settings.store.synthetic) {
    return "--lossy has nothing to lose with --synthetic: leave one away";
  }
  return {};
}

using RdmaServers = std::vector<std::unique_ptr<RdmaServer>>;

/// iWARP in user space always; then verbs, where a device has the address. Both ask for one port:
/// an iWARP device shares the ports of TCP, so that its listener may have to take another.
Result<RdmaServers> create_rdma(RdmaServerOptions options, NfsService& service, FaultPlan& faults) {
  RdmaServers servers;
  auto iwarp = RdmaServer::create(options, service, faults);
  if (!iwarp) return tl::unexpected(iwarp.error());
  servers.push_back(std::move(*iwarp));
  if (!verbs_device_present()) return servers;
  options.verbs = true;
  options.port = servers.front()->port();
  auto verbs = RdmaServer::create(options, service, faults);
  if (!verbs && verbs.error().code == EADDRINUSE) {
    options.port = 0;
    verbs = RdmaServer::create(options, service, faults);
  }
  if (verbs) {
    servers.push_back(std::move(*verbs));
  } else if (verbs.error().code != ENODEV) {
    std::fprintf(stderr, "nfsrdma-memd: iWARP alone, the RDMA device cannot be used: %s\n",
                 verbs.error().text.c_str());
  }
  return servers;
}

void print_counters(const TcpServer& server, const RdmaServers& rdma, const FaultPlan& faults,
                    CallLog* log) {
  ServiceCounters counters = server.counters();
  uint64_t accepted = 0;
  for (const auto& each : rdma) {
    each->add_counters(counters);
    accepted += each->accepted();
  }
  std::string text = "{\"procedures\": {";
  const char* separator = "";
  for (uint32_t i = 0; i < kProcIndices; ++i) {
    if (counters.calls[i] == 0) continue;
    text += separator + ("\"" + std::string(proc_name(i))) +
            "\": {\"calls\": " + std::to_string(counters.calls[i]) +
            ", \"errors\": " + std::to_string(counters.errors[i]) + "}";
    separator = ", ";
  }
  text += "}, \"bytes_read\": " + std::to_string(counters.bytes_read) +
          ", \"bytes_written\": " + std::to_string(counters.bytes_written) +
          ", \"bad_calls\": " + std::to_string(counters.bad_calls) +
          ", \"connections\": " + std::to_string(server.accepted()) +
          ", \"rdma_connections\": " + std::to_string(accepted) +
          ", \"send_calls\": " + std::to_string(server.send_calls()) +
          ", \"recv_calls\": " + std::to_string(server.recv_calls());
  if (faults.any()) text += ", \"faults\": " + faults.strikes_json();
  if (log != nullptr) text += ", \"duplicates\": " + std::to_string(log->duplicates());
  std::fprintf(stderr, "%s}\n", text.c_str());
}

int complain(const std::string& text) {
  std::fprintf(stderr, "nfsrdma-memd: %s\n", text.c_str());
  return 1;
}

void wait_for_the_end(const sigset_t& signals, Store& store) {
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGUSR1) store.simulate_restart();
}

void raise_descriptor_limit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int serve(const Settings& settings) {
  FaultPlan faults;
  for (const std::string& spec : settings.faults) {
    const auto added = faults.add(spec);
    if (!added) return complain(added.error().text);
  }
  std::unique_ptr<CallLog> log;
  if (!settings.log_calls.empty()) {
    auto opened = CallLog::open(settings.log_calls);
    if (!opened) return complain(opened.error().text);
    log = std::move(*opened);
  }
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread: all of them inherit it
  raise_descriptor_limit();

  Store store(settings.store);
  NfsService service(settings.service, store, faults, log.get());
  auto server = TcpServer::create(settings.tcp, service, faults);
  if (!server) return complain(server.error().text);
  const uint16_t port = (*server)->port();
  service.set_nfs_port(port);
  auto rdma = create_rdma(settings.rdma, service, faults);
  if (!rdma) return complain(rdma.error().text);
  (*server)->start();
  for (const auto& each : *rdma) {
    each->start();
    std::printf("%snfs://%s:%u%s?mountport=%u&rdmaport=%u\n",
                each == rdma->front() ? "" : "for fabric=verbs: ", (*server)->url_host().c_str(),
                port, settings.store.exports.front().c_str(), port, each->port());
  }
  std::fflush(stdout);
  wait_for_the_end(signals, store);
  for (const auto& each : *rdma) each->stop();
  (*server)->stop();
  if (settings.counters) print_counters(**server, *rdma, faults, log.get());
  return 0;
}

}  // namespace

}  // namespace nfsrdma::memd

int main(int argc, char** argv) {
  using namespace nfsrdma::memd;
  Settings settings;
  settings.store.capacity = 0;
  uint64_t delay_us = 0;
  uint64_t late_ms = 1000;
  CLI::App app("NFSv3 server in memory, for tests and benchmarks. Prints its URL when ready.",
               "nfsrdma-memd");
  add_options(app, settings, delay_us, late_ms);
  CLI11_PARSE(app, argc, argv);
  if (settings.store.capacity == 0) {
    settings.store.capacity = settings.store.synthetic ? uint64_t{1} << 50 : half_of_memory();
  }
  settings.tcp.delay_ns = delay_us * 1000;
  settings.tcp.late_ns = late_ms * 1'000'000;
  settings.rdma.listen = settings.tcp.listen;
  settings.rdma.threads = settings.tcp.threads;
  settings.rdma.delay_ns = settings.tcp.delay_ns;
  settings.rdma.late_ns = settings.tcp.late_ns;
  const std::string wrong = contradiction(settings);
  if (!wrong.empty()) return complain(wrong);
  return serve(settings);
}
