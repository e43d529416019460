// SPDX-License-Identifier: GPL-2.0-or-later
// From an NFS URL to the file handle of its path: ports, MOUNT, and where the whole path cannot be
// mounted, the longest export above it and LOOKUP for the rest. All of it over TCP.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nfs3_control.h"
#include "nfs3_types.h"
#include "result.h"
#include "rpc_message.h"
#include "sync_caller.h"
#include "transport.h"
#include "url.h"

namespace nfsrdma {

/// Opens a connection; must be bounded by a deadline of its own, and end early at `stop`.
using ConnectTcp = std::function<Result<std::unique_ptr<Transport>>(const std::string& host,
                                                                    uint16_t port, StopFlag stop)>;

struct NamespaceConfig {
  Credential credential = Credential::of_process();
  uint32_t call_timeout_ms = 20'000;
  uint32_t jukebox_tries = 8;
  uint32_t jukebox_first_ms = 100;
  StopFlag stop = nullptr;  ///< ends what waits, mounting too, with EINTR; not unmount()
};

/// `base` with the URL's uid= and gid=. Another uid has other groups: those of `base` are dropped.
Credential credential_of(const NfsUrl& url, Credential base);

/// What mounting found out.
struct Mounted {
  FileHandle root;        ///< of the URL's path
  Attributes attributes;  ///< of the root
  FsInfo limits;
  std::string host;  ///< which of the URL's hosts answered
  uint16_t nfs_port = 0;
  uint16_t mount_port = 0;
  std::string exported;  ///< the path that was mounted: the URL's, or an export above it
  std::unique_ptr<SyncCaller> caller;  ///< connected to the NFS port
  Nfs3ControlConfig control;           ///< for an Nfs3Control over `caller`
};

/// Tries the URL's hosts, addresses of one server, until the MOUNT service of one answers. Errors
/// say what was tried and what to change.
Result<Mounted> mount_url(const NfsUrl& url, const ConnectTcp& connect,
                          const NamespaceConfig& config);

}  // namespace nfsrdma
