// SPDX-License-Identifier: GPL-2.0-or-later
// Replies of a scripted RPC peer, written by hand as RFC 5531 and RFC 1813 have them: not with the
// codecs under test.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fake_transport.h"
#include "xdr.h"

namespace nfsrdma::testing {

/// "0000 000a ff": hex digits, blanks ignored.
inline std::vector<std::byte> hex(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ' ' && c != '\n') digits += c;
  }
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(std::byte(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::string to_hex(ConstBytes bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<int>(byte) >> 4];
    text += kDigits[std::to_integer<int>(byte) & 15];
  }
  return text;
}

/// XDR put together word by word.
class XdrText {
 public:
  XdrText& u32(uint32_t word) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes_.push_back(std::byte(word >> shift));
    return *this;
  }
  XdrText& u64(uint64_t word) {
    return u32(static_cast<uint32_t>(word >> 32)).u32(static_cast<uint32_t>(word));
  }
  XdrText& opaque(std::string_view text) {
    u32(static_cast<uint32_t>(text.size()));
    for (const char c : text) bytes_.push_back(std::byte(c));
    while (bytes_.size() % 4 != 0) bytes_.push_back(std::byte(0));
    return *this;
  }
  /// fattr3 with type, mode 0644, size; the rest are numbers that tell the fields apart.
  XdrText& fattr3(uint32_t type, uint64_t size) {
    u32(type).u32(0644).u32(1).u32(1000).u32(1001).u64(size).u64(size + 4096);
    u32(8).u32(9).u64(0xf51d).u64(0x123456789abcdef0);
    return u32(11).u32(12).u32(21).u32(22).u32(31).u32(32);
  }
  XdrText& post_op_attr(uint32_t type, uint64_t size) { return u32(1).fattr3(type, size); }
  XdrText& no_wcc() { return u32(0).u32(0); }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// What a call asks for, read by hand.
struct CallWords {
  uint32_t xid, program, version, procedure;
  std::vector<std::byte> arguments;
};

inline CallWords read_call(ConstBytes call) {
  XdrReader reader(call);
  CallWords words{};
  words.xid = reader.u32();
  reader.skip(8);
  words.program = reader.u32();
  words.version = reader.u32();
  words.procedure = reader.u32();
  reader.skip(4);
  reader.opaque(400);
  reader.skip(4);
  reader.opaque(400);
  const ConstBytes rest = reader.rest();
  words.arguments.assign(rest.begin(), rest.end());
  return words;
}

/// An accepted, successful reply with these results.
inline Script accepted(ConstBytes call, const XdrText& results) {
  XdrText reply;
  reply.u32(load_be32(call.data())).u32(1).u32(0).u32(0).u32(0).u32(0);
  Script script;
  script.reply = reply.bytes();
  script.reply.insert(script.reply.end(), results.bytes().begin(), results.bytes().end());
  return script;
}

/// An accepted reply with another accept_stat.
inline Script not_done(ConstBytes call, uint32_t accept_stat, uint32_t low = 0, uint32_t high = 0) {
  XdrText reply;
  reply.u32(load_be32(call.data())).u32(1).u32(0).u32(0).u32(0).u32(accept_stat);
  if (accept_stat == 2) reply.u32(low).u32(high);
  Script script;
  script.reply = reply.bytes();
  return script;
}

/// An entryplus3 behind `text`, with attributes and a handle.
inline XdrText entry(XdrText text, const std::string& name, uint64_t cookie) {
  return text.u32(1)
      .u64(cookie + 100)
      .opaque(name)
      .u64(cookie)
      .post_op_attr(1, cookie)
      .u32(1)
      .opaque("h" + name);
}

}  // namespace nfsrdma::testing
