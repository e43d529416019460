// SPDX-License-Identifier: GPL-2.0-or-later
// A client for the tests of the embedded server. Arguments and results are coded by libnfs, so
// that no error of ours can stand on both sides; the calls go straight into the protocol core, or
// over a socket to a running server.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nfsc/libnfs-zdr.h>
// libnfs-zdr.h must come first.
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>
#include <nfsc/libnfs-raw-portmap.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "service.h"
#include "tcp_server.h"

namespace nfsrdma::memd {

struct ServerSettings {
  StoreOptions store;
  ServiceOptions service;
  TcpOptions tcp;
  std::vector<std::string> faults;
};

/// Store and protocol core; a TCP server around them if `over_tcp`.
class TestServer {
 public:
  TestServer(const ServerSettings& settings, bool over_tcp) : store(settings.store) {
    for (const std::string& fault : settings.faults) {
      const auto added = plan.add(fault);
      EXPECT_TRUE(added) << added.error().text;
    }
    service = std::make_unique<NfsService>(settings.service, store, plan, nullptr);
    if (!over_tcp) return;
    auto made = TcpServer::create(settings.tcp, *service, plan);
    EXPECT_TRUE(made) << made.error().text;
    tcp = std::move(*made);
    service->set_nfs_port(tcp->port());
    tcp->start();
  }
  ~TestServer() {
    if (tcp) tcp->stop();
  }

