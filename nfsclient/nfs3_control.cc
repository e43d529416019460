// SPDX-License-Identifier: GPL-2.0-or-later
// Asking, and the procedures that change nothing. Those that do: nfs3_control_modify.cc.
#include "nfs3_control.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "nfs3_convert.h"
#include "nfs3_status.h"
#include "reply_shape.h"
#include "rpc_message.h"
#include "zdr_codec.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kReplyMax = 1024;
/// READDIRPLUS: bytes of names and cookies, and of the whole reply.
constexpr uint32_t kDirCount = 8'192;
constexpr uint32_t kDirReplyMax = 32'768;
constexpr uint32_t kDirStartsMax = 4;
constexpr std::string_view kDirShape = "4aV{8s8af}b";

std::string named(const std::string& what) {
  return "\"" + what + "\"";
}

}  // namespace

Result<void> check_name(std::string_view name) {
  if (name.size() > kNameMax) {
    return fail(ENAMETOOLONG, "a name of " + std::to_string(name.size()) + " bytes; at most " +
                                  std::to_string(kNameMax) + " are allowed: \"" +
                                  std::string(name.substr(0, 40)) + "...\"");
  }
  if (name.empty() || name == "." || name == "..") {
    std::string text = "\"";
    text.append(name).append("\" is not a name of a file or directory");
    return fail(EINVAL, std::move(text));
  }
  if (name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos) {
    return fail(EINVAL, "a name may not contain a slash or a NUL");
  }
  return {};
}

std::string Nfs3Control::asked(NfsProcedure procedure, const std::string& what) const {
  return rpc_procedure_name(kNfsProgram, static_cast<uint32_t>(procedure)) + " of " + named(what) +
         " on " + config_.server + ": ";
}

Error Nfs3Control::refused(NfsProcedure procedure, const std::string& what, uint32_t status) const {
  return {nfs3_errno(status), asked(procedure, what) + nfs3_words(status) +
                                  nfs3_hint(status, config_.uid, config_.gid)};
}

tl::unexpected<Error> Nfs3Control::garbled(NfsProcedure procedure, const std::string& what) const {
  return fail(EPROTO, asked(procedure, what) + "the reply is garbled or cut short");
}

Result<Nfs3Control::Answer> Nfs3Control::ask(NfsProcedure procedure, ConstBytes arguments,
                                             const std::string& what, uint32_t reply_max) {
  uint32_t wait_ms = config_.jukebox_first_ms;
  for (uint32_t tries = 1;; tries++) {
    auto reply = caller_.call(kNfsProgram, kNfsVersion, static_cast<uint32_t>(procedure), arguments,
                              reply_max);
    if (!reply) return tl::unexpected(reply.error());
    XdrReader reader(*reply);
    const Answer answer{reader.u32(), *reply, caller_.retransmissions()};
    if (!reader.ok()) return garbled(procedure, what);
    if (answer.status != static_cast<uint32_t>(Nfs3Status::kJukebox)) return answer;
    if (tries >= config_.jukebox_tries) {
      Error error = refused(procedure, what, answer.status);
      error.text += ", still after " + std::to_string(tries) + " calls";
      return tl::unexpected(std::move(error));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    wait_ms = std::min(wait_ms * 2, config_.jukebox_longest_ms);
  }
}

Result<ConstBytes> Nfs3Control::ask_ok(NfsProcedure procedure, ConstBytes arguments,
                                       const std::string& what, std::string_view shape) {
  const bool directory = procedure == NfsProcedure::kReaddirplus;
  auto answer = ask(procedure, arguments, what, directory ? kDirReplyMax + kReplyMax : kReplyMax);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->status != 0) return tl::unexpected(refused(procedure, what, answer->status));
  if (!has_shape(answer->reply, shape)) return garbled(procedure, what);
  return answer->reply;
}

Result<void> Nfs3Control::null() {
  auto reply = caller_.call(kNfsProgram, kNfsVersion, static_cast<uint32_t>(NfsProcedure::kNull),
                            {}, kReplyMax);
  if (!reply) return tl::unexpected(reply.error());
  return {};
}

