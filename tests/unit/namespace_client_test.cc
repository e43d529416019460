// SPDX-License-Identifier: GPL-2.0-or-later
// mounter.cc and namespace_client.cc against a scripted server.
#include "namespace_client.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "scripted_server.h"

namespace nfsrdma {
namespace {

using testing::accepted;
using testing::CallWords;
using testing::Script;
using testing::ScriptedServer;
using testing::XdrText;

class NamespaceTest : public ::testing::Test {
 protected:
  NamespaceTest() {
    server_.add("/export/data/deep", 2);
    server_.exports = {{"/export", {}}};
  }

  Result<std::unique_ptr<NamespaceClient>> mount(const std::string& text) {
    auto url = parse_nfs_url(text);
    EXPECT_TRUE(url) << text;
    NamespaceConfig config;
    config.credential = Credential::none();
    config.credential.uid = 1000;
    config.call_timeout_ms = 300;
    config.jukebox_first_ms = 1;
    return NamespaceClient::mount(
        *url,
        [this](const std::string& host, uint16_t port, StopFlag) {
          return server_.connect(host, port);
        },
        config);
  }
  std::unique_ptr<NamespaceClient> mounted(const std::string& text) {
    auto client = mount(text);
    EXPECT_TRUE(client) << client.error().text;
    return client ? std::move(*client) : nullptr;
  }
  void expect_refused(const std::string& text, int code, std::initializer_list<const char*> words) {
    auto client = mount(text);
    ASSERT_FALSE(client) << text;
    EXPECT_EQ(client.error().code, code) << client.error().text;
    for (const char* word : words) {
      EXPECT_NE(client.error().text.find(word), std::string::npos)
          << word << ": " << client.error().text;
    }
    EXPECT_EQ(client.error().text.find('\n'), std::string::npos);
  }
  size_t calls_of(uint32_t program, uint32_t procedure) {
    return static_cast<size_t>(std::ranges::count_if(server_.calls, [&](const CallWords& words) {
      return words.program == program && words.procedure == procedure;
    }));
  }

