// SPDX-License-Identifier: GPL-2.0-or-later
// A small NFS server behind fake transports: port mapper, MOUNT, and a tree of files and
// directories. Replies are put together by hand, and each can be replaced or spoilt by the test.
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fake_transport.h"
#include "nfs3_types.h"
#include "rpc_script.h"

namespace nfsrdma::testing {

class ScriptedServer {
 public:
  static constexpr uint16_t kNfs = 2049;
  static constexpr uint16_t kMountd = 20048;

  struct Node {
    uint32_t type = 2;  // NF3DIR
    uint64_t size = 0;
    std::map<std::string, uint64_t> children;
  };

  ScriptedServer() { nodes[1] = Node{}; }

  /// Adds what is missing of a path; the last component is of `type`.
  uint64_t add(const std::string& path, uint32_t type, uint64_t size = 0) {
    uint64_t at = 1;
    for (size_t begin = 1; begin < path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      const std::string name = path.substr(begin, end - begin);
      auto [child, is_new] = nodes[at].children.try_emplace(name, next_id);
      if (is_new) nodes[next_id++] = Node{end == path.size() ? type : 2, size, {}};
      at = nodes[at].children[name];
      begin = end + 1;
    }
    return at;
  }
  /// 0 when there is none.
  uint64_t find(const std::string& path) {
    uint64_t at = 1;
    for (size_t begin = 1; begin < path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      const auto child = nodes[at].children.find(path.substr(begin, end - begin));
      if (child == nodes[at].children.end()) return 0;
      at = child->second;
      begin = end + 1;
    }
    return at;
  }

  /// To be given to the client; a closed port refuses.
  Result<std::unique_ptr<Transport>> connect(const std::string& host, uint16_t port) {
    connects.push_back(host + " " + std::to_string(port));
    const bool open = (port == 111 && has_portmap) || (port == kNfs && has_nfs) ||
                      (port == kMountd && has_mountd);
    if (!open || host == dead_host) {
      return fail(ECONNREFUSED, "cannot connect to " + host + " port " + std::to_string(port) +
                                    ": Connection refused");
    }
    TransportConfig config;
    config.host = host;
    config.port = port;
    config.slots = 4;
    return std::make_unique<FakeTransport>([this](ConstBytes call) { return answer(call); },
                                           config);
  }

  Script answer(ConstBytes call) {
    const CallWords words = read_call(call);
    calls.push_back(words);
    if (spoil) {
      if (auto spoilt = spoil(call, words)) return *spoilt;
    }
    switch (words.program) {
      case 100000:
        return portmap(call, words);
      case 100005:
        return mountd(call, words);
      case kNfsProgram:
        if (nfs_version != words.version) return not_done(call, 2, nfs_version, nfs_version);
        return nfs(call, words);
      default:
        return not_done(call, 1);
    }
  }

  // What the server is like; changed by tests.
  bool has_portmap = true, has_nfs = true, has_mountd = true;
  std::string dead_host;
  uint32_t nfs_version = 3;
  bool registers_mountd = true;
  std::map<std::string, uint32_t> mount_refusals;  ///< path: mountstat3
  std::vector<std::pair<std::string, std::vector<std::string>>> exports;
  std::vector<uint32_t> flavors = {1};
  size_t page_entries = 3;
  bool with_attributes = true;  ///< optional attributes and handles are sent
  std::function<std::optional<Script>(ConstBytes call, const CallWords&)> spoil;

  // What it has seen.
  std::vector<CallWords> calls;
  std::vector<std::string> connects;
  std::vector<std::string> mounted, unmounted;

  std::map<uint64_t, Node> nodes;
  uint64_t next_id = 2;

 private:
  static std::string handle_of(uint64_t id) { return "handle " + std::to_string(id); }
  static uint64_t id_of(ConstBytes handle) {
    const std::string text(reinterpret_cast<const char*>(handle.data()), handle.size());
    return text.starts_with("handle ") ? std::stoull(text.substr(7)) : 0;
  }

  Script portmap(ConstBytes call, const CallWords& words) const {
    XdrReader reader(words.arguments);
    const uint32_t program = reader.u32();
    const uint32_t version = reader.u32();
    uint32_t port = 0;
    if (reader.u32() == 6 && reader.u32() == 0) {  // TCP
      if (program == kNfsProgram && version == nfs_version) port = kNfs;
      if (program == 100005 && version == 3 && registers_mountd) port = kMountd;
    }
    return accepted(call, XdrText().u32(port));
  }

  Script mountd(ConstBytes call, const CallWords& words) {
    XdrReader reader(words.arguments);
    const std::string path(reader.string(1024));
    if (words.procedure == 3) {
      unmounted.push_back(path);
      return accepted(call, {});
    }
    if (words.procedure == 5) return accepted(call, export_list());
    if (const auto refusal = mount_refusals.find(path); refusal != mount_refusals.end()) {
      return accepted(call, XdrText().u32(refusal->second));
    }
    const uint64_t id = find(path);
    if (id == 0) return accepted(call, XdrText().u32(2));
    mounted.push_back(path);
    XdrText reply;
    reply.u32(0).opaque(handle_of(id)).u32(static_cast<uint32_t>(flavors.size()));
    for (const uint32_t flavor : flavors) reply.u32(flavor);
    return accepted(call, reply);
  }

