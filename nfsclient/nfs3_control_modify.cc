// SPDX-License-Identifier: GPL-2.0-or-later
// The control procedures that change something on the server. None is idempotent: after a
// retransmission the answer may be that of a repetition (protocol: EXIST, NOENT).
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "nfs3_control.h"
#include "nfs3_convert.h"
#include "nfs3_status.h"
#include "reply_shape.h"
#include "zdr_codec.h"

namespace nfsrdma {
namespace {

constexpr uint32_t kReplyMax = 1024;

bool is(uint32_t status, Nfs3Status known) {
  return status == static_cast<uint32_t>(known);
}

}  // namespace

Result<void> Nfs3Control::setattr(const FileHandle& object, const SetAttributes& attributes,
                                  const std::string& what) {
  SETATTR3args args{to_zdr(object), to_zdr(attributes), {}};
  ZdrArguments arguments;
  auto reply = ask_ok(NfsProcedure::kSetattr, arguments.encode(zdr_SETATTR3args, args), what, "4w");
  if (!reply) return tl::unexpected(reply.error());
  return {};
}

/// What CREATE and MKDIR return alike: post_op_fh3, post_op_attr, wcc_data. A server may leave
/// handle and attributes out; then they are asked for.
Result<Node> Nfs3Control::made_node(NfsProcedure procedure, ConstBytes reply,
                                    const FileHandle& directory, const std::string& name) {
  if (!has_shape(reply, "4faw")) return garbled(procedure, name);
  static_assert(sizeof(MKDIR3res) == sizeof(CREATE3res));
  const ZdrResults<CREATE3res> results(reply, zdr_CREATE3res);
  if (!results.ok()) return garbled(procedure, name);
  const CREATE3resok& made = results.value().CREATE3res_u.resok;
  const auto handle = from_zdr(made.obj);
  if (!handle) return lookup(directory, name);
  return Node{*handle, from_zdr(made.obj_attributes)};
}

/// EXIST, said to a call that had to be sent again: what stands there now is ours if it looks as
/// we would have made it.
Result<Node> Nfs3Control::after_repeated_create(const FileHandle& directory,
                                                const std::string& name, FileType type,
                                                const Error& refused) {
  auto node = lookup(directory, name);
  if (!node) return tl::unexpected(refused);
  if (!node->attributes) {
    auto attributes = getattr(node->handle, name);
    if (!attributes) return tl::unexpected(refused);
    node->attributes = *attributes;
  }
  if (node->attributes->type != type) return tl::unexpected(refused);
  if (type == FileType::kRegular && node->attributes->size != 0) return tl::unexpected(refused);
  return node;
}

Result<Node> Nfs3Control::create(const FileHandle& directory, const std::string& name,
                                 CreateMode mode, const SetAttributes& attributes) {
  if (auto checked = check_name(name); !checked) return tl::unexpected(checked.error());
  CREATE3args args{};
  args.where = to_zdr(directory, name);
  args.how.mode = static_cast<createmode3>(mode);
  if (mode == CreateMode::kExclusive) {
    createverf3& verifier = args.how.createhow3_u.verf;
    if (getrandom(verifier, sizeof verifier, 0) != sizeof verifier) {
      return fail(errno, asked(NfsProcedure::kCreate, name) + "no random bytes for the verifier");
    }
  } else {
    args.how.createhow3_u.obj_attributes = to_zdr(attributes);
  }
  ZdrArguments arguments;
  auto answer =
      ask(NfsProcedure::kCreate, arguments.encode(zdr_CREATE3args, args), name, kReplyMax);
  if (!answer) return tl::unexpected(answer.error());

  Result<Node> node;
  if (answer->status == 0) {
    node = made_node(NfsProcedure::kCreate, answer->reply, directory, name);
  } else {
    const Error error = refused(NfsProcedure::kCreate, name, answer->status);
    if (!is(answer->status, Nfs3Status::kExist) || answer->retransmissions == 0) {
      return tl::unexpected(error);
    }
    node = after_repeated_create(directory, name, FileType::kRegular, error);
  }
  if (!node || mode != CreateMode::kExclusive) return node;
  // Servers keep the verifier of EXCLUSIVE in the file's attributes: these must be set now.
  SetAttributes set = attributes;
  if (!set.mtime) set.mtime_of_server = true;
  if (auto done = setattr(node->handle, set, name); !done) return tl::unexpected(done.error());
  node->attributes.reset();
  return node;
}

Result<Node> Nfs3Control::mkdir(const FileHandle& directory, const std::string& name,
                                uint32_t mode) {
  if (auto checked = check_name(name); !checked) return tl::unexpected(checked.error());
  SetAttributes attributes;
  attributes.mode = mode;
  MKDIR3args args{to_zdr(directory, name), to_zdr(attributes)};
  ZdrArguments arguments;
  auto answer = ask(NfsProcedure::kMkdir, arguments.encode(zdr_MKDIR3args, args), name, kReplyMax);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->status == 0) return made_node(NfsProcedure::kMkdir, answer->reply, directory, name);
  const Error error = refused(NfsProcedure::kMkdir, name, answer->status);
  if (!is(answer->status, Nfs3Status::kExist) || answer->retransmissions == 0) {
    return tl::unexpected(error);
  }
  return after_repeated_create(directory, name, FileType::kDirectory, error);
}

Result<void> Nfs3Control::remove_entry(NfsProcedure procedure, const FileHandle& directory,
                                       const std::string& name) {
  if (auto checked = check_name(name); !checked) return checked;
  REMOVE3args args{to_zdr(directory, name)};  // RMDIR's are the same (RFC 1813 section 3.3.13)
  ZdrArguments arguments;
  auto answer = ask(procedure, arguments.encode(zdr_REMOVE3args, args), name, kReplyMax);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->status == 0) {
    if (!has_shape(answer->reply, "4w")) return garbled(procedure, name);
    return {};
  }
  if (is(answer->status, Nfs3Status::kNoent) && answer->retransmissions > 0) return {};
  return tl::unexpected(refused(procedure, name, answer->status));
}

Result<void> Nfs3Control::remove(const FileHandle& directory, const std::string& name) {
  return remove_entry(NfsProcedure::kRemove, directory, name);
}

Result<void> Nfs3Control::rmdir(const FileHandle& directory, const std::string& name) {
  return remove_entry(NfsProcedure::kRmdir, directory, name);
}

Result<void> Nfs3Control::rename(const FileHandle& from_directory, const std::string& from_name,
                                 const FileHandle& to_directory, const std::string& to_name) {
  if (auto checked = check_name(from_name); !checked) return checked;
  if (auto checked = check_name(to_name); !checked) return checked;
  RENAME3args args{to_zdr(from_directory, from_name), to_zdr(to_directory, to_name)};
  ZdrArguments arguments;
  const std::string what = from_name + "\" to \"" + to_name;
  auto answer =
      ask(NfsProcedure::kRename, arguments.encode(zdr_RENAME3args, args), what, kReplyMax);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->status == 0) {
    if (!has_shape(answer->reply, "4ww")) return garbled(NfsProcedure::kRename, what);
    return {};
  }
  const bool repeated = is(answer->status, Nfs3Status::kNoent) && answer->retransmissions > 0;
  if (repeated && lookup(to_directory, to_name)) return {};
  return tl::unexpected(refused(NfsProcedure::kRename, what, answer->status));
}

}  // namespace nfsrdma
