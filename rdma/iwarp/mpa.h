// SPDX-License-Identifier: GPL-2.0-or-later
// MPA set-up frames (RFC 5044 section 7.1) with the enhanced set-up of RFC 6581, and the framing of
// FPDUs (RFC 5044 section 4): a 16-bit ULPDU length, the ULPDU, a pad to a multiple of 4, a CRC.
// Markers are never used. Pure functions: any thread, nothing allocated except error texts.
#pragma once

#include <cstdint>
#include <string>

#include "result.h"
#include "xdr.h"

namespace nfsrdma::iwarp {

constexpr uint32_t kMpaLengthBytes = 2;
constexpr uint32_t kMpaCrcBytes = 4;
constexpr uint32_t kUlpduMax = 65535;

/// Bytes of an FPDU on the wire, all included.
constexpr uint32_t fpdu_bytes(uint32_t ulpdu) {
  return ((kMpaLengthBytes + ulpdu + 3) & ~3u) + kMpaCrcBytes;
}
constexpr uint32_t fpdu_pad(uint32_t ulpdu) {
  return (0u - (kMpaLengthBytes + ulpdu)) & 3u;
}

/// RFC 5044 figure 8: key, flags, revision, length of private data.
constexpr uint32_t kMpaFrameBytes = 20;
constexpr uint32_t kMpaPrivateMax = 512;   ///< RFC 5044 section 7.1.1
constexpr uint32_t kMpaEnhancedBytes = 4;  ///< IRD and ORD, the start of the private data
constexpr uint32_t kIrdOrdMax = 0x3fff;

/// How a peer-to-peer set-up shows that the initiator is ready to receive (RFC 6581 section 9).
enum Rtr : uint8_t { kRtrSend = 1, kRtrWrite = 2, kRtrRead = 4 };

struct MpaFrame {
  bool reply = false;
  bool markers = false;   ///< the sender wants to receive markers
  bool crc = false;       ///< the sender wants CRCs
  bool reject = false;    ///< replies only
  bool enhanced = false;  ///< IRD and ORD are there; RFC 6581 asks for revision 2
  uint8_t revision = 2;

  bool peer_to_peer = false;
  uint8_t rtr = 0;   ///< bits of Rtr: offered (request), chosen (reply)
  uint32_t ird = 0;  ///< the sender's
  uint32_t ord = 0;

  ConstBytes private_data;  ///< without IRD and ORD; points into the frame decoded
};

/// Writes the frame; `to` holds kMpaFrameBytes + kMpaEnhancedBytes + private data. Returns its
/// length, 0 if it does not fit.
size_t encode_mpa_frame(const MpaFrame& frame, Bytes to);

/// Length of the frame that begins `bytes`; 0: more bytes are needed to tell. Fails (EPROTO) as
/// soon as the bytes can't begin a frame of that direction: another protocol, or one with private
/// data above kMpaPrivateMax.
Result<size_t> mpa_frame_length(ConstBytes bytes, bool reply);

/// Decodes a frame of exactly the length that mpa_frame_length() gave. Fails (EPROTO) on an
/// enhanced frame without room for IRD and ORD. Revision and flags are for the caller to judge.
Result<MpaFrame> decode_mpa_frame(ConstBytes bytes);

}  // namespace nfsrdma::iwarp
