// SPDX-License-Identifier: GPL-2.0-or-later
#include "mpa.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace nfsrdma::iwarp {
namespace {

constexpr std::string_view kRequestKey = "MPA ID Req Frame";
constexpr std::string_view kReplyKey = "MPA ID Rep Frame";
static_assert(kRequestKey.size() == 16 && kReplyKey.size() == 16);

constexpr uint16_t kMarkers = 0x8000;
constexpr uint16_t kCrc = 0x4000;
constexpr uint16_t kReject = 0x2000;
constexpr uint16_t kEnhanced = 0x1000;
constexpr uint16_t kRevisionMask = 0x00ff;

constexpr uint16_t kPeerToPeer = 0x8000;  // in the word of the IRD
constexpr uint16_t kWordRtrSend = 0x4000;
constexpr uint16_t kWordRtrWrite = 0x8000;  // in the word of the ORD
constexpr uint16_t kWordRtrRead = 0x4000;

void put16(std::byte* to, uint32_t value) {
  to[0] = static_cast<std::byte>(value >> 8);
  to[1] = static_cast<std::byte>(value);
}

uint16_t get16(const std::byte* from) {
  return static_cast<uint16_t>(static_cast<uint16_t>(from[0]) << 8 |
                               static_cast<uint16_t>(from[1]));
}

}  // namespace

size_t encode_mpa_frame(const MpaFrame& frame, Bytes to) {
  const size_t head = kMpaFrameBytes + (frame.enhanced ? kMpaEnhancedBytes : 0);
  const size_t private_bytes = head - kMpaFrameBytes + frame.private_data.size();
  if (private_bytes > kMpaPrivateMax || to.size() < kMpaFrameBytes + private_bytes) return 0;

  std::memcpy(to.data(), (frame.reply ? kReplyKey : kRequestKey).data(), 16);
  const uint32_t flags = (frame.markers ? kMarkers : 0u) | (frame.crc ? kCrc : 0u) |
                         (frame.reject ? kReject : 0u) | (frame.enhanced ? kEnhanced : 0u);
  put16(&to[16], flags | frame.revision);
  put16(&to[18], static_cast<uint32_t>(private_bytes));
  if (frame.enhanced) {
    put16(&to[20], (frame.ird & kIrdOrdMax) | (frame.peer_to_peer ? kPeerToPeer : 0u) |
                       ((frame.rtr & kRtrSend) != 0 ? kWordRtrSend : 0u));
    put16(&to[22], (frame.ord & kIrdOrdMax) | ((frame.rtr & kRtrWrite) != 0 ? kWordRtrWrite : 0u) |
                       ((frame.rtr & kRtrRead) != 0 ? kWordRtrRead : 0u));
  }
  if (!frame.private_data.empty()) {
    std::memcpy(&to[head], frame.private_data.data(), frame.private_data.size());
  }
  return kMpaFrameBytes + private_bytes;
}

Result<size_t> mpa_frame_length(ConstBytes bytes, bool reply) {
  const std::string_view key = reply ? kReplyKey : kRequestKey;
  const size_t compared = std::min(bytes.size(), key.size());
  if (compared != 0 && std::memcmp(bytes.data(), key.data(), compared) != 0) {
    return fail(EPROTO, "what came is not MPA: that port is no iWARP one");
  }
  if (bytes.size() < kMpaFrameBytes) return 0;
  const uint32_t private_bytes = get16(&bytes[18]);
  if (private_bytes > kMpaPrivateMax) {
    return fail(EPROTO, "an MPA frame with " + std::to_string(private_bytes) +
                            " bytes of private data, 512 at most are allowed");
  }
  return kMpaFrameBytes + private_bytes;
}

Result<MpaFrame> decode_mpa_frame(ConstBytes bytes) {
  MpaFrame frame;
  frame.reply = std::memcmp(bytes.data(), kReplyKey.data(), 16) == 0;
  const uint16_t flags = get16(&bytes[16]);
  frame.markers = (flags & kMarkers) != 0;
  frame.crc = (flags & kCrc) != 0;
  frame.reject = (flags & kReject) != 0;
  frame.revision = static_cast<uint8_t>(flags & kRevisionMask);
  // The enhanced bit has its meaning in revision 2 only: it was reserved before (RFC 6581).
  frame.enhanced = frame.revision >= 2 && (flags & kEnhanced) != 0;
  frame.private_data = bytes.subspan(kMpaFrameBytes);
  if (!frame.enhanced) return frame;

  if (frame.private_data.size() < kMpaEnhancedBytes) {
    // siw's rejections keep the bit and bring no values.
    if (frame.reject) return frame;
    return fail(EPROTO, "an enhanced MPA frame without IRD and ORD");
  }
  const uint16_t ird = get16(frame.private_data.data());
  const uint16_t ord = get16(&frame.private_data[2]);
  frame.ird = ird & kIrdOrdMax;
  frame.ord = ord & kIrdOrdMax;
  frame.peer_to_peer = (ird & kPeerToPeer) != 0;
  frame.rtr = static_cast<uint8_t>(((ird & kWordRtrSend) != 0 ? kRtrSend : 0) |
                                   ((ord & kWordRtrWrite) != 0 ? kRtrWrite : 0) |
                                   ((ord & kWordRtrRead) != 0 ? kRtrRead : 0));
  frame.private_data = frame.private_data.subspan(kMpaEnhancedBytes);
  return frame;
}

}  // namespace nfsrdma::iwarp
