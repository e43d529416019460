// SPDX-License-Identifier: GPL-2.0-or-later
#include "url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>

#include "nfs3_types.h"

namespace nfsrdma {
namespace {

constexpr std::string_view kScheme = "nfs://";
constexpr std::string_view kForm = "nfs://host/path";
constexpr uint32_t kTransferMin = 4096;

tl::unexpected<Error> bad(std::string text) {
  return fail(EINVAL, std::move(text));
}

/// Text for a message: control characters and long tails of a user's text stay out of it.
std::string shown(std::string_view text) {
  constexpr size_t kShownMax = 120;
  std::string out;
  for (const char c : text.substr(0, kShownMax)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return text.size() > kShownMax ? out + "..." : out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return bad("'%' in \"" + shown(text) +
                 "\" is not followed by two hex digits: write %25 for a percent sign");
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

Result<uint64_t> number(std::string_view name, std::string_view text, uint64_t min, uint64_t max) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    return bad("nfs_url: " + std::string(name) + "=" + shown(text) + " is not a number from " +
               std::to_string(min) + " to " + std::to_string(max));
  }
  return value;
}

bool is_ipv6(std::string_view host) {
  // A zone ("%eth0") is the resolver's affair, and not part of the address.
  const std::string address(host.substr(0, host.find('%')));
  in6_addr binary;
  return inet_pton(AF_INET6, address.c_str(), &binary) == 1;
}

Result<void> add_host(NfsUrl& url, std::string_view host, bool bracketed) {
  if (host.empty()) {
    return bad("nfs_url names no host: write " + std::string(kForm));
  }
  if (host.size() > kHostMax) {
    return bad("nfs_url: a host name of " + std::to_string(host.size()) + " bytes; at most " +
               std::to_string(kHostMax) + " are allowed");
  }
  if (bracketed && !is_ipv6(host)) {
    return bad("nfs_url: [" + shown(host) +
               "] is not an IPv6 address; brackets are for IPv6 addresses only");
  }
  if (!bracketed && host.find(':') != std::string_view::npos) {
    return bad("nfs_url: \"" + shown(host) +
               "\" has a colon too many: an IPv6 address stands in brackets, as in "
               "nfs://[::1]/path, and the port comes once, after the last host");
  }
  const bool printable = std::ranges::all_of(host, [](char c) { return c > ' ' && c < 0x7f; });
  if (!printable || host.find('@') != std::string_view::npos) {
    return bad(host.find('@') != std::string_view::npos
                   ? "nfs_url: a user before '@' has no meaning with AUTH_SYS: write ?uid=N&gid=N"
                   : "nfs_url: \"" + shown(host) + "\" is not a host name");
  }
  if (url.hosts.size() == kUrlHostsMax) {
    return bad("nfs_url names more than " + std::to_string(kUrlHostsMax) + " hosts");
  }
  url.hosts.emplace_back(host);
  return {};
}

/// The part between "nfs://" and the first slash: hosts, and a port after the last.
Result<void> parse_authority(NfsUrl& url, std::string_view authority) {
  while (true) {
    std::string_view host;
    std::string zoned;
    bool bracketed = false;
    if (authority.starts_with('[')) {
      const size_t close = authority.find(']');
      if (close == std::string_view::npos) {
        return bad("nfs_url: '[' without ']': write nfs://[::1]/path");
      }
      bracketed = true;
      zoned = authority.substr(1, close - 1);
      // RFC 6874 writes the '%' before a zone as %25.
      if (const size_t zone = zoned.find("%25"); zone != std::string::npos)
        zoned.erase(zone + 1, 2);
      host = zoned;
      authority.remove_prefix(close + 1);
    } else {
      // "host:port" at the end; a list goes on after a comma.
      const size_t comma = authority.find(',');
      const std::string_view item = authority.substr(0, comma);
      const size_t colon = item.rfind(':');
      const bool has_port = comma == std::string_view::npos && colon != std::string_view::npos;
      host = has_port ? item.substr(0, colon) : item;
      authority.remove_prefix(host.size());
    }
    if (auto added = add_host(url, host, bracketed); !added) return added;
    if (authority.empty()) return {};
    if (authority.starts_with(':')) {
      authority.remove_prefix(1);
      auto port = number("port", authority, 1, 65535);
      if (!port) return tl::unexpected(port.error());
      url.nfs_port = static_cast<uint16_t>(*port);
      return {};
    }
    if (!authority.starts_with(',')) {
      return bad("nfs_url: \"" + shown(authority) + "\" after ']' is neither ':port' nor ',host'");
    }
    authority.remove_prefix(1);
  }
}

Result<std::string> parse_path(std::string_view encoded) {
  std::string path;
  while (!encoded.empty()) {
    const size_t slash = encoded.find('/');
    auto name = percent_decode(encoded.substr(0, slash));
    if (!name) return name;
    encoded.remove_prefix(slash == std::string_view::npos ? encoded.size() : slash + 1);
    if (name->empty() || *name == ".") continue;
    if (*name == "..") {
      return bad("nfs_url: '..' in the path is refused: write the path without it");
    }
    if (name->find('/') != std::string::npos || name->find('\0') != std::string::npos) {
      return bad("nfs_url: a name in the path contains %2F or %00, which no NFS name can hold");
    }
    if (name->size() > kNameMax) {
      return bad("nfs_url: \"" + shown(*name) + "\" has " + std::to_string(name->size()) +
                 " bytes; a name has at most " + std::to_string(kNameMax));
    }
    path += '/';
    path += *name;
  }
  if (path.empty()) path = "/";
  if (path.size() > kMountPathMax) {
    return bad("nfs_url: a path of " + std::to_string(path.size()) +
               " bytes; MOUNT takes at most " + std::to_string(kMountPathMax));
  }
  return path;
}

/// libnfs's arguments that change nothing in what is measured here.
struct Harmless {
  std::string_view name;
  std::string_view instead;
};
constexpr Harmless kHarmless[] = {
    {"tcp-syncnt", "the time to connect is bounded by the engine itself"},
    {"debug", "use fio's --debug=io"},
    {"readahead", "nothing is read ahead"},
    {"pagecache", "nothing is cached"},
    {"pagecache_ttl", "nothing is cached"},
    {"dircache", "nothing is cached"},
    {"auto-traverse-mounts", "name the nested export in the path"},
    {"autoreconnect", "the options soft, timeo and retrans say how long is tried"},
    {"readdir-buffer", "directories are read with the server's preferred size"},
};

/// Arguments whose meaning cannot be had here: to ignore them would measure something else.
struct Refused {
  std::string_view name;
  std::string_view instead;
};
constexpr Refused kRefused[] = {
    {"readonly", "use fio's --readonly"},
    {"vers", "write version=3 or leave it out"},
    {"port", "write nfsport="},
    {"proto", "use the option transport=tcp or transport=rdma"},
    {"nconnect", "use the option nconnect="},
};

/// Arguments that take one value only: with any other the URL means something else.
struct Fixed {
  std::string_view name;
  std::string_view value;
  std::string_view instead;
};
constexpr Fixed kFixed[] = {
    {"version", "3", "only NFSv3 is spoken: write version=3 or leave it out"},
    {"sec", "sys", "only AUTH_SYS is spoken: export with sec=sys and leave sec= out"},
    {"xprtsec", "none", "TLS is not spoken: export without xprtsec=tls and leave xprtsec= out"},
};

class Arguments {
 public:
  explicit Arguments(NfsUrl& url) : url_(url) {}

