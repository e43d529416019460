// SPDX-License-Identifier: GPL-2.0-or-later
#include "rpc_message.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <span>
#include <string_view>

#include "nfs3_types.h"

namespace nfsrdma {
namespace {

constexpr std::string_view kNfsNames[] = {
    "NULL",    "GETATTR",     "SETATTR", "LOOKUP", "ACCESS",   "READLINK", "READ",   "WRITE",
    "CREATE",  "MKDIR",       "SYMLINK", "MKNOD",  "REMOVE",   "RMDIR",    "RENAME", "LINK",
    "READDIR", "READDIRPLUS", "FSSTAT",  "FSINFO", "PATHCONF", "COMMIT"};
constexpr std::string_view kMountNames[] = {"NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"};
constexpr std::string_view kPortmapNames[] = {"NULL", "SET", "UNSET", "GETPORT", "DUMP", "CALLIT"};
constexpr uint32_t kPortmapProgram = 100000;

std::string procedure_word(std::string_view program, std::span<const std::string_view> names,
                           uint32_t procedure) {
  std::string words(program);
  words += ' ';
  if (procedure < names.size()) return words.append(names[procedure]);
  return words + "procedure " + std::to_string(procedure);
}

void encode_auth_sys(XdrWriter& writer, const Credential& credential) {
  const std::string_view machine =
      std::string_view(credential.machine_name).substr(0, kMachineNameMax);
  const auto name_length = static_cast<uint32_t>(machine.size());
  const auto gids = static_cast<uint32_t>(std::min<size_t>(credential.gids.size(), kGidsMax));
  writer.u32(static_cast<uint32_t>(AuthFlavor::kSys));
  writer.u32(4 + 4 + name_length + xdr_pad(name_length) + 4 + 4 + 4 + 4 * gids);
  writer.u32(credential.stamp);
  writer.string(machine);
  writer.u32(credential.uid);
  writer.u32(credential.gid);
  writer.u32(gids);
  for (uint32_t i = 0; i < gids; i++) writer.u32(credential.gids[i]);
}

tl::unexpected<Error> no_reply(std::string_view what) {
  return fail(EPROTO, "what came back is no RPC reply: " + std::string(what));
}

std::string versions(uint32_t low, uint32_t high) {
  if (low == high) return "version " + std::to_string(low);
  return "versions " + std::to_string(low) + " to " + std::to_string(high);
}

}  // namespace

Credential Credential::of_process() {
  Credential credential;
  credential.uid = geteuid();
  credential.gid = getegid();
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) credential.machine_name = name.data();
  const int count = getgroups(0, nullptr);
  if (count > 0) {
    std::vector<gid_t> groups(static_cast<size_t>(count));
    const int got = getgroups(count, groups.data());
    groups.resize(got > 0 ? static_cast<size_t>(got) : 0);
    credential.gids.assign(groups.begin(), groups.end());
  }
  if (credential.gids.size() > kGidsMax) credential.gids.resize(kGidsMax);
  credential.stamp = static_cast<uint32_t>(getpid());
  return credential;
}

void encode_call_header(XdrWriter& writer, uint32_t xid, uint32_t program, uint32_t version,
                        uint32_t procedure, const Credential& credential) {
  writer.u32(xid);
  writer.u32(static_cast<uint32_t>(MessageType::kCall));
  writer.u32(kRpcVersion);
  writer.u32(program);
  writer.u32(version);
  writer.u32(procedure);
  if (credential.flavor == AuthFlavor::kSys) {
    encode_auth_sys(writer, credential);
  } else {
    writer.u32(static_cast<uint32_t>(AuthFlavor::kNone));
    writer.u32(0);
  }
  writer.u32(static_cast<uint32_t>(AuthFlavor::kNone));  // verifier
  writer.u32(0);
}

Result<ReplyHeader> parse_reply_header(ConstBytes reply) {
  XdrReader reader(reply);
  ReplyHeader header;
  header.xid = reader.u32();
  const uint32_t type = reader.u32();
  header.reply_stat = reader.u32();
  if (!reader.ok()) return no_reply("it has only " + std::to_string(reply.size()) + " bytes");
  if (type != static_cast<uint32_t>(MessageType::kReply)) {
    return no_reply("its message type is " + std::to_string(type));
  }
  if (header.reply_stat == static_cast<uint32_t>(ReplyStat::kAccepted)) {
    reader.u32();  // The verifier's flavour: with AUTH_SYS there is nothing in it to check.
    reader.opaque(kAuthBodyMax);
    header.verdict = reader.u32();
    if (!reader.ok()) return no_reply("its verifier is cut short or too long");
    if (header.verdict > static_cast<uint32_t>(AcceptStat::kSystemErr)) {
      return no_reply("its accept_stat is " + std::to_string(header.verdict));
    }
    if (header.verdict == static_cast<uint32_t>(AcceptStat::kProgMismatch)) {
      header.low = reader.u32();
      header.high = reader.u32();
    }
    header.results_offset = reader.consumed();
  } else if (header.reply_stat == static_cast<uint32_t>(ReplyStat::kDenied)) {
    header.verdict = reader.u32();
    if (header.verdict == static_cast<uint32_t>(RejectStat::kRpcMismatch)) {
      header.low = reader.u32();
      header.high = reader.u32();
    } else if (header.verdict == static_cast<uint32_t>(RejectStat::kAuthError)) {
      header.auth_stat = reader.u32();
    } else {
      return no_reply("its reject_stat is " + std::to_string(header.verdict));
    }
  } else {
    return no_reply("its reply_stat is " + std::to_string(header.reply_stat));
  }
  if (!reader.ok()) return no_reply("its header is cut short");
  return header;
}

