// SPDX-License-Identifier: GPL-2.0-or-later
// ONC RPC messages (RFC 5531): the header of a call, and the header of a reply to errno and words.
//
// encode_call_header() and is_plain_success() are for the data path too: they neither allocate nor
// lock. Everything else builds messages and belongs to the control plane. No state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "result.h"
#include "xdr.h"

namespace nfsrdma {

constexpr uint32_t kRpcVersion = 2;

enum class MessageType : uint32_t { kCall = 0, kReply = 1 };
enum class ReplyStat : uint32_t { kAccepted = 0, kDenied = 1 };
enum class AcceptStat : uint32_t {
  kSuccess = 0,
  kProgUnavail = 1,
  kProgMismatch = 2,
  kProcUnavail = 3,
  kGarbageArgs = 4,
  kSystemErr = 5,
};
enum class RejectStat : uint32_t { kRpcMismatch = 0, kAuthError = 1 };

/// Flavours of authentication: RFC 5531 section 8.2; 390003 and on RFC 2623 section 2.2.3.
enum class AuthFlavor : uint32_t { kNone = 0, kSys = 1 };

/// RFC 5531 section 8.2 and appendix A.
constexpr uint32_t kAuthBodyMax = 400;
constexpr uint32_t kMachineNameMax = 255;
constexpr uint32_t kGidsMax = 16;

/// Largest encoded call header: six words, the credential with its largest AUTH_SYS body, and an
/// empty verifier.
constexpr uint32_t kCallHeaderMax =
    6 * 4 + 2 * 4 + (4 + 4 + kMachineNameMax + 1 + 4 + 4 + 4 + 4 * kGidsMax) + 2 * 4;
static_assert(4 + 4 + kMachineNameMax + 1 + 12 + 4 * kGidsMax <= kAuthBodyMax);

/// Largest encoded reply header: xid, type, stat, verifier, accept_stat, low and high.
constexpr uint32_t kReplyHeaderMax = 3 * 4 + 2 * 4 + kAuthBodyMax + 4 + 8;
/// Header of an accepted, successful reply with an empty AUTH_NONE verifier.
constexpr uint32_t kPlainReplyHeader = 24;

struct Credential {
  AuthFlavor flavor = AuthFlavor::kSys;
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> gids;  ///< supplementary; those beyond kGidsMax are not sent
  std::string machine_name;    ///< bytes beyond kMachineNameMax are not sent
  uint32_t stamp = 0;          ///< arbitrary (RFC 5531 appendix A)

  /// AUTH_SYS with the effective ids, the groups and the host name of this process.
  static Credential of_process();
  static Credential none() {
    Credential credential;
    credential.flavor = AuthFlavor::kNone;
    return credential;
  }
};

/// Writes everything of a call before its arguments. At most kCallHeaderMax bytes.
void encode_call_header(XdrWriter& writer, uint32_t xid, uint32_t program, uint32_t version,
                        uint32_t procedure, const Credential& credential);

/// The common case, looked for first: accepted, an empty AUTH_NONE verifier, SUCCESS. Results then
/// begin at kPlainReplyHeader. The xid is the transport's affair and not looked at.
inline bool is_plain_success(ConstBytes reply) {
  if (reply.size() < kPlainReplyHeader) return false;
  const std::byte* at = reply.data() + 4;
  // Type REPLY is 1, and the four words after it are 0.
  return load_be64(at) == uint64_t{1} << 32 && (load_be64(at + 8) | load_be32(at + 16)) == 0;
}

/// What a reply header says, as the words on the wire.
struct ReplyHeader {
  uint32_t xid = 0;
  uint32_t reply_stat = 0;
  uint32_t verdict = 0;        ///< accept_stat or reject_stat
  uint32_t low = 0, high = 0;  ///< versions served: PROG_MISMATCH, RPC_MISMATCH
  uint32_t auth_stat = 0;      ///< AUTH_ERROR
  size_t results_offset = 0;   ///< where the results begin; set on success only

  [[nodiscard]] bool success() const { return reply_stat == 0 && verdict == 0; }
};

/// EPROTO when `reply` is no RPC reply: too short, a call, words out of range.
Result<ReplyHeader> parse_reply_header(ConstBytes reply);

/// The error that an unsuccessful header stands for: EOPNOTSUPP for PROG_UNAVAIL, PROG_MISMATCH,
/// PROC_UNAVAIL and RPC_MISMATCH; EACCES for AUTH_ERROR; EINVAL for GARBAGE_ARGS; EREMOTEIO for
/// SYSTEM_ERR. The text is the server's answer in words, to be put behind who was asked for what.
Error reply_header_error(const ReplyHeader& header);

/// Both: where the results begin, or the error.
Result<size_t> decode_reply_header(ConstBytes reply);

/// "AUTH_TOOWEAK (the server wants stronger authentication)"; names unknown ones by number.
std::string auth_stat_words(uint32_t auth_stat);
/// "sys", "krb5", ... as exports(5) writes them; "flavor 7" for others.
std::string auth_flavor_name(uint32_t flavor);
/// "NFS GETATTR", "MOUNT MNT", "portmap GETPORT"; numbers for what is unknown.
std::string rpc_procedure_name(uint32_t program, uint32_t procedure);

}  // namespace nfsrdma