  Result<void> take(std::string_view name, std::string_view value) {
    for (const Fixed& fixed : kFixed) {
      if (name != fixed.name) continue;
      if (value == fixed.value) return {};
      return bad("nfs_url: " + std::string(name) + "=" + shown(value) + ": " +
                 std::string(fixed.instead));
    }
    for (const Refused& refused : kRefused) {
      if (name != refused.name) continue;
      return bad("nfs_url: " + std::string(name) +
                 " has no meaning here: " + std::string(refused.instead));
    }
    for (const Harmless& harmless : kHarmless) {
      if (name != harmless.name) continue;
      url_.warnings.push_back("nfs_url: " + std::string(name) +
                              " does nothing here: " + std::string(harmless.instead));
      return {};
    }
    return take_meaningful(name, value);
  }

 private:
  Result<void> take_meaningful(std::string_view name, std::string_view value) {
    constexpr uint64_t kWordMax = std::numeric_limits<uint32_t>::max();
    if (name == "nfsport") return nfs_port(value);
    if (name == "mountport") return set(url_.mount_port, name, value, 1, 65535);
    if (name == "rdmaport") return set(url_.rdma_port, name, value, 1, 65535);
    if (name == "uid") return set(url_.uid, name, value, 0, kWordMax);
    if (name == "gid") return set(url_.gid, name, value, 0, kWordMax);
    if (name == "timeo") return timeo(value);
    if (name == "retrans") return set(url_.retrans, name, value, 0, 1000);
    if (name == "rsize") return set(url_.read_max, name, value, kTransferMin, 1u << 30);
    if (name == "wsize") return set(url_.write_max, name, value, kTransferMin, 1u << 30);
    if (name == "if") return interface(value);
    return bad("nfs_url: unknown argument \"" + shown(name) +
               "\"; known are nfsport, mountport, rdmaport, uid, gid, version, timeo, retrans, "
               "rsize, wsize and if");
  }