Error reply_header_error(const ReplyHeader& header) {
  if (header.reply_stat == static_cast<uint32_t>(ReplyStat::kDenied)) {
    if (header.verdict == static_cast<uint32_t>(RejectStat::kAuthError)) {
      return {EACCES, "the server refused the credential: " + auth_stat_words(header.auth_stat)};
    }
    return {EOPNOTSUPP,
            "RPC_MISMATCH (the server speaks RPC " + versions(header.low, header.high) + ")"};
  }
  switch (static_cast<AcceptStat>(header.verdict)) {
    case AcceptStat::kProgUnavail:
      return {EOPNOTSUPP, "PROG_UNAVAIL (the server does not have this program on this port)"};
    case AcceptStat::kProgMismatch:
      return {EOPNOTSUPP, "PROG_MISMATCH (the server has " + versions(header.low, header.high) +
                              " of this program)"};
    case AcceptStat::kProcUnavail:
      return {EOPNOTSUPP, "PROC_UNAVAIL (the server does not have this procedure)"};
    case AcceptStat::kGarbageArgs:
      return {EINVAL, "GARBAGE_ARGS (the server cannot decode the arguments)"};
    case AcceptStat::kSystemErr:
      return {EREMOTEIO, "SYSTEM_ERR (the server is out of memory or has another fault)"};
    case AcceptStat::kSuccess:
      break;
  }
  return {EPROTO, "accept_stat " + std::to_string(header.verdict)};
}

Result<size_t> decode_reply_header(ConstBytes reply) {
  if (is_plain_success(reply)) return kPlainReplyHeader;
  auto header = parse_reply_header(reply);
  if (!header) return tl::unexpected(header.error());
  if (!header->success()) return tl::unexpected(reply_header_error(*header));
  return header->results_offset;
}

std::string auth_stat_words(uint32_t auth_stat) {
  switch (auth_stat) {  // RFC 5531 section 8.2
    case 0:
      return "AUTH_OK (denied although nothing was wrong)";
    case 1:
      return "AUTH_BADCRED (bad credential)";
    case 2:
      return "AUTH_REJECTEDCRED (credential rejected: a new session is needed)";
    case 3:
      return "AUTH_BADVERF (bad verifier)";
    case 4:
      return "AUTH_REJECTEDVERF (verifier expired or replayed)";
    case 5:
      return "AUTH_TOOWEAK (the server wants a source port below 1024: run as root with "
             "reserved_port=yes, or export with insecure (ganesha: PrivilegedPort = false); or it "
             "wants stronger authentication: export with sec=sys)";
    case 6:
      return "AUTH_INVALIDRESP (bad response verifier)";
    case 7:
      return "AUTH_FAILED (authentication failed)";
    case 13:
      return "RPCSEC_GSS_CREDPROBLEM (no credential for the user)";
    case 14:
      return "RPCSEC_GSS_CTXPROBLEM (problem with the security context)";
    default:
      return "auth_stat " + std::to_string(auth_stat) + " (unknown to RFC 5531)";
  }
}

std::string auth_flavor_name(uint32_t flavor) {
  switch (flavor) {
    case 0:
      return "none";
    case 1:
      return "sys";
    case 2:
      return "short";
    case 3:
      return "dh";
    case 6:
      return "rpcsec_gss";
    case 390003:
      return "krb5";
    case 390004:
      return "krb5i";
    case 390005:
      return "krb5p";
    default:
      return "flavor " + std::to_string(flavor);
  }
}

std::string rpc_procedure_name(uint32_t program, uint32_t procedure) {
  switch (program) {
    case kNfsProgram:
      return procedure_word("NFS", kNfsNames, procedure);
    case kMountProgram:
      return procedure_word("MOUNT", kMountNames, procedure);
    case kPortmapProgram:
      return procedure_word("portmap", kPortmapNames, procedure);
    default:
      return procedure_word("RPC program " + std::to_string(program), {}, procedure);
  }
}

}  // namespace nfsrdma