  ScriptedServer server_;
};

template <typename T>
void expect_error(const Result<T>& result, int code, std::initializer_list<const char*> words) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << result.error().text;
  for (const char* word : words) {
    EXPECT_NE(result.error().text.find(word), std::string::npos)
        << word << ": " << result.error().text;
  }
}

TEST_F(NamespaceTest, PortsFromThePortMapper) {
  auto client = mounted("nfs://host/export/data");
  ASSERT_TRUE(client);
  EXPECT_EQ(server_.connects, (std::vector<std::string>{"host 111", "host 20048", "host 2049"}));
  EXPECT_EQ(server_.mounted, std::vector<std::string>{"/export/data"});
  EXPECT_EQ(client->mounted().nfs_port, 2049);
  EXPECT_EQ(client->mounted().mount_port, 20048);
  EXPECT_EQ(client->mounted().host, "host");
  EXPECT_EQ(client->limits().rtmax, 1048576u);
  EXPECT_EQ(client->limits().wtmax, 524288u);
  EXPECT_EQ(client->root(), *FileHandle::from(std::as_bytes(std::span("handle 3", 8))));
}

TEST_F(NamespaceTest, PortsFromTheUrl) {
  server_.has_portmap = false;
  ASSERT_TRUE(mounted("nfs://host:2049/export?mountport=20048"));
  EXPECT_EQ(server_.connects, (std::vector<std::string>{"host 20048", "host 2049"}));
}

TEST_F(NamespaceTest, NoPortMapper) {
  server_.has_portmap = false;
  expect_refused("nfs://host/export", ECONNREFUSED,
                 {"rpcbind", "port 111", "nfsport=", "mountport=", "NFSv3 does answer"});
  server_.has_nfs = false;
  expect_refused("nfs://host/export", ECONNREFUSED, {"rpcbind", "Connection refused"});
}

TEST_F(NamespaceTest, ServersOfVersion4Only) {
  server_.nfs_version = 4;
  expect_refused("nfs://host/export", EPROTONOSUPPORT, {"version 4", "NFSv3"});
  server_.has_portmap = false;
  expect_refused("nfs://host/export", EPROTONOSUPPORT, {"version 4", "NFSv3"});
  server_.has_mountd = false;
  expect_refused("nfs://host/export?nfsport=2049&mountport=20048", EPROTONOSUPPORT,
                 {"version 4", "NFSv3"});
}

TEST_F(NamespaceTest, NoMountd) {
  server_.registers_mountd = false;
  expect_refused("nfs://host/export", EOPNOTSUPP, {"mountd", "mountport="});
  server_.has_mountd = false;
  expect_refused("nfs://host/export?nfsport=2049&mountport=20048", ECONNREFUSED,
                 {"20048", "MOUNT service", "mountport="});
}

TEST_F(NamespaceTest, NoNfsServerBesideMountd) {
  server_.has_nfs = false;
  expect_refused("nfs://host/export", ECONNREFUSED, {"2049", "NFS service", "nfsport="});
}

TEST_F(NamespaceTest, WhatIsNoServer) {
  server_.spoil = [](ConstBytes, const CallWords&) { return Script{.drop_connection = true}; };
  expect_refused("nfs://host/export?nfsport=2049&mountport=20048", EPROTO,
                 {"does not answer as an NFS server", "host:20048"});
  server_.spoil = [](ConstBytes, const CallWords&) {
    Script script;
    script.reply = testing::hex("10000001 00000007 00000000");
    return script;
  };
  expect_refused("nfs://host/export", EPROTO, {"does not answer as an NFS server"});
  server_.spoil = [](ConstBytes, const CallWords&) { return Script{.lost = true}; };
  expect_refused("nfs://host/export", ETIMEDOUT, {"no reply within 300 ms"});
}

TEST_F(NamespaceTest, SeveralHosts) {
  server_.dead_host = "a";
  auto client = mounted("nfs://a,b/export");
  ASSERT_TRUE(client);
  EXPECT_EQ(client->mounted().host, "b");
  server_.dead_host = "b";
  EXPECT_EQ(mounted("nfs://a,b/export")->mounted().host, "a");
  server_.has_portmap = server_.has_nfs = false;
  expect_refused("nfs://a,b/export", ECONNREFUSED, {"none of the 2 hosts", "a port", "b port"});
}

TEST_F(NamespaceTest, ARefusalIsNotAskedOfOtherHosts) {
  server_.mount_refusals["/export"] = 1;  // MNT3ERR_PERM
  expect_refused("nfs://a,b/export", EPERM, {"MNT3ERR_PERM"});
  for (const std::string& connect : server_.connects) EXPECT_TRUE(connect.starts_with("a "));
}

TEST_F(NamespaceTest, LongestExportAbove) {
  for (const uint32_t status : {2, 13, 20}) {
    server_.mounted.clear();
    server_.exports = {{"/", {}}, {"/exp", {}}, {"/export", {}}, {"/export/data/deep", {}}};
    server_.mount_refusals["/export/data"] = status;
    auto client = mounted("nfs://host/export/data");
    ASSERT_TRUE(client) << status;
    EXPECT_EQ(server_.mounted, std::vector<std::string>{"/export"});
    EXPECT_EQ(client->mounted().exported, "/export");
    EXPECT_EQ(client->root(), *FileHandle::from(std::as_bytes(std::span("handle 3", 8))));
  }
  server_.exports = {{"/", {}}};
  auto client = mounted("nfs://host/export/data");
  ASSERT_TRUE(client);
  EXPECT_EQ(client->mounted().exported, "/");
  EXPECT_EQ(client->root(), *FileHandle::from(std::as_bytes(std::span("handle 3", 8))));
}

TEST_F(NamespaceTest, TheNextShorterExportWhenTheLongestIsRefused) {
  server_.exports = {{"/export/data", {"others"}}, {"/export/", {}}};
  server_.mount_refusals["/export/data/deep"] = 13;
  server_.mount_refusals["/export/data"] = 13;
  auto client = mounted("nfs://host/export/data/deep");
  ASSERT_TRUE(client);
  EXPECT_EQ(client->mounted().exported, "/export");
}

TEST_F(NamespaceTest, NoSuchExportListsThoseThatAre) {
  server_.exports = {{"/home", {}}, {"/srv/nfs", {}}};
  expect_refused("nfs://host/wrong", ENOENT,
                 {"MNT3ERR_NOENT", "/wrong", "exports: /home, /srv/nfs", "insecure"});
  server_.exports.clear();
  expect_refused("nfs://host/wrong", ENOENT, {"exports nothing"});
}

TEST_F(NamespaceTest, AnExportThatRefusesThisClient) {
  server_.exports = {{"/export", {"10.0.0.0/8"}}};
  server_.mount_refusals["/export"] = 13;
  expect_refused("nfs://host/export", EACCES,
                 {"MNT3ERR_ACCES", "exported to 10.0.0.0/8", "reserved_port=yes", "insecure",
                  "setcap", "PrivilegedPort"});
}

TEST_F(NamespaceTest, KerberosIsNamed) {
  server_.flavors = {390003, 390005};
  expect_refused("nfs://host/export", EPROTONOSUPPORT, {"krb5, krb5p", "sec=sys"});
}

TEST_F(NamespaceTest, PathsMissingBelowAnExport) {
  server_.exports = {{"/export", {}}};
  expect_refused("nfs://host/export/none/x", ENOENT,
                 {"NFS LOOKUP", "\"none\"", "/export/none/x", "nfs_dir="});
}

TEST_F(NamespaceTest, AFileIsNoRoot) {
  server_.add("/export/file", 1);
  expect_refused("nfs://host/export/file", ENOTDIR, {"filename="});
}

TEST_F(NamespaceTest, Resolve) {
  server_.add("/export/data/file", 1, 77);
  server_.add("/export/data/link", 5);
  auto client = mounted("nfs://host/export");
  ASSERT_TRUE(client);
  for (const bool with : {true, false}) {
    server_.with_attributes = with;
    auto found = client->resolve("data//./file");
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_EQ(found->attributes.type, FileType::kRegular);
    EXPECT_EQ(found->attributes.size, 77u);
  }
  EXPECT_EQ(client->resolve("")->handle, client->root());
  EXPECT_EQ(client->resolve(".")->handle, client->root());
  expect_error(client->resolve("data/none"), ENOENT, {"\"none\"", "data/none: "});
  expect_error(client->resolve("data/file/x"), ENOTDIR, {"not a directory"});
  expect_error(client->resolve("data/link"), ELOOP, {"symbolic link"});
  expect_error(client->resolve("data/../data"), EINVAL, {"'..'"});
  expect_error(client->resolve(std::string(256, 'n')), ENAMETOOLONG, {"256"});
  std::string deep;
  for (int i = 0; i < 65; i++) deep += "d/";
  expect_error(client->resolve(deep), ENAMETOOLONG, {"65"});
}

TEST_F(NamespaceTest, MakeDirectories) {
  auto client = mounted("nfs://host/export");
  ASSERT_TRUE(client);
  for (const bool with : {true, false}) {
    server_.with_attributes = with;
    const std::string path = with ? "data/a/b" : "data/c/d";
    auto made = client->make_directories(path);
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_NE(server_.find("/export/" + path), 0u);
    auto again = client->make_directories(path);
    ASSERT_TRUE(again);
    EXPECT_EQ(made->handle, again->handle);
  }
  EXPECT_EQ(calls_of(100003, 9), 4u);
  EXPECT_EQ(client->make_directories("")->handle, client->root());
  server_.add("/export/file", 1);
  expect_error(client->make_directories("file/x"), ENOTDIR, {"file/x"});
}

TEST_F(NamespaceTest, MakeDirectoriesWhileAnotherJobDoes) {
  auto client = mounted("nfs://host/export");
  ASSERT_TRUE(client);
  server_.spoil = [this](ConstBytes call, const CallWords& words) -> std::optional<Script> {
    if (words.program != 100003 || words.procedure != 9) return std::nullopt;
    server_.add("/export/raced", 2);
    return accepted(call, XdrText().u32(17).no_wcc());
  };
  auto made = client->make_directories("raced");
  ASSERT_TRUE(made) << made.error().text;
}

TEST_F(NamespaceTest, Files) {
  auto client = mounted("nfs://host/export");
  ASSERT_TRUE(client);
  expect_error(client->open_file("data/new"), ENOENT, {"data/new: "});
  auto made = client->create_file("data/new");
  ASSERT_TRUE(made) << made.error().text;
  const uint64_t id = server_.find("/export/data/new");
  ASSERT_NE(id, 0u);
  server_.nodes[id].size = 5;
  auto found = client->open_file("data/new");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->attributes.size, 5u);
  EXPECT_EQ(found->handle, made->handle);
  // A file that exists is left as it is.
  auto again = client->create_file("data/new");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->attributes.size, 5u);
  EXPECT_EQ(calls_of(100003, 8), 1u);
  expect_error(client->open_file("data"), EISDIR, {"filename="});
  expect_error(client->create_file("none/x"), ENOENT, {"none"});
  expect_error(client->create_file(""), EINVAL, {"names no file"});
  EXPECT_TRUE(client->remove_file("data/new"));
  EXPECT_EQ(server_.find("/export/data/new"), 0u);
  expect_error(client->remove_file("data/new"), ENOENT, {"data/new: "});
}

