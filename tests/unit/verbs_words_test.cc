// SPDX-License-Identifier: GPL-2.0-or-later
// What the verbs fabric says without a device: the rest of its tests need one (tests/interop).
#include "verbs_words.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <cerrno>

#include "verbs_fabric.h"

namespace nfsrdma::verbs {
namespace {

bool says(const Error& error, const char* words) {
  return error.text.find(words) != std::string::npos;
}

// InfiniBand Architecture Specification volume 1, table 110: 8 is "invalid service ID", 28 the
// consumer's own.
TEST(VerbsWords, RejectReasons) {
  const Error wrong_port = cm_error(RDMA_CM_EVENT_REJECTED, 8, 2'000, false);
  EXPECT_EQ(wrong_port.code, ECONNREFUSED);
  EXPECT_TRUE(says(wrong_port, "no RDMA service listens on that port")) << wrong_port.text;
  const Error consumer = cm_error(RDMA_CM_EVENT_REJECTED, 28, 2'000, false);
  EXPECT_EQ(consumer.code, ECONNREFUSED);
  EXPECT_TRUE(says(consumer, "the service rejected the set-up")) << consumer.text;
  EXPECT_EQ(cm_error(RDMA_CM_EVENT_REJECTED, 4, 2'000, false).code, ETIMEDOUT);
  EXPECT_TRUE(says(cm_error(RDMA_CM_EVENT_REJECTED, 99, 2'000, false), "99"));
}

TEST(VerbsWords, IwarpRejectsWithErrno) {
  const Error refused = cm_error(RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, 2'000, true);
  EXPECT_EQ(refused.code, ECONNREFUSED);
  EXPECT_TRUE(says(refused, "no RDMA service listens on that port")) << refused.text;
  // What siw reports when the backlog is full too: worth another try above.
  EXPECT_EQ(cm_error(RDMA_CM_EVENT_REJECTED, -ECONNRESET, 2'000, true).code, ECONNRESET);
}

TEST(VerbsWords, EventsHaveErrnoValues) {
  EXPECT_EQ(cm_error(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, 1, false).code, ENODEV);
  const Error silent = cm_error(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, 1234, false);
  EXPECT_EQ(silent.code, ETIMEDOUT);
  EXPECT_TRUE(says(silent, "1234 ms")) << silent.text;
  const Error gone = cm_error(RDMA_CM_EVENT_DEVICE_REMOVAL, 0, 1, false);
  EXPECT_EQ(gone.code, ENODEV);
  EXPECT_TRUE(says(gone, "removed")) << gone.text;
  EXPECT_EQ(cm_error(RDMA_CM_EVENT_DISCONNECTED, 0, 1, false).code, ECONNRESET);
}

TEST(VerbsWords, CompletionsKeepTheDevicesWord) {
  const Error error = completion_error(IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_TRUE(says(error, ibv_wc_status_str(IBV_WC_RNR_RETRY_EXC_ERR))) << error.text;
  for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_GENERAL_ERR; ++status)
    EXPECT_NE(completion_error(static_cast<ibv_wc_status>(status)).code, 0) << status;
}

TEST(VerbsWords, RefusedRegistrationNamesBytesAndLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  rlimit small = before;
  small.rlim_cur = 64 << 10;
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &small), 0);
  const Error error = registration_error(ENOMEM, 134'217'728, 4096, "mlx5_0");
  EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
  EXPECT_EQ(error.code, ENOMEM);
  EXPECT_TRUE(says(error, "mlx5_0")) << error.text;
  EXPECT_TRUE(says(error, "134217728 bytes (128 MiB)")) << error.text;
  EXPECT_TRUE(says(error, "4096 bytes (1 MiB) are registered")) << error.text;
  EXPECT_TRUE(says(error, "`ulimit -l` 64 (KiB)")) << error.text;
}

TEST(VerbsWords, AddressesAreNumeric) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(20049);
  ASSERT_EQ(inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr), 1);
  EXPECT_EQ(address_text(reinterpret_cast<sockaddr*>(&v4)), "192.0.2.1:20049");
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(1);
  ASSERT_EQ(inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr), 1);
  EXPECT_EQ(address_text(reinterpret_cast<sockaddr*>(&v6)), "[2001:db8::1]:1");
}

TEST(VerbsFabric, SaysThatThereIsNoDevice) {
  if (verbs_device_present()) return;  // tests/interop has the cases with one
  const auto made = make_verbs_fabric({});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ENODEV);
  EXPECT_TRUE(says(made.error(), "no RDMA device")) << made.error().text;
}

}  // namespace
}  // namespace nfsrdma::verbs
