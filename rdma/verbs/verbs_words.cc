// SPDX-License-Identifier: GPL-2.0-or-later
#include "verbs_words.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace nfsrdma::verbs {
namespace {

// Reasons of a CM REJ message that mean something to a user (InfiniBand Architecture Specification
// volume 1, section 12.6.7.2).
constexpr int kRejectNoQp = 1;
constexpr int kRejectNoResources = 3;
constexpr int kRejectTimeout = 4;
constexpr int kRejectUnsupported = 5;
constexpr int kRejectInvalidServiceId = 8;
constexpr int kRejectConsumer = 28;

Error rejection(int status, bool iwarp) {
  if (iwarp || status < 0) {
    const int code = status < 0 ? -status : ECONNREFUSED;
    if (code == ECONNREFUSED)
      return {
          code,
          "connection refused: no RDMA service listens on that port, or it rejected the set-up"};
    if (code == ECONNRESET)
      return {code,
              "set-up rejected or connection reset: the RDMA service refused it or had too many "
              "set-ups at once, or that port is no RDMA one"};
    return {code, std::string("set-up rejected: ") + strerror(code)};
  }
  const auto numbered = [status](const char* text) {
    return std::string(text) + " (reject reason " + std::to_string(status) + ")";
  };
  switch (status) {
    case kRejectInvalidServiceId:
      return {ECONNREFUSED, numbered("connection refused: no RDMA service listens on that port")};
    case kRejectConsumer:
      return {ECONNREFUSED, numbered("the service rejected the set-up")};
    case kRejectNoQp:
    case kRejectNoResources:
      return {ECONNREFUSED, numbered("rejected: the server's RDMA device has no resources left")};
    case kRejectTimeout:
      return {ETIMEDOUT, numbered("rejected: the set-up took too long")};
    case kRejectUnsupported:
      return {ECONNREFUSED, numbered("rejected: the server does not support what was asked for")};
    default:
      return {ECONNREFUSED, numbered("the server's connection manager rejected the set-up")};
  }
}

std::string because(int status) {
  return status < 0 ? std::string(": ") + strerror(-status)
                    : " (status " + std::to_string(status) + ")";
}

int code_of(int status, int other) {
  return status < 0 ? -status : other;
}

std::string mebibytes(uint64_t bytes) {
  return std::to_string(bytes) + " bytes (" + std::to_string((bytes + (1 << 20) - 1) >> 20) +
         " MiB)";
}

}  // namespace

std::string address_text(const sockaddr* address) {
  const socklen_t length = address->sa_family == AF_INET    ? sizeof(sockaddr_in)
                           : address->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                            : 0;
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (length == 0 || getnameinfo(address, length, host, sizeof host, port, sizeof port,
                                 NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  if (address->sa_family == AF_INET6) return std::string("[") + host + "]:" + port;
  return std::string(host) + ":" + port;
}

Error cm_error(rdma_cm_event_type event, int status, uint32_t timeout_ms, bool iwarp) {
  switch (event) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      if (status == -ENODEV) return {ENODEV, "the route there has no RDMA device"};
      return {code_of(status, EHOSTUNREACH),
              "its address was not resolved by the RDMA device's "
              "network" +
                  because(status)};
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return {code_of(status, EHOSTUNREACH), "no RDMA route there" + because(status)};
    case RDMA_CM_EVENT_UNREACHABLE:
      return {code_of(status, ETIMEDOUT), "no answer to the RDMA set-up within " +
                                              std::to_string(timeout_ms) + " ms" + because(status)};
    case RDMA_CM_EVENT_REJECTED:
      return rejection(status, iwarp);
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return {code_of(status, ECONNABORTED), "the RDMA set-up failed" + because(status)};
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return {ENODEV, "the RDMA device of this machine was removed"};
    case RDMA_CM_EVENT_DISCONNECTED:
      return {ECONNRESET, "the peer closed the connection, or the network did"};
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      return {ECONNRESET, "the connection ended"};
    default:
      return {EPROTO,
              std::string("unexpected event of the connection manager: ") + rdma_event_str(event)};
  }
}

Error completion_error(ibv_wc_status status) {
  const std::string said = std::string(" (the device reports: ") + ibv_wc_status_str(status) + ")";
  switch (status) {
    case IBV_WC_WR_FLUSH_ERR:
      return {ECONNRESET, "the connection ended" + said};
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return {EPROTO, "the peer had posted no receive: it granted more than it can take" + said};
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      return {ETIMEDOUT, "the peer's RDMA device does not answer any more" + said};
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      return {EREMOTEIO, "the peer's RDMA device refused an operation" + said};
    case IBV_WC_LOC_LEN_ERR:
      return {EMSGSIZE, "a message was longer than the receive buffer" + said};
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return {EFAULT, "the device refused our own memory" + said};
    default:
      return {EIO, "an RDMA operation failed" + said};
  }
}

Error registration_error(int code, uint64_t wanted, uint64_t registered,
                         const std::string& device) {
  std::string text = "RDMA device " + device + " did not register " + mebibytes(wanted) +
                     " of memory: " + strerror(code);
  rlimit limit{};
  if ((code == ENOMEM || code == EPERM || code == EAGAIN) &&
      getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    text += "; registered memory is locked memory, " + mebibytes(registered) +
            " are registered already, and the limit is `ulimit -l` " +
            std::to_string(limit.rlim_cur >> 10) +
            " (KiB): raise it (limits.conf: memlock, "
            "systemd: LimitMEMLOCK)";
  }
  return {code, text};
}

}  // namespace nfsrdma::verbs
