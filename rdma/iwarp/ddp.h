// SPDX-License-Identifier: GPL-2.0-or-later
// DDP and RDMAP headers (RFC 5041 section 4, RFC 5040 section 4) as they stand in an FPDU, its
// ULPDU length included, and the Terminate codes of RDMAP, DDP and MPA. Pure functions: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "xdr.h"

namespace nfsrdma::iwarp {

constexpr uint32_t kDdpTaggedBytes = 14;    ///< control, STag, tagged offset
constexpr uint32_t kDdpUntaggedBytes = 18;  ///< control, RsvdULP, queue, MSN, message offset
constexpr uint32_t kReadRequestBytes = 28;  ///< after the untagged header
constexpr uint32_t kTaggedHead = 2 + kDdpTaggedBytes;  ///< with the ULPDU length before it
constexpr uint32_t kUntaggedHead = 2 + kDdpUntaggedBytes;
constexpr uint32_t kTerminateBytes = 4;  ///< control; what is wrong may follow
constexpr uint8_t kDdpVersion = 1;
constexpr uint8_t kRdmapVersion = 1;

/// RFC 5040 figure 4.
enum Opcode : uint8_t {
  kOpWrite = 0,
  kOpReadRequest = 1,
  kOpReadResponse = 2,
  kOpSend = 3,
  kOpSendInvalidate = 4,
  kOpSendSolicited = 5,
  kOpSendSolicitedInvalidate = 6,
  kOpTerminate = 7,
};

/// Queue numbers of untagged buffers (RFC 5040 section 4.3).
enum Queue : uint32_t { kQueueSend = 0, kQueueReadRequest = 1, kQueueTerminate = 2 };

struct DdpHeader {
  uint16_t ulpdu = 0;
  bool tagged = false;
  bool last = false;
  uint8_t ddp_version = kDdpVersion;
  uint8_t rdmap_version = kRdmapVersion;
  uint8_t opcode = 0;
  uint32_t stag = 0;  ///< tagged: the buffer's; untagged: RsvdULP, the STag to invalidate
  uint64_t tagged_offset = 0;
  uint32_t queue = 0;
  uint32_t msn = 0;
  uint32_t message_offset = 0;

  uint32_t head_bytes() const { return tagged ? kTaggedHead : kUntaggedHead; }
};

struct ReadRequest {
  uint32_t sink_stag = 0;
  uint64_t sink_offset = 0;
  uint32_t length = 0;
  uint32_t source_stag = 0;
  uint64_t source_offset = 0;
};

/// Writes kTaggedHead bytes.
void put_tagged(std::byte* to, uint32_t ulpdu, Opcode opcode, bool last, uint32_t stag,
                uint64_t tagged_offset);
/// Writes kUntaggedHead bytes.
void put_untagged(std::byte* to, uint32_t ulpdu, Opcode opcode, bool last, uint32_t reserved_ulp,
                  Queue queue, uint32_t msn, uint32_t message_offset);
void put_read_request(std::byte* to, const ReadRequest& request);

/// Reads ULPDU length and control, which tell how long the head is; `from` holds 4 bytes.
DdpHeader get_control(const std::byte* from);
/// Reads the rest; `from` holds head_bytes() from the ULPDU length on.
void get_rest(const std::byte* from, DdpHeader& header);
ReadRequest get_read_request(const std::byte* from);

/// Where an error was found and which it is (RFC 5040 section 4.8, RFC 5041 section 7.2, RFC 5044
/// section 8, RFC 6581 section 10).
struct TerminateCode {
  uint8_t layer = 0;
  uint8_t type = 0;
  uint8_t code = 0;
  bool operator==(const TerminateCode&) const = default;
};

namespace term {
constexpr TerminateCode kRdmapCatastrophic{0, 0, 0};
constexpr TerminateCode kReadStag{0, 1, 0x00};
constexpr TerminateCode kReadBounds{0, 1, 0x01};
constexpr TerminateCode kAccess{0, 1, 0x02};
constexpr TerminateCode kReadWrap{0, 1, 0x04};
constexpr TerminateCode kCannotInvalidate{0, 1, 0x09};
constexpr TerminateCode kRdmapVersion{0, 2, 0x05};
constexpr TerminateCode kOpcode{0, 2, 0x06};
constexpr TerminateCode kStreamCatastrophic{0, 2, 0x07};
constexpr TerminateCode kTaggedStag{1, 1, 0x00};
constexpr TerminateCode kTaggedBounds{1, 1, 0x01};
constexpr TerminateCode kTaggedWrap{1, 1, 0x03};
constexpr TerminateCode kTaggedVersion{1, 1, 0x04};
constexpr TerminateCode kQueueNumber{1, 2, 0x01};
constexpr TerminateCode kNoBuffer{1, 2, 0x02};
constexpr TerminateCode kMsn{1, 2, 0x03};
constexpr TerminateCode kMessageOffset{1, 2, 0x04};
constexpr TerminateCode kTooLong{1, 2, 0x05};
constexpr TerminateCode kUntaggedVersion{1, 2, 0x06};
constexpr TerminateCode kCrc{2, 0, 0x02};
constexpr TerminateCode kUlpduLength{2, 0, 0x03};
constexpr TerminateCode kSetupFrame{2, 0, 0x04};
constexpr TerminateCode kInsufficientIrd{2, 0, 0x06};
constexpr TerminateCode kNoRtr{2, 0, 0x07};
}  // namespace term

/// "DDP, tagged buffer: base or bounds violation"; numbers where a code is unknown.
std::string to_string(TerminateCode code);

/// Writes what follows the untagged head of a Terminate: control, and the head of the FPDU that is
/// to blame (`blamed`, from its ULPDU length on; may be empty). Returns the length; `to` holds
/// kTerminateBytes + kUntaggedHead + kReadRequestBytes.
size_t put_terminate(std::byte* to, TerminateCode code, ConstBytes blamed);
TerminateCode get_terminate(const std::byte* from);

}  // namespace nfsrdma::iwarp