Result<Attributes> Nfs3Control::getattr(const FileHandle& object, const std::string& what) {
  GETATTR3args args{to_zdr(object)};
  ZdrArguments arguments;
  auto reply = ask_ok(NfsProcedure::kGetattr, arguments.encode(zdr_GETATTR3args, args), what, "4A");
  if (!reply) return tl::unexpected(reply.error());
  const ZdrResults<GETATTR3res> results(*reply, zdr_GETATTR3res);
  if (!results.ok()) return garbled(NfsProcedure::kGetattr, what);
  return from_zdr(results.value().GETATTR3res_u.resok.obj_attributes);
}

Result<Node> Nfs3Control::lookup(const FileHandle& directory, const std::string& name) {
  if (auto checked = check_name(name); !checked) return tl::unexpected(checked.error());
  LOOKUP3args args{to_zdr(directory, name)};
  ZdrArguments arguments;
  auto reply = ask_ok(NfsProcedure::kLookup, arguments.encode(zdr_LOOKUP3args, args), name, "4Faa");
  if (!reply) return tl::unexpected(reply.error());
  const ZdrResults<LOOKUP3res> results(*reply, zdr_LOOKUP3res);
  if (!results.ok()) return garbled(NfsProcedure::kLookup, name);
  const LOOKUP3resok& found = results.value().LOOKUP3res_u.resok;
  auto handle = from_zdr(found.object);
  if (!handle) return garbled(NfsProcedure::kLookup, name);
  return Node{*handle, from_zdr(found.obj_attributes)};
}

Result<uint32_t> Nfs3Control::access(const FileHandle& object, uint32_t wanted,
                                     const std::string& what) {
  ACCESS3args args{to_zdr(object), wanted};
  ZdrArguments arguments;
  auto reply = ask_ok(NfsProcedure::kAccess, arguments.encode(zdr_ACCESS3args, args), what, "4a4");
  if (!reply) return tl::unexpected(reply.error());
  const ZdrResults<ACCESS3res> results(*reply, zdr_ACCESS3res);
  if (!results.ok()) return garbled(NfsProcedure::kAccess, what);
  return results.value().ACCESS3res_u.resok.access & wanted;
}

Result<DirPage> Nfs3Control::readdirplus_page(const FileHandle& directory, const DirPosition& from,
                                              const std::string& what) {
  READDIRPLUS3args args{};
  args.dir = to_zdr(directory);
  args.cookie = from.cookie;
  std::ranges::copy(from.verifier, args.cookieverf);
  args.dircount = kDirCount;
  args.maxcount = kDirReplyMax;
  ZdrArguments arguments;
  auto reply = ask_ok(NfsProcedure::kReaddirplus, arguments.encode(zdr_READDIRPLUS3args, args),
                      what, kDirShape);
  if (!reply) return tl::unexpected(reply.error());
  const ZdrResults<READDIRPLUS3res> results(*reply, zdr_READDIRPLUS3res);
  if (!results.ok()) return garbled(NfsProcedure::kReaddirplus, what);
  const READDIRPLUS3resok& read = results.value().READDIRPLUS3res_u.resok;

  DirPage page;
  page.next = from;
  page.eof = read.reply.eof != 0;
  std::ranges::copy(read.cookieverf, page.next.verifier.begin());
  for (const entryplus3* at = read.reply.entries; at != nullptr;) {
    const entryplus3 entry = zdr_load(at);
    at = entry.nextentry;
    page.next.cookie = entry.cookie;
    const std::string_view name = entry.name;
    if (name == "." || name == "..") continue;
    page.entries.push_back({std::string(name), entry.fileid, entry.cookie,
                            from_zdr(entry.name_attributes), from_zdr(entry.name_handle)});
  }
  if (read.reply.entries == nullptr && !page.eof) {
    return fail(EPROTO, asked(NfsProcedure::kReaddirplus, what) +
                            "neither an entry nor the end of the directory came");
  }
  return page;
}

