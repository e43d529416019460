// SPDX-License-Identifier: GPL-2.0-or-later
// The RPC-over-RDMA transport on a fake fabric: calls of a made-up protocol, and replies in any
// shape a test wants.
//
// A call's head: xid, a tag, words that fill it up, and for data out their length. A reply: xid, a
// status, and with status 0 and data in their length and the data.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "cm_private_data.h"
#include "fake_fabric.h"
#include "rpcrdma_header.h"
#include "rpcrdma_transport.h"

namespace nfsrdma::testing {

constexpr uint32_t kReplyHead = 12;

inline int split_reply(ConstBytes reply) {
  if (reply.size() < kReplyHead) return reply.size() < 8 ? 0 : -1;
  return load_be32(reply.data() + 4) == 0 ? static_cast<int>(kReplyHead) : -1;
}

inline std::vector<std::byte> pattern(size_t length, uint32_t seed) {
  std::vector<std::byte> bytes(length);
  uint32_t state = seed * 2654435761u + 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = std::byte(state >> 24);
  }
  return bytes;
}

class RdmaRig : public ::testing::Test, public CallSink {
 protected:
  struct End {
    uint32_t slot = 0;
    int error = 0;
    std::string text;
    std::vector<std::byte> head;
    uint32_t bulk_length = 0;
    uint32_t retransmissions = 0;
  };
  // A call as the peer received it.
  struct Seen {
    RdmaHeader header;
    std::vector<std::byte> bytes;  // what the header's views point into
  };

  RdmaRig() {
    config.host = "127.0.0.1";
    config.port = 20049;
    config.slots = 8;
    config.timeo_ms = 40;
    config.retrans = 2;
    config.connect_timeout_ms = 300;
    peer_data = CmPrivateData{.send_size = 4096, .receive_size = 4096};
    memory.resize(1 << 20);
  }

  void open() {
    auto made = std::make_unique<FakeFabric>(fabric_options);
    fabric = made.get();
    if (peer_says_private_data) {
      const auto bytes = encode_cm_private_data(peer_data);
      fabric->private_data.assign(bytes.begin(), bytes.end());
    }
    auto opened = RpcRdmaTransport::open(config, options, std::move(made));
    ASSERT_TRUE(opened) << opened.error().text;
    transport = std::move(*opened);
    transport->set_sink(this);
    peer = fabric->connection;
    ASSERT_TRUE(transport->add_memory(memory));
  }

  uint32_t call(uint32_t tag, uint32_t head_length = 16, ConstBytes out = {}, Bytes in = {},
                uint32_t reply_head_max = 64) {
    const uint32_t slot = transport->acquire();
    EXPECT_NE(slot, kNoSlot);
    XdrWriter writer(transport->head(slot));
    writer.u32(transport->xid(slot));
    while (writer.size() + 4 < head_length) writer.u32(tag);
    writer.u32(out.empty() ? tag : static_cast<uint32_t>(out.size()));
    EXPECT_TRUE(writer.ok());
    Call request;
    request.head_length = head_length;
    request.bulk_out = out;
    request.bulk_in = in;
    request.split = in.empty() ? nullptr : split_reply;
    request.reply_head_max = reply_head_max;
    transport->submit(slot, request);
    return slot;
  }

  // The next call that reached the peer.
  Seen take() {
    Seen seen;
    EXPECT_FALSE(peer->sent.empty()) << "nothing was sent";
    if (peer->sent.empty()) return seen;
    seen.bytes = std::move(peer->sent.front().bytes);
    peer->sent.pop_front();
    EXPECT_EQ(decode_rdma_header(seen.bytes, seen.header), HeaderFault::kNone);
    return seen;
  }

  static std::vector<std::byte> message(const RdmaHeaderOut& header, ConstBytes rpc = {}) {
    std::vector<std::byte> bytes(rdma_header_bytes(header));
    XdrWriter writer(bytes);
    encode_rdma_header(writer, header);
    bytes.insert(bytes.end(), rpc.begin(), rpc.end());
    return bytes;
  }

  // A reply with the words behind the xid.
  static std::vector<std::byte> rpc_reply(uint32_t xid,
                                          std::initializer_list<uint32_t> words = {0}) {
    std::vector<std::byte> bytes(4 + 4 * words.size());
    XdrWriter writer(bytes);
    writer.u32(xid);
    for (const uint32_t word : words) writer.u32(word);
    return bytes;
  }

  bool answer(const Seen& seen, uint32_t credits = 8) {
    return answer_xid(seen.header.xid, credits);
  }
  bool answer_xid(uint32_t xid, uint32_t credits = 8) {
    return peer->peer_send(message({.xid = xid, .credits = credits}, rpc_reply(xid)));
  }

  // Answers a READ through its Write chunk. `said`: the length in the reply; `returned`: in the
  // list.
  bool answer_read(const Seen& seen, ConstBytes data, uint32_t said, uint32_t returned,
                   uint32_t credits = 8) {
    const RdmaSegment offered = seen.header.writes.front()[0];
    if (!data.empty() && !peer->peer_write(offered.handle, offered.offset, data)) return false;
    const RdmaSegment used{offered.handle, returned, offered.offset};
    const WriteChunk chunk(&used, 1);
    RdmaHeaderOut header{.xid = seen.header.xid, .credits = credits};
    header.writes = {&chunk, 1};
    return peer->peer_send(message(header, rpc_reply(seen.header.xid, {0, said})));
  }

  // Runs the transport until `ends` calls have ended, or the time is up.
  bool run_until_ended(size_t count, uint32_t ms = 2000) {
    return run_until([&] { return ends.size() >= count; }, ms);
  }
  template <typename Done>
  bool run_until(Done done, uint32_t ms = 2000) {
    const uint64_t deadline = now_ns() + uint64_t{ms} * 1'000'000;
    while (!done()) {
      if (now_ns() > deadline) return false;
      transport->progress();
      pollfd wait{};
      if (!done() && transport->prepare_wait(wait)) poll(&wait, 0, 1);
    }
    return true;
  }

  void on_sent(uint32_t slot, uint64_t) override { sent_slots.push_back(slot); }
  void on_reply(uint32_t slot, const Reply& reply) override {
    End end;
    end.slot = slot;
    if (reply.error != nullptr) {
      end.error = reply.error->code;
      end.text = reply.error->text;
    }
    end.head.assign(reply.head.begin(), reply.head.end());
    end.bulk_length = reply.bulk_length;
    end.retransmissions = reply.retransmissions;
    ends.push_back(std::move(end));
  }

  // Brings the grant up to `credits` with a call that is answered at once.
  void warm_up(uint32_t credits = 8) {
    call(1);
    transport->flush();
    ASSERT_TRUE(answer(take(), credits));
    transport->progress();
    ASSERT_EQ(ends.size(), 1u);
    ends.clear();
    sent_slots.clear();
  }

  TransportConfig config;
  RpcRdmaOptions options;
  FakeFabric::Options fabric_options;
  CmPrivateData peer_data;
  bool peer_says_private_data = true;
  std::vector<std::byte> memory;

  FakeFabric* fabric = nullptr;
  FakeConnection* peer = nullptr;
  std::unique_ptr<RpcRdmaTransport> transport;
  std::vector<End> ends;
  std::vector<uint32_t> sent_slots;
};

}  // namespace nfsrdma::testing