  Store store;
  FaultPlan plan;
  std::unique_ptr<NfsService> service;
  std::unique_ptr<TcpServer> tcp;
};

/// A blocking socket that speaks RPC records.
class RecordSocket {
 public:
  explicit RecordSocket(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit = {10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~RecordSocket() { close(fd_); }
  RecordSocket(const RecordSocket&) = delete;
  RecordSocket& operator=(const RecordSocket&) = delete;

  void send_bytes(ConstBytes bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ASSERT_GT(sent, 0);
      bytes = bytes.subspan(static_cast<size_t>(sent));
    }
  }
  void send_record(ConstBytes message) const { send_bytes(frame_record(message, false)); }

  /// False: closed, or nothing came within the limit.
  bool receive_bytes(Bytes to) const {
    while (!to.empty()) {
      const ssize_t got = recv(fd_, to.data(), to.size(), 0);
      if (got <= 0) return false;
      to = to.subspan(static_cast<size_t>(got));
    }
    return true;
  }
  /// The next message, its fragments joined; empty when the connection has ended.
  [[nodiscard]] std::vector<std::byte> receive_record(uint32_t* fragments = nullptr) const {
    std::vector<std::byte> message;
    uint32_t marker = 0;
    do {
      std::byte word[4];
      if (!receive_bytes(word)) return {};
      marker = load_be32(word);
      const size_t length = marker & 0x7fffffff;
      if (length > (size_t{2} << 20)) return {};
      const size_t at = message.size();
      message.resize(at + length);
      if (!receive_bytes(Bytes(message).subspan(at))) return {};
      if (fragments != nullptr) ++*fragments;
    } while ((marker & 0x80000000) == 0);
    return message;
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  const int fd_;
};

/// A result decoded by libnfs; owns what the decoder allocated and the bytes it points into.
template <typename T>
struct Decoded {
  T value{};
  uint32_t accept_stat = 0;  ///< AcceptStat, or UINT32_MAX: no accepted reply
  std::vector<std::byte> bytes;
  ZDR zdr{};
  ~Decoded() {
    if (accept_stat == 0) zdr_destroy(&zdr);
  }
  T* operator->() { return &value; }
};

struct Identity {
  uint32_t uid = 0;
  uint32_t gid = 0;
};

class TestClient {
 public:
  explicit TestClient(TestServer& server) : server_(server) {
    if (server.tcp) socket_ = std::make_unique<RecordSocket>(server.tcp->port());
  }

  template <typename Args, typename Res>
  std::unique_ptr<Decoded<Res>> call(uint32_t program, uint32_t version, uint32_t proc,
                                     uint32_t (*encode)(ZDR*, Args*), Args& args,
                                     uint32_t (*decode)(ZDR*, Res*)) {
    const std::vector<std::byte> message = encode_call(program, version, proc, encode, args);
    auto result = std::make_unique<Decoded<Res>>();
    result->bytes = exchange(message);
    decode_reply(*result, decode);
    return result;
  }

  template <typename Args, typename Res>
  std::unique_ptr<Decoded<Res>> nfs(uint32_t proc, uint32_t (*encode)(ZDR*, Args*), Args& args,
                                    uint32_t (*decode)(ZDR*, Res*)) {
    return call(kNfsProgram, kNfsVersion, proc, encode, args, decode);
  }

  template <typename Args>
  std::vector<std::byte> encode_call(uint32_t program, uint32_t version, uint32_t proc,
                                     uint32_t (*encode)(ZDR*, Args*), Args& args) {
    std::vector<std::byte> message((size_t{1} << 20) + 8192);
    XdrWriter head(message);
    head.u32(++xid);
    head.u32(kMsgCall);
    head.u32(kRpcVersion);
    head.u32(program);
    head.u32(version);
    head.u32(proc);
    head.u32(kAuthSys);
    head.u32(20 + 4);
    head.u32(0);
    head.string("test");
    head.u32(identity.uid);
    head.u32(identity.gid);
    head.u32(0);
    head.u32(kAuthNone);
    head.u32(0);
    ZDR zdr;
    zdrmem_create(&zdr, reinterpret_cast<char*>(message.data() + head.size()),
                  static_cast<uint32_t>(message.size() - head.size()), ZDR_ENCODE);
    EXPECT_TRUE(encode(&zdr, &args));
    message.resize(head.size() + zdr_getpos(&zdr));
    zdr_destroy(&zdr);
    return message;
  }

  std::vector<std::byte> exchange(ConstBytes message) {
    if (socket_) {
      socket_->send_record(message);
      return socket_->receive_record();
    }
    std::vector<std::byte> head(kReplyHeadMax);
    CallMessage call;
    call.head = message;
    call.peer_host = "in-process";
    ReplyMessage reply;
    reply.head = head;
    if (!server_.service->handle(call, reply, counters)) return {};
    std::vector<std::byte> answer = flatten(reply);
    server_.service->release(reply.spans());
    return answer;
  }

  template <typename Res>
  void decode_reply(Decoded<Res>& result, uint32_t (*decode)(ZDR*, Res*)) {
    XdrReader in(result.bytes);
    result.accept_stat = UINT32_MAX;
    EXPECT_EQ(in.u32(), xid);
    if (in.u32() != kMsgReply || in.u32() != kMsgAccepted) return;
    in.u32();
    in.opaque(kAuthBodyMax);
    result.accept_stat = in.u32();
    if (result.accept_stat != 0) return;
    zdrmem_create(&result.zdr, reinterpret_cast<char*>(result.bytes.data() + in.consumed()),
                  static_cast<uint32_t>(in.left()), ZDR_DECODE);
    EXPECT_TRUE(decode(&result.zdr, &result.value)) << "libnfs cannot decode the result";
    EXPECT_EQ(zdr_getpos(&result.zdr), in.left()) << "bytes behind the result";
  }

  Identity identity;
  uint32_t xid = 1000;
  ServiceCounters counters;

 private:
  TestServer& server_;
  std::unique_ptr<RecordSocket> socket_;
};

using Handle = std::string;

/// "f7" of "f" and 7.
inline std::string numbered(const char* stem, int number) {
  return std::string(stem).append(std::to_string(number));
}

inline nfs_fh3 fh(Handle& handle) {
  nfs_fh3 out = {};
  out.data.data_len = static_cast<u_int>(handle.size());
  out.data.data_val = handle.data();
  return out;
}

inline Handle handle_of(const nfs_fh3& handle) {
  return {handle.data.data_val, handle.data.data_len};
}

/// The procedures that most tests need, in a line each. Failures of the transport fail the test.
class Files {
 public:
  explicit Files(TestClient& client) : client_(client) {}

  Handle mount(const std::string& path, uint32_t* status = nullptr);
  Handle lookup(Handle dir, std::string name, nfsstat3* status = nullptr);
  fattr3 getattr(Handle file, nfsstat3* status = nullptr);
  Handle create(Handle dir, std::string name, nfsstat3* status = nullptr,
                createmode3 mode = GUARDED);
  Handle mkdir(Handle dir, std::string name, nfsstat3* status = nullptr);
  nfsstat3 remove(Handle dir, std::string name);
  nfsstat3 rmdir(Handle dir, std::string name);
  nfsstat3 rename(Handle from, std::string from_name, Handle to, std::string to_name);
  nfsstat3 link(Handle file, Handle dir, std::string name);
  nfsstat3 truncate(Handle file, uint64_t size);
  /// Returns the bytes accepted.
  uint32_t write(Handle file, uint64_t offset, std::string data, stable_how stable = FILE_SYNC,
                 nfsstat3* status = nullptr, std::string* verifier = nullptr);
  std::string read(Handle file, uint64_t offset, uint32_t count, nfsstat3* status = nullptr,
                   bool* eof = nullptr);
  std::string commit(Handle file, uint64_t offset, uint32_t count, nfsstat3* status = nullptr);

 private:
  TestClient& client_;
};

}  // namespace nfsrdma::memd
