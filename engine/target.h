// SPDX-License-Identifier: GPL-2.0-or-later
// From the engine's options to a server: URL, credential, and how to connect.
#pragma once

#include <string>

#include "engine_api.h"
#include "namespace_client.h"
#include "transport.h"

namespace nfsrdma {

struct Target {
  NfsUrl url;
  NamespaceConfig mounting;   ///< with the credential
  TransportConfig transport;  ///< host and port are set by connect_*()
  std::string directory;      ///< nfs_dir, "" for none

  /// A file's path below the URL's.
  [[nodiscard]] std::string path_of(const std::string& name) const;
};

/// EINVAL with a sentence for what the options say wrongly. `stop` ends connecting and mounting.
Result<Target> target_of(const nfsrdma_options& options, StopFlag stop = nullptr);

/// TCP connections of the control plane.
ConnectTcp tcp_connector(const Target& target);

/// One of the job's connections, by the transport that the options ask for.
Result<std::unique_ptr<Transport>> connect_data(const nfsrdma_options& options,
                                                const TransportConfig& config, const NfsUrl& url);

}  // namespace nfsrdma
