// SPDX-License-Identifier: GPL-2.0-or-later
// The RPC-over-RDMA transport over the real iwarp fabric, against a server that breaks its rules:
// the connection ends, no memory beyond the offered chunk is touched, and the call is sent again or
// fails with a reason.
#include <arpa/inet.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "iwarp_fabric.h"
#include "rdma_rig.h"

namespace nfsrdma::testing {
namespace {

constexpr uint32_t kSize = 8192;
constexpr uint32_t kReceives = 8;

// A server on a thread of its own: `behave` sees each call, and may do anything.
class RawServer {
 public:
  using Behave = std::function<void(RawServer&, Connection&, const RdmaHeader&)>;

  explicit RawServer(Behave behave) : behave_(std::move(behave)), fabric_(make_iwarp_fabric({})) {
    receive_.resize(size_t{kReceives} * 4096);
    data_.assign(1 << 16, std::byte{0xee});
    ListenConfig listen;
    auto* address = reinterpret_cast<sockaddr_in*>(&listen.local);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto listener = fabric_->listen(listen);
    EXPECT_TRUE(listener) << listener.error().text;
    listener_ = std::move(*listener);
    port_ = listener_->port();
    thread_ = std::thread([this] { run(); });
  }
  ~RawServer() {
    stop_ = true;
    thread_.join();
  }

  [[nodiscard]] uint16_t port() const { return port_; }
  /// To be done on the server's thread, with the newest connection.
  void later(std::function<void(RawServer&, Connection&)> task) {
    const std::lock_guard<std::mutex> guard(mutex_);
    task_ = std::move(task);
  }

  void write(Connection& to, RemoteKey key, uint64_t address, uint32_t length) {
    const LocalSpan from{data_.data(), length, data_region_};
    to.post_write(0, {&from, 1}, {key, address});
  }
  void send(Connection& to, ConstBytes message) {
    std::copy(message.begin(), message.end(), data_.begin() + 32768);
    const LocalSpan from{data_.data() + 32768, static_cast<uint32_t>(message.size()), data_region_};
    to.post_send(0, {&from, 1});
    to.ring();
  }

  std::atomic<uint32_t> connections{0};
  std::atomic<uint32_t> calls{0};

 private:
  void run() {
    receive_region_ = *fabric_->register_memory(receive_, Access::kLocalWrite);
    data_region_ = *fabric_->register_memory(data_, Access::kNone);
    while (!stop_) {
      if (auto fresh = listener_->poll()) accept(std::move(fresh));
      if (connection_) poll_connection();
      std::function<void(RawServer&, Connection&)> task;
      {
        const std::lock_guard<std::mutex> guard(mutex_);
        task.swap(task_);
      }
      if (task && connection_) {
        task(*this, *connection_);
        connection_->ring();
      }
      poll(nullptr, 0, 1);
    }
    connection_.reset();
  }
  void accept(std::unique_ptr<Connection> fresh) {
    connection_ = std::move(fresh);
    ConnectionConfig config;
    config.receive_memory = receive_;
    config.receive_region = receive_region_;
    config.receive_count = kReceives;
    config.receive_size = 4096;
    config.read_depth = 4;
    config.ord = 1;
    const auto data = encode_cm_private_data(
        {.remote_invalidation = true, .send_size = 4096, .receive_size = 4096});
    EXPECT_TRUE(connection_->accept(*fabric_, config, data));
    ++connections;
  }
  void poll_connection() {
    std::array<Completion, 8> completions;
    const uint32_t count = connection_->poll(completions);
    for (uint32_t i = 0; i < count; ++i) {
      const Completion& completion = completions[i];
      if (completion.kind == CompletionKind::kDisconnected) {
        connection_.reset();
        return;
      }
      if (completion.kind != CompletionKind::kReceive) continue;
      RdmaHeader header;
      const ConstBytes message(receive_.data() + size_t{completion.buffer} * 4096,
                               completion.bytes);
      EXPECT_EQ(decode_rdma_header(message, header), HeaderFault::kNone);
      ++calls;
      behave_(*this, *connection_, header);
      connection_->post_receive(completion.buffer);
      connection_->ring();
    }
  }