Result<std::vector<DirEntry>> Nfs3Control::readdirplus(const FileHandle& directory,
                                                       size_t entries_max,
                                                       const std::string& what) {
  std::vector<DirEntry> entries;
  DirPosition position;
  uint32_t starts = 1;
  // A page holds an entry or ends the directory, "." and ".." apart, so this bounds the pages.
  for (size_t pages = 0; pages <= entries_max + 2; pages++) {
    auto page = readdirplus_page(directory, position, what);
    if (!page && page.error().code == EBADF && position.cookie != 0 && starts < kDirStartsMax) {
      starts++;
      position = {};
      entries.clear();
      continue;
    }
    if (!page) return tl::unexpected(page.error());
    for (DirEntry& entry : page->entries) entries.push_back(std::move(entry));
    if (entries.size() > entries_max) break;
    if (page->eof) return entries;
    position = page->next;
  }
  return fail(E2BIG, asked(NfsProcedure::kReaddirplus, what) + "the directory has more than " +
                         std::to_string(entries_max) + " entries");
}

Result<FsInfo> Nfs3Control::fsinfo(const FileHandle& object, const std::string& what) {
  FSINFO3args args{to_zdr(object)};
  ZdrArguments arguments;
  auto reply =
      ask_ok(NfsProcedure::kFsinfo, arguments.encode(zdr_FSINFO3args, args), what, "4a4444444884");
  if (!reply) return tl::unexpected(reply.error());
  const ZdrResults<FSINFO3res> results(*reply, zdr_FSINFO3res);
  if (!results.ok()) return garbled(NfsProcedure::kFsinfo, what);
  const FSINFO3resok& from = results.value().FSINFO3res_u.resok;
  if (from.rtmax == 0 || from.wtmax == 0) {
    return fail(EPROTO, asked(NfsProcedure::kFsinfo, what) +
                            "the server allows no byte in a READ or a WRITE (rtmax, wtmax)");
  }
  FsInfo to;
  to.rtmax = from.rtmax;
  to.rtpref = from.rtpref;
  to.rtmult = from.rtmult;
  to.wtmax = from.wtmax;
  to.wtpref = from.wtpref;
  to.wtmult = from.wtmult;
  to.dtpref = from.dtpref;
  to.maxfilesize = from.maxfilesize;
  to.time_delta = from_zdr(from.time_delta);
  to.properties = from.properties;
  return to;
}

Result<FsStat> Nfs3Control::fsstat(const FileHandle& object, const std::string& what) {
  FSSTAT3args args{to_zdr(object)};
  ZdrArguments arguments;
  auto reply =
      ask_ok(NfsProcedure::kFsstat, arguments.encode(zdr_FSSTAT3args, args), what, "4a8888884");
  if (!reply) return tl::unexpected(reply.error());
  const ZdrResults<FSSTAT3res> results(*reply, zdr_FSSTAT3res);
  if (!results.ok()) return garbled(NfsProcedure::kFsstat, what);
  const FSSTAT3resok& from = results.value().FSSTAT3res_u.resok;
  return FsStat{from.tbytes, from.fbytes, from.abytes,  from.tfiles,
                from.ffiles, from.afiles, from.invarsec};
}

Result<PathConf> Nfs3Control::pathconf(const FileHandle& object, const std::string& what) {
  PATHCONF3args args{to_zdr(object)};
  ZdrArguments arguments;
  auto reply =
      ask_ok(NfsProcedure::kPathconf, arguments.encode(zdr_PATHCONF3args, args), what, "4a44bbbb");
  if (!reply) return tl::unexpected(reply.error());
  const ZdrResults<PATHCONF3res> results(*reply, zdr_PATHCONF3res);
  if (!results.ok()) return garbled(NfsProcedure::kPathconf, what);
  const PATHCONF3resok& from = results.value().PATHCONF3res_u.resok;
  return PathConf{from.linkmax,
                  from.name_max,
                  from.no_trunc != 0,
                  from.chown_restricted != 0,
                  from.case_insensitive != 0,
                  from.case_preserving != 0};
}

}  // namespace nfsrdma
