// SPDX-License-Identifier: GPL-2.0-or-later
#include "interface_address.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>

namespace nfsrdma {
namespace {

TEST(InterfaceAddress, Loopback) {
  auto address = interface_address("lo", AF_INET);
  ASSERT_TRUE(address) << address.error().text;
  EXPECT_TRUE(address->starts_with("127.")) << *address;
}

TEST(InterfaceAddress, Unknown) {
  auto address = interface_address("no-such-if", AF_UNSPEC);
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().code, ENODEV);
  EXPECT_NE(address.error().text.find("no-such-if"), std::string::npos);
}

}  // namespace
}  // namespace nfsrdma
