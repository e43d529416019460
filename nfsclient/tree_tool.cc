// SPDX-License-Identifier: GPL-2.0-or-later
// nfsrdma-tree: what a script needs on an NFS server without a mount: free space, folders, and
// removing a folder with all below it.
#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "namespace_client.h"
#include "tcp_transport.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kConnectTimeoutMs = 10'000;

Result<std::unique_ptr<NamespaceClient>> mount(const std::string& text) {
  auto url = parse_nfs_url(text);
  if (!url) return tl::unexpected(url.error());
  const ConnectTcp connect = [](const std::string& host, uint16_t port,
                                StopFlag) -> Result<std::unique_ptr<Transport>> {
    TransportConfig config;
    config.host = host;
    config.port = port;
    config.slots = 1;
    config.head_max = 4096;
    config.bulk_max = 0;
    config.connect_timeout_ms = kConnectTimeoutMs;
    auto transport = TcpTransport::open(config);
    if (!transport) return tl::unexpected(transport.error());
    return std::unique_ptr<Transport>(std::move(*transport));
  };
  NamespaceConfig config;
  config.credential = credential_of(*url, Credential::of_process());
  return NamespaceClient::mount(*url, connect, config);
}

int print_space(NamespaceClient& client) {
  auto space = client.nfs().fsstat(client.root(), "/");
  if (!space) {
    std::fprintf(stderr, "nfsrdma-tree: %s\n", space.error().text.c_str());
    return 1;
  }
  std::printf("total %" PRIu64 "\nfree %" PRIu64 "\navailable %" PRIu64 "\n", space->tbytes,
              space->fbytes, space->abytes);
  return 0;
}

template <typename T>
int tell(const Result<T>& result) {
  if (result) return 0;
  std::fprintf(stderr, "nfsrdma-tree: %s\n", result.error().text.c_str());
  return 1;
}

int run(int argc, char** argv) {
  CLI::App app("Free space and folders of an NFSv3 server, without a mount", "nfsrdma-tree");
  app.require_subcommand(1);
  std::string url;
  std::string folder;
  auto* df = app.add_subcommand("df", "Print total, free and available bytes");
  auto* mkdir = app.add_subcommand("mkdir", "Make a folder, and those above it");
  auto* rmtree = app.add_subcommand("rmtree", "Remove a folder with all below it");
  for (auto* command : {df, mkdir, rmtree})
    command->add_option("URL", url, "nfs://host/export")->required();
  for (auto* command : {mkdir, rmtree})
    command->add_option("DIR", folder, "Folder below the URL's path")->required();
  CLI11_PARSE(app, argc, argv);

  auto client = mount(url);
  if (!client) return tell(client);
  int status = 0;
  if (df->parsed()) status = print_space(**client);
  if (mkdir->parsed()) status = tell((*client)->make_directories(folder));
  if (rmtree->parsed()) status = tell((*client)->remove_tree(folder));
  (*client)->unmount();
  return status;
}

}  // namespace
}  // namespace nfsrdma

int main(int argc, char** argv) {
  return nfsrdma::run(argc, argv);
}