  [[nodiscard]] XdrText export_list() const {
    XdrText reply;
    for (const auto& [path, groups] : exports) {
      reply.u32(1).opaque(path);
      for (const std::string& group : groups) reply.u32(1).opaque(group);
      reply.u32(0);
    }
    reply.u32(0);
    return reply;
  }

  void put_attributes(XdrText& reply, uint64_t id) {
    if (!with_attributes) {
      reply.u32(0);
    } else {
      reply.post_op_attr(nodes[id].type, nodes[id].size);
    }
  }
  void put_handle(XdrText& reply, uint64_t id) const {
    if (!with_attributes) {
      reply.u32(0);
    } else {
      reply.u32(1).opaque(handle_of(id));
    }
  }

  Script nfs(ConstBytes call, const CallWords& words) {
    if (words.procedure == 0) return accepted(call, {});
    XdrReader reader(words.arguments);
    const uint64_t id = id_of(reader.opaque(64));
    if (!nodes.contains(id)) return accepted(call, XdrText().u32(70).u32(0).u32(0));
    Node& node = nodes[id];
    switch (static_cast<NfsProcedure>(words.procedure)) {
      case NfsProcedure::kGetattr:
        return accepted(call, XdrText().u32(0).fattr3(node.type, node.size));
      case NfsProcedure::kSetattr:
        return accepted(call, XdrText().u32(0).no_wcc());
      case NfsProcedure::kFsinfo:
        return accepted(call, XdrText()
                                  .u32(0)
                                  .u32(0)
                                  .u32(1048576)
                                  .u32(1048576)
                                  .u32(4096)
                                  .u32(524288)
                                  .u32(524288)
                                  .u32(4096)
                                  .u32(8192)
                                  .u64(1ull << 43)
                                  .u32(0)
                                  .u32(1)
                                  .u32(0x1b));
      case NfsProcedure::kLookup:
        return lookup(call, node, std::string(reader.string(255)));
      case NfsProcedure::kCreate:
        return make(call, node, std::string(reader.string(255)), 1);
      case NfsProcedure::kMkdir:
        return make(call, node, std::string(reader.string(255)), 2);
      case NfsProcedure::kRemove:
      case NfsProcedure::kRmdir:
        return remove(call, node, std::string(reader.string(255)), words.procedure == 13);
      case NfsProcedure::kReaddirplus:
        return read_directory(call, id, reader.u64());
      default:
        return not_done(call, 3);
    }
  }

  Script lookup(ConstBytes call, Node& node, const std::string& name) {
    if (node.type != 2) return accepted(call, XdrText().u32(20).u32(0));
    const auto child = node.children.find(name);
    if (child == node.children.end()) return accepted(call, XdrText().u32(2).u32(0));
    XdrText reply;
    reply.u32(0).opaque(handle_of(child->second));
    put_attributes(reply, child->second);
    reply.u32(0);
    return accepted(call, reply);
  }

  Script make(ConstBytes call, Node& node, const std::string& name, uint32_t type) {
    if (node.children.contains(name)) {
      // UNCHECKED takes a file that exists.
      if (type == 2) return accepted(call, XdrText().u32(17).no_wcc());
    } else {
      node.children[name] = next_id;
      nodes[next_id++] = Node{type, 0, {}};
    }
    const uint64_t made = node.children[name];
    XdrText reply;
    reply.u32(0);
    put_handle(reply, made);
    put_attributes(reply, made);
    reply.no_wcc();
    return accepted(call, reply);
  }

  Script remove(ConstBytes call, Node& node, const std::string& name, bool directory) {
    const auto child = node.children.find(name);
    uint32_t status = 0;
    if (child == node.children.end()) {
      status = 2;
    } else if (directory && nodes[child->second].type != 2) {
      status = 20;
    } else if (!directory && nodes[child->second].type == 2) {
      status = 21;
    } else if (directory && !nodes[child->second].children.empty()) {
      status = 66;
    } else {
      nodes.erase(child->second);
      node.children.erase(child);
    }
    return accepted(call, XdrText().u32(status).no_wcc());
  }

  Script read_directory(ConstBytes call, uint64_t id, uint64_t cookie) {
    std::vector<std::pair<std::string, uint64_t>> all = {{".", id}, {"..", 1}};
    for (const auto& child : nodes[id].children) all.emplace_back(child);
    XdrText reply;
    reply.u32(0);
    put_attributes(reply, id);
    reply.u64(0x7665726966696572);
    const size_t end = std::min(all.size(), cookie + page_entries);
    for (size_t i = cookie; i < end; i++) {
      reply.u32(1).u64(all[i].second).opaque(all[i].first).u64(i + 1);
      put_attributes(reply, all[i].second);
      put_handle(reply, all[i].second);
    }
    reply.u32(0).u32(end == all.size() ? 1 : 0);
    return accepted(call, reply);
  }
};

}  // namespace nfsrdma::testing
