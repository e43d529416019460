// SPDX-License-Identifier: GPL-2.0-or-later
#include "ddp.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace nfsrdma::iwarp {
namespace {

constexpr uint8_t kTagged = 0x80;
constexpr uint8_t kLast = 0x40;

// Both versions are 1: DDP's in the low bits of the first byte, RDMAP's in the top of the second.
void put_head(std::byte* to, uint32_t ulpdu, uint8_t flags, Opcode opcode) {
  to[0] = static_cast<std::byte>(ulpdu >> 8);
  to[1] = static_cast<std::byte>(ulpdu);
  to[2] = static_cast<std::byte>(flags | kDdpVersion);
  to[3] = static_cast<std::byte>(kRdmapVersion << 6 | opcode);
}

// Terminate control: which heads follow (RFC 5040 section 4.8).
constexpr uint32_t kSegmentLengthValid = 0x8000;
constexpr uint32_t kDdpHeadIncluded = 0x4000;
constexpr uint32_t kRdmapHeadIncluded = 0x2000;

std::string_view category(TerminateCode code) {
  if (code.layer == 0) {
    if (code.type == 0) return "RDMAP, local catastrophic error";
    if (code.type == 1) return "RDMAP, remote protection";
    if (code.type == 2) return "RDMAP, remote operation";
  } else if (code.layer == 1) {
    if (code.type == 0) return "DDP, local catastrophic error";
    if (code.type == 1) return "DDP, tagged buffer";
    if (code.type == 2) return "DDP, untagged buffer";
  } else if (code.layer == 2 && code.type == 0) {
    return "MPA";
  }
  return {};
}

std::string_view rdmap_words(uint8_t code) {
  switch (code) {
    case 0x00:
      return "invalid STag";
    case 0x01:
      return "base or bounds violation";
    case 0x02:
      return "access rights violation";
    case 0x03:
      return "STag not associated with this stream";
    case 0x04:
      return "tagged offset wraps";
    case 0x05:
      return "invalid RDMAP version";
    case 0x06:
      return "unexpected opcode";
    case 0x07:
      return "catastrophic error, this stream";
    case 0x08:
      return "catastrophic error, all streams";
    case 0x09:
      return "STag cannot be invalidated";
    case 0xff:
      return "unspecified error";
  }
  return {};
}

std::string_view ddp_words(TerminateCode code) {
  if (code.type == 1) {
    switch (code.code) {
      case 0x00:
        return "invalid STag";
      case 0x01:
        return "base or bounds violation";
      case 0x02:
        return "STag not associated with this stream";
      case 0x03:
        return "tagged offset wraps";
      case 0x04:
        return "invalid DDP version";
    }
    return {};
  }
  switch (code.code) {
    case 0x01:
      return "invalid queue number";
    case 0x02:
      return "no buffer for the message: more was sent than receives are posted";
    case 0x03:
      return "message sequence number out of range";
    case 0x04:
      return "invalid message offset";
    case 0x05:
      return "message longer than the buffer";
    case 0x06:
      return "invalid DDP version";
  }
  return {};
}

std::string_view mpa_words(uint8_t code) {
  switch (code) {
    case 0x01:
      return "TCP connection lost";
    case 0x02:
      return "CRC error";
    case 0x03:
      return "markers and ULPDU length do not agree";
    case 0x04:
      return "invalid set-up frame";
    case 0x05:
      return "local catastrophic error";
    case 0x06:
      return "insufficient IRD";
    case 0x07:
      return "no common form of RTR";
  }
  return {};
}

std::string_view words(TerminateCode code) {
  if (code.layer == 0) return code.type == 0 ? std::string_view() : rdmap_words(code.code);
  if (code.layer == 1) return code.type == 0 ? std::string_view() : ddp_words(code);
  return mpa_words(code.code);
}

}  // namespace

void put_tagged(std::byte* to, uint32_t ulpdu, Opcode opcode, bool last, uint32_t stag,
                uint64_t tagged_offset) {
  put_head(to, ulpdu, last ? kTagged | kLast : kTagged, opcode);
  store_be32(to + 4, stag);
  store_be64(to + 8, tagged_offset);
}

