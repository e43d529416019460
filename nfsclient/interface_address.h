// SPDX-License-Identifier: GPL-2.0-or-later
// The URL's if=: from the name of a network interface to a source address.
#pragma once

#include <string>

#include "result.h"

namespace nfsrdma {

/// A numeric address of the interface, IPv4 if it has one, of the family AF_INET, AF_INET6 or
/// AF_UNSPEC. ENODEV when there is no such interface, EADDRNOTAVAIL when it has no address.
Result<std::string> interface_address(const std::string& name, int family);

}  // namespace nfsrdma