  Behave behave_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connection> connection_;
  std::vector<std::byte> receive_;
  std::vector<std::byte> data_;
  RegionId receive_region_ = kNoRegion;
  RegionId data_region_ = kNoRegion;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::function<void(RawServer&, Connection&)> task_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class RpcRdmaHostile : public RdmaRig {
 protected:
  // Memory: a canary, the buffer, a canary.
  RpcRdmaHostile() {
    memory.assign(3 * kSize, std::byte{0xc5});
    config.timeo_ms = 300;
    config.connect_timeout_ms = 5000;
  }
  void open_to(const RawServer& server) {
    config.port = server.port();
    auto opened = RpcRdmaTransport::open(config, options, make_iwarp_fabric({}));
    ASSERT_TRUE(opened) << opened.error().text;
    transport = std::move(*opened);
    transport->set_sink(this);
    ASSERT_TRUE(transport->add_memory(memory));
  }
  void read() { call(5, 32, {}, Bytes(memory).subspan(kSize, kSize)); }
  void expect_canaries() {
    for (size_t i = 0; i < kSize; ++i) {
      ASSERT_EQ(memory[i], std::byte{0xc5}) << i;
      ASSERT_EQ(memory[2 * kSize + i], std::byte{0xc5}) << i;
    }
  }
  static void good_reply(RawServer& server, Connection& to, const RdmaHeader& call) {
    const RdmaSegment offered = call.writes.front()[0];
    server.write(to, offered.handle, offered.offset, kSize);
    const RdmaSegment used{offered.handle, kSize, offered.offset};
    const WriteChunk chunk(&used, 1);
    RdmaHeaderOut header{.xid = call.xid, .credits = 4};
    header.writes = {&chunk, 1};
    server.send(to, message(header, rpc_reply(call.xid, {0, kSize})));
  }
};

TEST_F(RpcRdmaHostile, GoodServerFirst) {
  RawServer server(
      [](RawServer& s, Connection& to, const RdmaHeader& call) { good_reply(s, to, call); });
  for (const bool key_per_call : {false, true}) {
    options.key_per_call = key_per_call;
    open_to(server);
    ends.clear();
    read();
    ASSERT_TRUE(run_until_ended(1, 5000));
    EXPECT_EQ(ends[0].error, 0) << ends[0].text;
    EXPECT_EQ(ends[0].bulk_length, kSize);
    EXPECT_EQ(memory[kSize], std::byte{0xee});
    EXPECT_EQ(memory[2 * kSize - 1], std::byte{0xee});
    expect_canaries();
    transport.reset();
  }
}

struct BadWrite {
  const char* what;
  int key_step;
  int64_t offset_step;
};

// The first answer breaks the rules, the second is right: the call is sent again and succeeds.
TEST_F(RpcRdmaHostile, WritesBeyondTheOfferEndTheConnection) {
  options.key_per_call = true;
  for (const BadWrite bad :
       {BadWrite{"one byte beyond", 0, 1}, BadWrite{"one byte before", 0, -1},
        BadWrite{"wrong key", 1, 0}, BadWrite{"far away", 0, int64_t{1} << 40}}) {
    SCOPED_TRACE(bad.what);
    std::atomic<bool> first{true};
    RawServer server([&](RawServer& s, Connection& to, const RdmaHeader& call) {
      if (!first.exchange(false)) return good_reply(s, to, call);
      const RdmaSegment offered = call.writes.front()[0];
      s.write(to, offered.handle + static_cast<uint32_t>(bad.key_step),
              offered.offset + static_cast<uint64_t>(bad.offset_step), kSize);
      to.ring();
    });
    open_to(server);
    ends.clear();
    read();
    ASSERT_TRUE(run_until_ended(1, 5000));
    EXPECT_EQ(ends[0].error, 0) << ends[0].text;
    EXPECT_EQ(ends[0].retransmissions, 1u);
    EXPECT_GE(server.connections, 2u);
    expect_canaries();
    transport.reset();
  }
}

TEST_F(RpcRdmaHostile, WriteAfterTheCallEndedIsRefused) {
  options.key_per_call = true;
  std::atomic<uint32_t> key{0};
  std::atomic<uint64_t> offset{0};
  RawServer server([&](RawServer& s, Connection& to, const RdmaHeader& call) {
    key = call.writes.front()[0].handle;
    offset = call.writes.front()[0].offset;
    good_reply(s, to, call);
  });
  open_to(server);
  read();
  ASSERT_TRUE(run_until_ended(1, 5000));
  std::fill(memory.begin(), memory.end(), std::byte{0xc5});  // the buffer is used again
  server.later([&](RawServer& s, Connection& to) { s.write(to, key, offset, kSize); });
  run_until([] { return false; }, 200);
  for (const std::byte byte : memory) ASSERT_EQ(byte, std::byte{0xc5});
  // The connection did not survive it; the next call goes over another.
  read();
  ASSERT_TRUE(run_until_ended(2, 5000));
  EXPECT_EQ(ends[1].error, 0) << ends[1].text;
  EXPECT_EQ(server.connections, 2u);
}

// Long-lived keys: what keeps a late server out is the end of the connection.
TEST_F(RpcRdmaHostile, WriteAfterAbandonArrivesNowhere) {
  std::atomic<uint32_t> key{0};
  std::atomic<uint64_t> offset{0};
  std::atomic<bool> seen{false};
  RawServer server([&](RawServer&, Connection&, const RdmaHeader& call) {
    key = call.writes.front()[0].handle;
    offset = call.writes.front()[0].offset;
    seen = true;
  });
  config.timeo_ms = 60'000;
  open_to(server);
  read();
  ASSERT_TRUE(run_until([&] { return seen.load(); }, 5000));
  transport->abandon({ECANCELED, "enough"});
  ASSERT_EQ(ends.size(), 1u);
  server.later([&](RawServer& s, Connection& to) { s.write(to, key, offset, kSize); });
  run_until([] { return false; }, 100);
  for (const std::byte byte : memory) ASSERT_EQ(byte, std::byte{0xc5});
}

TEST_F(RpcRdmaHostile, SendLargerThanTheReceive) {
  std::atomic<bool> first{true};
  RawServer server([&](RawServer& s, Connection& to, const RdmaHeader& call) {
    if (!first.exchange(false)) return good_reply(s, to, call);
    s.send(to, std::vector<std::byte>(4097, std::byte{1}));
  });
  open_to(server);
  read();
  ASSERT_TRUE(run_until_ended(1, 5000));
  EXPECT_EQ(ends[0].error, 0) << ends[0].text;
  EXPECT_EQ(ends[0].retransmissions, 1u);
  expect_canaries();
}

TEST_F(RpcRdmaHostile, MoreSendsThanReceives) {
  config.slots = 4;
  std::atomic<bool> first{true};
  RawServer server([&](RawServer& s, Connection& to, const RdmaHeader& call) {
    if (!first.exchange(false)) return good_reply(s, to, call);
    for (int i = 0; i < 64; ++i) s.send(to, message({.xid = 1, .credits = 4}, rpc_reply(1)));
  });
  open_to(server);
  read();
  ASSERT_TRUE(run_until_ended(1, 5000));
  EXPECT_EQ(ends[0].error, 0) << ends[0].text;
  expect_canaries();
}

TEST_F(RpcRdmaHostile, ConnectionsClosedAtOnceForEver) {
  config.timeo_ms = 100;
  RawServer server([](RawServer&, Connection& to, const RdmaHeader&) { to.close(); });
  open_to(server);
  read();
  ASSERT_TRUE(run_until_ended(1, 5000));
  EXPECT_EQ(ends[0].error, ETIMEDOUT);
  EXPECT_NE(ends[0].text.find("not connected"), std::string::npos) << ends[0].text;
  expect_canaries();
}

}  // namespace
}  // namespace nfsrdma::testing
