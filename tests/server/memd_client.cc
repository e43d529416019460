// SPDX-License-Identifier: GPL-2.0-or-later
#include "memd_client.h"

namespace nfsrdma::memd {

namespace {

diropargs3 where(Handle& dir, std::string& name) {
  diropargs3 out = {};
  out.dir = fh(dir);
  out.name = name.data();
  return out;
}

void set(nfsstat3* to, nfsstat3 status) {
  if (to != nullptr) {
    *to = status;
  } else {
    EXPECT_EQ(status, NFS3_OK);
  }
}

}  // namespace

Handle Files::mount(const std::string& path, uint32_t* status) {
  std::string copy = path;
  dirpath args = copy.data();
  auto result =
      client_.call(kMountProgram, kMountVersion, MOUNT3_MNT, zdr_dirpath, args, zdr_mountres3);
  if (status != nullptr) {
    *status = static_cast<uint32_t>(result->value.fhs_status);
  } else {
    EXPECT_EQ(result->value.fhs_status, MNT3_OK);
  }
  if (result->value.fhs_status != MNT3_OK) return {};
  const auto& handle = result->value.mountres3_u.mountinfo.fhandle;
  return {handle.fhandle3_val, handle.fhandle3_len};
}

Handle Files::lookup(Handle dir, std::string name, nfsstat3* status) {
  LOOKUP3args args = {where(dir, name)};
  auto result = client_.nfs(NFS3_LOOKUP, zdr_LOOKUP3args, args, zdr_LOOKUP3res);
  set(status, result->value.status);
  if (result->value.status != NFS3_OK) return {};
  return handle_of(result->value.LOOKUP3res_u.resok.object);
}

fattr3 Files::getattr(Handle file, nfsstat3* status) {
  GETATTR3args args = {fh(file)};
  auto result = client_.nfs(NFS3_GETATTR, zdr_GETATTR3args, args, zdr_GETATTR3res);
  set(status, result->value.status);
  return result->value.GETATTR3res_u.resok.obj_attributes;
}

Handle Files::create(Handle dir, std::string name, nfsstat3* status, createmode3 mode) {
  CREATE3args args = {};
  args.where = where(dir, name);
  args.how.mode = mode;
  auto result = client_.nfs(NFS3_CREATE, zdr_CREATE3args, args, zdr_CREATE3res);
  set(status, result->value.status);
  if (result->value.status != NFS3_OK) return {};
  const auto& made = result->value.CREATE3res_u.resok;
  EXPECT_TRUE(made.obj.handle_follows);
  EXPECT_TRUE(made.obj_attributes.attributes_follow);
  return handle_of(made.obj.post_op_fh3_u.handle);
}

Handle Files::mkdir(Handle dir, std::string name, nfsstat3* status) {
  MKDIR3args args = {};
  args.where = where(dir, name);
  auto result = client_.nfs(NFS3_MKDIR, zdr_MKDIR3args, args, zdr_MKDIR3res);
  set(status, result->value.status);
  if (result->value.status != NFS3_OK) return {};
  return handle_of(result->value.MKDIR3res_u.resok.obj.post_op_fh3_u.handle);
}

nfsstat3 Files::remove(Handle dir, std::string name) {
  REMOVE3args args = {where(dir, name)};
  return client_.nfs(NFS3_REMOVE, zdr_REMOVE3args, args, zdr_REMOVE3res)->value.status;
}

nfsstat3 Files::rmdir(Handle dir, std::string name) {
  RMDIR3args args = {where(dir, name)};
  return client_.nfs(NFS3_RMDIR, zdr_RMDIR3args, args, zdr_RMDIR3res)->value.status;
}

nfsstat3 Files::rename(Handle from, std::string from_name, Handle to, std::string to_name) {
  RENAME3args args = {where(from, from_name), where(to, to_name)};
  return client_.nfs(NFS3_RENAME, zdr_RENAME3args, args, zdr_RENAME3res)->value.status;
}

nfsstat3 Files::link(Handle file, Handle dir, std::string name) {
  LINK3args args = {fh(file), where(dir, name)};
  return client_.nfs(NFS3_LINK, zdr_LINK3args, args, zdr_LINK3res)->value.status;
}

nfsstat3 Files::truncate(Handle file, uint64_t size) {
  SETATTR3args args = {};
  args.object = fh(file);
  args.new_attributes.size.set_it = 1;
  args.new_attributes.size.set_size3_u.size = size;
  return client_.nfs(NFS3_SETATTR, zdr_SETATTR3args, args, zdr_SETATTR3res)->value.status;
}

uint32_t Files::write(Handle file, uint64_t offset, std::string data, stable_how stable,
                      nfsstat3* status, std::string* verifier) {
  WRITE3args args = {};
  args.file = fh(file);
  args.offset = offset;
  args.count = static_cast<count3>(data.size());
  args.stable = stable;
  args.data.data_len = static_cast<u_int>(data.size());
  args.data.data_val = data.data();
  auto result = client_.nfs(NFS3_WRITE, zdr_WRITE3args, args, zdr_WRITE3res);
  set(status, result->value.status);
  if (result->value.status != NFS3_OK) return 0;
  const WRITE3resok& ok = result->value.WRITE3res_u.resok;
  EXPECT_EQ(ok.committed, stable);
  if (verifier != nullptr) verifier->assign(ok.verf, sizeof ok.verf);
  return ok.count;
}

std::string Files::read(Handle file, uint64_t offset, uint32_t count, nfsstat3* status, bool* eof) {
  READ3args args = {fh(file), offset, count};
  auto result = client_.nfs(NFS3_READ, zdr_READ3args, args, zdr_READ3res);
  set(status, result->value.status);
  if (result->value.status != NFS3_OK) return {};
  const READ3resok& ok = result->value.READ3res_u.resok;
  EXPECT_EQ(ok.count, ok.data.data_len);
  if (eof != nullptr) *eof = ok.eof != 0;
  return {ok.data.data_val, ok.data.data_len};
}

std::string Files::commit(Handle file, uint64_t offset, uint32_t count, nfsstat3* status) {
  COMMIT3args args = {fh(file), offset, count};
  auto result = client_.nfs(NFS3_COMMIT, zdr_COMMIT3args, args, zdr_COMMIT3res);
  set(status, result->value.status);
  if (result->value.status != NFS3_OK) return {};
  const COMMIT3resok& ok = result->value.COMMIT3res_u.resok;
  return {ok.verf, sizeof ok.verf};
}

}  // namespace nfsrdma::memd
