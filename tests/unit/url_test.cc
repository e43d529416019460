// SPDX-License-Identifier: GPL-2.0-or-later
#include "url.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>

namespace nfsrdma {
namespace {

NfsUrl good(std::string_view text) {
  auto url = parse_nfs_url(text);
  EXPECT_TRUE(url) << text << ": " << (url ? "" : url.error().text);
  return url ? *url : NfsUrl{};
}

/// The URL is refused, and the sentence names `word`.
void expect_refused(std::string_view text, std::string_view word) {
  auto url = parse_nfs_url(text);
  ASSERT_FALSE(url) << text;
  EXPECT_EQ(url.error().code, EINVAL) << text;
  EXPECT_NE(url.error().text.find(word), std::string::npos) << text << ": " << url.error().text;
  EXPECT_EQ(url.error().text.find('\n'), std::string::npos);
  EXPECT_LT(url.error().text.size(), 500u);
}

using Hosts = std::vector<std::string>;

TEST(Url, PlainHostAndPath) {
  const NfsUrl url = good("nfs://server/export/data");
  EXPECT_EQ(url.hosts, Hosts{"server"});
  EXPECT_EQ(url.path, "/export/data");
  EXPECT_EQ(url.nfs_port, 0);
  EXPECT_EQ(url.mount_port, 0);
  EXPECT_EQ(url.rdma_port, 0);
  EXPECT_FALSE(url.uid);
  EXPECT_TRUE(url.warnings.empty());
}

TEST(Url, EmbeddedServersLine) {
  const NfsUrl url = good("nfs://127.0.0.1:2050/export?mountport=2050&rdmaport=20049");
  EXPECT_EQ(url.nfs_port, 2050);
  EXPECT_EQ(url.mount_port, 2050);
  EXPECT_EQ(url.rdma_port, 20049);
}

TEST(Url, HostsAndPorts) {
  EXPECT_EQ(good("nfs://a,b,10.0.0.3:2049/x").hosts, (Hosts{"a", "b", "10.0.0.3"}));
  EXPECT_EQ(good("nfs://a,b,10.0.0.3:2049/x").nfs_port, 2049);
  EXPECT_EQ(good("nfs://[::1]/x").hosts, Hosts{"::1"});
  EXPECT_EQ(good("nfs://[fe80::1%25eth0],[2001:db8::2]:65535/x").hosts,
            (Hosts{"fe80::1%eth0", "2001:db8::2"}));
  EXPECT_EQ(good("nfs://[2001:db8::2]:65535/x").nfs_port, 65535);
  EXPECT_EQ(good("nfs://h/x?nfsport=1").nfs_port, 1);
  EXPECT_EQ(good("nfs://h:7/x?nfsport=7").nfs_port, 7);
  expect_refused("nfs://h:7/x?nfsport=8", "two NFS ports");
  expect_refused("nfs://h:0/x", "1 to 65535");
  expect_refused("nfs://h:65536/x", "1 to 65535");
  expect_refused("nfs://h:/x", "1 to 65535");
  expect_refused("nfs://h:20x/x", "1 to 65535");
  expect_refused("nfs://h/x?mountport=99999", "mountport");
  expect_refused("nfs://h/x?rdmaport=-1", "rdmaport");
  expect_refused("nfs://a:1,b:2/x", "colon");
  expect_refused("nfs://::1/x", "brackets");
  expect_refused("nfs://[::1/x", "']'");
  expect_refused("nfs://[server]/x", "IPv6");
  expect_refused("nfs://[::1]x/x", "neither");
  expect_refused("nfs:///x", "no host");
  expect_refused("nfs://a,,b/x", "no host");
  expect_refused("nfs://a,/x", "no host");
  expect_refused("nfs://me@host/x", "uid=");
  expect_refused("nfs://ho st/x", "not a host name");
  expect_refused("nfs://" + std::string(254, 'h') + "/x", "253");
  std::string many = "nfs://h0";
  for (int i = 0; i < 16; i++) many += ",h";
  expect_refused(many + "/x", "16");
}

TEST(Url, Paths) {
  EXPECT_EQ(good("nfs://h/").path, "/");
  EXPECT_EQ(good("nfs://h//").path, "/");
  EXPECT_EQ(good("nfs://h//a///b/").path, "/a/b");
  EXPECT_EQ(good("nfs://h/a/./b").path, "/a/b");
  EXPECT_EQ(good("nfs://h/my%3Fpath/a%20b/%c3%A4").path, "/my?path/a b/\xc3\xa4");
  EXPECT_EQ(good("nfs://h/a..b/...").path, "/a..b/...");
  EXPECT_EQ(good("nfs://h/a?").path, "/a");
  expect_refused("", "empty");
  expect_refused("/local/path", "nfs://");
  expect_refused("http://h/x", "nfs://");
  expect_refused("nfs://h", "no path");
  expect_refused("nfs://h?uid=0", "no path");
  expect_refused("nfs://h/a/../b", "'..'");
  expect_refused("nfs://h/..", "'..'");
  expect_refused("nfs://h/%2e%2E/b", "'..'");
  expect_refused("nfs://h/a%2Fb", "%2F");
  expect_refused("nfs://h/a%00b", "%00");
  expect_refused("nfs://h/50%", "%25");
  expect_refused("nfs://h/%zz", "%25");
  expect_refused("nfs://h/%4", "%25");
}

TEST(Url, Lengths) {
  const std::string name(255, 'n');
  EXPECT_EQ(good("nfs://h/" + name).path, "/" + name);
  expect_refused("nfs://h/" + name + "n", "255");
  const std::string path = "/" + name + "/" + name + "/" + name + "/" + name;
  EXPECT_EQ(path.size(), 1024u);
  EXPECT_EQ(good("nfs://h" + path).path, path);
  expect_refused("nfs://h" + path + "/n", "1024");
  expect_refused("nfs://h/" + std::string(4100, '/'), "4096");
}

TEST(Url, MeaningfulArguments) {
  const NfsUrl url = good(
      "nfs://h/x?uid=0&gid=4294967295&timeo=15&retrans=3&rsize=65536&wsize=32768&if=eth0"
      "&version=3&sec=sys&xprtsec=none");
  EXPECT_EQ(url.uid, 0u);
  EXPECT_EQ(url.gid, 4294967295u);
  EXPECT_EQ(url.timeo_ms, 1500u);
  EXPECT_EQ(url.retrans, 3u);
  EXPECT_EQ(url.read_max, 65536u);
  EXPECT_EQ(url.write_max, 32768u);
  EXPECT_EQ(url.interface, "eth0");
  EXPECT_TRUE(url.warnings.empty());
  expect_refused("nfs://h/x?uid=4294967296", "uid");
  expect_refused("nfs://h/x?uid=", "uid");
  expect_refused("nfs://h/x?uid=root", "uid");
  expect_refused("nfs://h/x?timeo=0", "timeo");
  expect_refused("nfs://h/x?rsize=512", "rsize");
  expect_refused("nfs://h/x?if=", "if=");
  expect_refused("nfs://h/x?if=averylongnamehere", "if=");
  expect_refused("nfs://h/x?uid=1&uid=2", "twice");
}

TEST(Url, HarmlessArgumentsWarn) {
  const NfsUrl url = good(
      "nfs://h/x?tcp-syncnt=2&debug=1&readahead=4096&pagecache=8&dircache=0"
      "&auto-traverse-mounts=0&autoreconnect=-1&readdir-buffer=8192,8192");
  ASSERT_EQ(url.warnings.size(), 8u);
  EXPECT_NE(url.warnings[0].find("tcp-syncnt"), std::string::npos);
  for (const std::string& warning : url.warnings) EXPECT_TRUE(warning.starts_with("nfs_url: "));
}

TEST(Url, ArgumentsWithoutMeaningAreRefusedByName) {
  expect_refused("nfs://h/x?version=4", "NFSv3");
  expect_refused("nfs://h/x?version=", "NFSv3");
  expect_refused("nfs://h/x?sec=krb5", "AUTH_SYS");
  expect_refused("nfs://h/x?sec=krb5p", "AUTH_SYS");
  expect_refused("nfs://h/x?xprtsec=tls", "TLS");
  expect_refused("nfs://h/x?xprtsec=mtls", "TLS");
  expect_refused("nfs://h/x?readonly", "--readonly");
  expect_refused("nfs://h/x?nfsprot=1", "nfsport");
  expect_refused("nfs://h/x?=1", "unknown");
}

TEST(Url, HostAndPort) {
  EXPECT_EQ(host_and_port("server", 2049), "server:2049");
  EXPECT_EQ(host_and_port("::1", 2049), "[::1]:2049");
}

TEST(Url, RandomTextNeverEscapes) {
  std::mt19937 random(2224);
  const std::string_view pieces[] = {"nfs://", "h", "/", "..",   "%2e",  "%", "[::1]",
                                     "[",      "]", ":", "2049", ",",    "?", "&",
                                     "uid=",   "1", "=", "\n",   "\xff", "."};
  for (int i = 0; i < 20000; i++) {
    std::string text = random() % 8 == 0 ? "" : "nfs://";
    for (uint32_t n = random() % 12; n > 0; n--) text += pieces[random() % std::size(pieces)];
    auto url = parse_nfs_url(text);
    if (!url) {
      EXPECT_EQ(url.error().code, EINVAL);
      EXPECT_EQ(url.error().text.find('\n'), std::string::npos);
      continue;
    }
    EXPECT_TRUE(url->path.starts_with('/'));
    EXPECT_EQ((url->path + "/").find("/../"), std::string::npos);
    EXPECT_FALSE(url->hosts.empty());
  }
}

}  // namespace
}  // namespace nfsrdma
