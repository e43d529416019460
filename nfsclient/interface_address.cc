// SPDX-License-Identifier: GPL-2.0-or-later
#include "interface_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace nfsrdma {
namespace {

std::string numeric(const sockaddr* address) {
  const socklen_t length =
      address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return {};
  }
  return text.data();
}

}  // namespace

Result<std::string> interface_address(const std::string& name, int family) {
  if (if_nametoindex(name.c_str()) == 0) {
    return fail(ENODEV, "nfs_url: if=" + name + ": this machine has no such network interface");
  }
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return fail(errno, std::string("cannot list the network interfaces: ") + strerror(errno));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const int wanted : {AF_INET, AF_INET6}) {
    if (family != AF_UNSPEC && family != wanted) continue;
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
      if (name != at->ifa_name || at->ifa_addr == nullptr) continue;
      if (at->ifa_addr->sa_family != wanted) continue;
      std::string text = numeric(at->ifa_addr);
      if (!text.empty()) return text;
    }
  }
  return fail(EADDRNOTAVAIL, "nfs_url: if=" + name + ": the interface has no address" +
                                 (family == AF_UNSPEC ? "" : " of the server's family"));
}

}  // namespace nfsrdma