TEST_F(NamespaceTest, RemoveTree) {
  auto client = mounted("nfs://host/export");
  ASSERT_TRUE(client);
  for (const bool with : {true, false}) {
    server_.with_attributes = with;
    for (int i = 0; i < 10; i++) {
      server_.add("/export/job/f" + std::to_string(i), 1);
      server_.add("/export/job/d" + std::to_string(i) + "/x/y", 1);
    }
    server_.add("/export/job/link", 5);
    server_.add("/export/kept/f", 1);
    auto removed = client->remove_tree("job");
    ASSERT_TRUE(removed) << removed.error().text;
    EXPECT_EQ(*removed, 10u + 3 * 10 + 1 + 1);
    EXPECT_EQ(server_.find("/export/job"), 0u);
    EXPECT_NE(server_.find("/export/kept/f"), 0u);
    EXPECT_NE(server_.find("/export/data/deep"), 0u);
  }
  expect_error(client->remove_tree(""), EINVAL, {});
  expect_error(client->remove_tree("kept/f"), ENOTDIR, {});
  expect_error(client->remove_tree("none"), ENOENT, {});
}

TEST_F(NamespaceTest, RemoveTreeIsBounded) {
  auto client = mounted("nfs://host/export");
  ASSERT_TRUE(client);
  std::string path = "/export/tower";
  for (int i = 0; i < 70; i++) path += "/d";
  server_.add(path, 2);
  expect_error(client->remove_tree("tower"), E2BIG, {"64 directories"});
  // A directory that goes on listing what is gone already.
  server_.add("/export/ghost", 2);
  server_.spoil = [](ConstBytes call, const CallWords& words) -> std::optional<Script> {
    if (words.program != 100003 || words.procedure != 17) return std::nullopt;
    XdrText reply;
    reply.u32(0).u32(0).u64(1);
    reply.u32(1).u64(9).opaque("gone").u64(1).post_op_attr(1, 0).u32(1).opaque("handle 9");
    return accepted(call, reply.u32(0).u32(1));
  };
  expect_error(client->remove_tree("ghost"), EPROTO, {"ghost"});
}

TEST_F(NamespaceTest, Unmount) {
  auto client = mounted("nfs://host/export/data");
  ASSERT_TRUE(client);
  client->unmount();
  EXPECT_EQ(server_.unmounted, std::vector<std::string>{"/export/data"});
  server_.has_mountd = false;
  client->unmount();  // No error, no hang.
}

TEST(CredentialOf, TheUrlsIds) {
  Credential base;
  base.uid = 5;
  base.gid = 6;
  base.gids = {7};
  EXPECT_EQ(credential_of(*parse_nfs_url("nfs://h/x"), base).gids, base.gids);
  const Credential other = credential_of(*parse_nfs_url("nfs://h/x?uid=1000&gid=100"), base);
  EXPECT_EQ(other.uid, 1000u);
  EXPECT_EQ(other.gid, 100u);
  EXPECT_TRUE(other.gids.empty());
}

}  // namespace
}  // namespace nfsrdma
