// SPDX-License-Identifier: GPL-2.0-or-later
// The NFS URL: nfs://host[,host2...][:port]/path[?argument=value&...], as RFC 2224 and libnfs
// write it. The text comes from a user: its length, numbers and path are bounded and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result.h"

namespace nfsrdma {

constexpr size_t kUrlMax = 4096;     ///< bytes of a URL
constexpr size_t kUrlHostsMax = 16;  ///< addresses of one server
constexpr size_t kHostMax = 253;     ///< bytes of a host name (RFC 1035)

struct NfsUrl {
  std::vector<std::string> hosts;  ///< names or addresses, without brackets; at least one
  /// Absolute, percent-decoded, without "." or empty components and without a slash at its end;
  /// "/" for the server's root.
  std::string path;

  uint16_t nfs_port = 0;    ///< :port or nfsport=; 0: ask the port mapper
  uint16_t mount_port = 0;  ///< mountport=; 0: ask the port mapper
  uint16_t rdma_port = 0;   ///< rdmaport=; 0: not given

  std::optional<uint32_t> uid;        ///< uid=
  std::optional<uint32_t> gid;        ///< gid=
  std::optional<uint32_t> timeo_ms;   ///< timeo=, there in tenths of a second
  std::optional<uint32_t> retrans;    ///< retrans=
  std::optional<uint32_t> read_max;   ///< rsize=: bytes of a READ at most
  std::optional<uint32_t> write_max;  ///< wsize=
  std::string interface;              ///< if=: the interface whose address is the source address

  /// One sentence for each argument that libnfs knows and that does nothing here.
  std::vector<std::string> warnings;
};

/// EINVAL with a sentence that says what to write instead.
Result<NfsUrl> parse_nfs_url(std::string_view url);

/// "host:port", "[address]:port" for IPv6 addresses.
std::string host_and_port(std::string_view host, uint16_t port);

}  // namespace nfsrdma