  template <typename T>
  static Result<void> set(T& to, std::string_view name, std::string_view value, uint64_t min,
                          uint64_t max) {
    auto parsed = number(name, value, min, max);
    if (!parsed) return tl::unexpected(parsed.error());
    if constexpr (std::is_same_v<T, std::optional<uint32_t>>) {
      to = static_cast<uint32_t>(*parsed);
    } else {
      to = static_cast<T>(*parsed);
    }
    return {};
  }

  Result<void> nfs_port(std::string_view value) {
    const uint16_t before = url_.nfs_port;
    if (auto done = set(url_.nfs_port, "nfsport", value, 1, 65535); !done) return done;
    if (before == 0 || before == url_.nfs_port) return {};
    return bad("nfs_url gives two NFS ports, " + std::to_string(before) + " and " +
               std::to_string(url_.nfs_port) + ": give one");
  }

  Result<void> timeo(std::string_view value) {
    auto tenths = number("timeo", value, 1, 36000);
    if (!tenths) return tl::unexpected(tenths.error());
    url_.timeo_ms = static_cast<uint32_t>(*tenths * 100);
    return {};
  }

  Result<void> interface(std::string_view value) {
    constexpr size_t kInterfaceMax = 15;  // IFNAMSIZ - 1
    if (value.empty() || value.size() > kInterfaceMax) {
      return bad("nfs_url: if= wants the name of a network interface, of at most " +
                 std::to_string(kInterfaceMax) + " bytes");
    }
    url_.interface = value;
    return {};
  }

  NfsUrl& url_;
};

Result<void> parse_arguments(NfsUrl& url, std::string_view text) {
  Arguments arguments(url);
  std::vector<std::string> seen;
  while (!text.empty()) {
    const size_t end = text.find('&');
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    auto name = percent_decode(item.substr(0, equals));
    auto value = percent_decode(equals == std::string_view::npos ? std::string_view()
                                                                 : item.substr(equals + 1));
    if (!name) return tl::unexpected(name.error());
    if (!value) return tl::unexpected(value.error());
    if (std::ranges::find(seen, *name) != seen.end()) {
      return bad("nfs_url: " + shown(*name) + " is given twice");
    }
    if (auto taken = arguments.take(*name, *value); !taken) return taken;
    seen.push_back(std::move(*name));
  }
  return {};
}

}  // namespace

Result<NfsUrl> parse_nfs_url(std::string_view text) {
  if (text.empty()) return bad("nfs_url is empty: write " + std::string(kForm));
  if (text.size() > kUrlMax) {
    return bad("nfs_url has " + std::to_string(text.size()) + " bytes; at most " +
               std::to_string(kUrlMax) + " are allowed");
  }
  if (!text.starts_with(kScheme)) {
    return bad("nfs_url \"" + shown(text) + "\" does not begin with nfs://: write " +
               std::string(kForm));
  }
  std::string_view rest = text.substr(kScheme.size());
  const size_t question = rest.find('?');
  const std::string_view query =
      question == std::string_view::npos ? std::string_view() : rest.substr(question + 1);
  rest = rest.substr(0, question);
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) {
    return bad("nfs_url \"" + shown(text) + "\" names no path: write " + std::string(kForm));
  }
  NfsUrl url;
  if (auto done = parse_authority(url, rest.substr(0, slash)); !done) {
    return tl::unexpected(done.error());
  }
  auto path = parse_path(rest.substr(slash));
  if (!path) return tl::unexpected(path.error());
  url.path = std::move(*path);
  if (auto done = parse_arguments(url, query); !done) return tl::unexpected(done.error());
  return url;
}

std::string host_and_port(std::string_view host, uint16_t port) {
  std::string text;
  if (host.find(':') == std::string_view::npos) {
    text = host;
  } else {
    text.append("[").append(host).append("]");
  }
  return text.append(":").append(std::to_string(port));
}

}  // namespace nfsrdma