void put_untagged(std::byte* to, uint32_t ulpdu, Opcode opcode, bool last, uint32_t reserved_ulp,
                  Queue queue, uint32_t msn, uint32_t message_offset) {
  put_head(to, ulpdu, last ? kLast : 0, opcode);
  store_be32(to + 4, reserved_ulp);
  store_be32(to + 8, queue);
  store_be32(to + 12, msn);
  store_be32(to + 16, message_offset);
}

void put_read_request(std::byte* to, const ReadRequest& request) {
  store_be32(to, request.sink_stag);
  store_be64(to + 4, request.sink_offset);
  store_be32(to + 12, request.length);
  store_be32(to + 16, request.source_stag);
  store_be64(to + 20, request.source_offset);
}

DdpHeader get_control(const std::byte* from) {
  DdpHeader header;
  header.ulpdu =
      static_cast<uint16_t>(static_cast<uint16_t>(from[0]) << 8 | static_cast<uint16_t>(from[1]));
  const auto ddp = static_cast<uint8_t>(from[2]);
  const auto rdmap = static_cast<uint8_t>(from[3]);
  header.tagged = (ddp & kTagged) != 0;
  header.last = (ddp & kLast) != 0;
  header.ddp_version = ddp & 3;
  header.rdmap_version = rdmap >> 6;
  header.opcode = rdmap & 0x0f;
  return header;
}

void get_rest(const std::byte* from, DdpHeader& header) {
  header.stag = load_be32(from + 4);
  if (header.tagged) {
    header.tagged_offset = load_be64(from + 8);
    return;
  }
  header.queue = load_be32(from + 8);
  header.msn = load_be32(from + 12);
  header.message_offset = load_be32(from + 16);
}

ReadRequest get_read_request(const std::byte* from) {
  ReadRequest request;
  request.sink_stag = load_be32(from);
  request.sink_offset = load_be64(from + 4);
  request.length = load_be32(from + 12);
  request.source_stag = load_be32(from + 16);
  request.source_offset = load_be64(from + 20);
  return request;
}

std::string to_string(TerminateCode code) {
  // Linux siw sends layer and type the other way round. What no RFC knows is read so.
  if (const TerminateCode turned{code.type, code.layer, code.code};
      category(code).empty() && !category(turned).empty())
    code = turned;
  const std::string_view where = category(code);
  const std::string_view what = words(code);
  std::string text =
      where.empty() ? "layer " + std::to_string(code.layer) + ", type " + std::to_string(code.type)
                    : std::string(where);
  if (!what.empty() && !where.empty()) return text.append(": ").append(what);
  if (code.code == 0) return text;
  return text.append(", code ").append(std::to_string(code.code));
}

size_t put_terminate(std::byte* to, TerminateCode code, ConstBytes blamed) {
  uint32_t control = static_cast<uint32_t>(code.layer) << 28 |
                     static_cast<uint32_t>(code.type) << 24 |
                     static_cast<uint32_t>(code.code) << 16;
  // An unknown version or a broken FPDU has no head that could be told (RFC 5040 figure 11).
  const bool tell = code.layer < 2 && !(code.layer == 0 && code.type == 0) &&
                    code != term::kRdmapVersion && code != term::kTaggedVersion &&
                    code != term::kUntaggedVersion && blamed.size() >= kTaggedHead;
  size_t included = 0;
  if (tell) {
    const DdpHeader header = get_control(blamed.data());
    included = std::min<size_t>(blamed.size(), header.head_bytes());
    control |= kSegmentLengthValid | kDdpHeadIncluded;
    if (code.layer == 0 && code.type == 1 && header.opcode == kOpReadRequest &&
        blamed.size() >= kUntaggedHead + kReadRequestBytes) {
      included = kUntaggedHead + kReadRequestBytes;
      control |= kRdmapHeadIncluded;
    }
  }
  store_be32(to, control);
  if (included != 0) std::memcpy(to + kTerminateBytes, blamed.data(), included);
  return kTerminateBytes + included;
}

TerminateCode get_terminate(const std::byte* from) {
  const uint32_t control = load_be32(from);
  return {static_cast<uint8_t>(control >> 28), static_cast<uint8_t>((control >> 24) & 0xf),
          static_cast<uint8_t>((control >> 16) & 0xff)};
}

}  // namespace nfsrdma::iwarp
