// SPDX-License-Identifier: GPL-2.0-or-later
// nfsrdma-ping: what a server negotiates over TCP or RDMA, and how fast it answers.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "ping_run.h"

int main(int argc, char** argv) {
  using namespace nfsrdma;
  PingOptions options;
  std::string transport = "tcp";
  std::string fabric = "auto";
  CLI::App app(
      "Mounts an NFSv3 URL, prints what was negotiated, and times NULL and GETATTR calls, one at "
      "a time.",
      "nfsrdma-ping");
  app.add_option("url", options.url, "nfs://host[:port]/path[?nfsport=&mountport=&rdmaport=]")
      ->required();
  app.add_option("--transport", transport, "tcp or rdma")->capture_default_str();
  app.add_option("--fabric", fabric, "auto, verbs or iwarp")->capture_default_str();
  app.add_option("--rdma-port", options.rdma.rdma_port, "the URL's rdmaport= wins")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--inline-size", options.rdma.inline_size, "offered, in bytes")
      ->check(CLI::Range(1024, 65536))
      ->capture_default_str();
  app.add_option("--credits", options.rdma.credits, "asked for; 0: as many as calls")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--iwarp-crc", options.rdma.iwarp_crc, "CRC32c over each FPDU")
      ->capture_default_str();
  app.add_flag("--key-per-call", options.rdma.key_per_call, "a key for each call");
  app.add_flag("--exports", options.exports, "list what the server exports, and stop");
  app.add_option("-c,--count", options.count, "calls of each procedure")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  app.add_option("--interval-us", options.interval_us, "pause between two calls")
      ->check(CLI::Range(0, 60'000'000))
      ->capture_default_str();
  app.add_option("--timeout-ms", options.timeout_ms, "of each call and connect")
      ->check(CLI::Range(100, 600'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto complain = [](const Error& error) {
    std::fprintf(stderr, "nfsrdma-ping: %s\n", error.text.c_str());
    return 1;
  };
  auto kind = parse_transport(transport);
  if (!kind) return complain(kind.error());
  auto chosen = parse_fabric(fabric);
  if (!chosen) return complain(chosen.error());
  options.rdma.transport = *kind;
  options.rdma.fabric = *chosen;
  auto done = run_ping(options, stdout);
  return done ? 0 : complain(done.error());
}
