// SPDX-License-Identifier: GPL-2.0-or-later
// READ, WRITE and COMMIT, byte for byte against libnfs's codecs over generated values.
#include "nfs3_data.h"

#include <gtest/gtest.h>
#include <nfsc/libnfs-raw-nfs.h>

#include <random>
#include <vector>

#include "rpc_script.h"
#include "zdr_codec.h"

namespace nfsrdma {
namespace {

using testing::to_hex;
using testing::XdrText;

constexpr size_t kSlack = 8;  // libnfs pads without a look at the end

template <typename T>
std::vector<std::byte> zdr_encode(ZdrProcedure<T> procedure, T& value, size_t room = 4096) {
  std::vector<uint64_t> buffer((room + kSlack) / sizeof(uint64_t) + 1);
  ZDR zdr;
  zdrmem_create(&zdr, reinterpret_cast<char*>(buffer.data()), static_cast<uint32_t>(room),
                ZDR_ENCODE);
  EXPECT_TRUE(procedure(&zdr, &value));
  const ConstBytes written = std::as_bytes(std::span(buffer)).first(zdr_getpos(&zdr));
  std::vector<std::byte> bytes(written.begin(), written.end());
  zdr_destroy(&zdr);
  return bytes;
}

class Generator {
 public:
  uint32_t u32() {
    switch (random_() % 8) {
      case 0:
        return 0;
      case 1:
        return UINT32_MAX;
      case 2:
        return 1u << (random_() % 32);
      default:
        return static_cast<uint32_t>(random_());
    }
  }
  uint64_t u64() { return uint64_t{u32()} << 32 | u32(); }
  bool flip() { return (random_() & 1) != 0; }
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  FileHandle handle(uint32_t length) {
    FileHandle file;
    file.length = length;
    for (uint32_t i = 0; i < length; i++) file.bytes[i] = std::byte(1 + random_() % 255);
    return file;
  }
  fattr3 attributes() {
    fattr3 a{};
    a.type = NF3REG;
    a.mode = u32();
    a.nlink = u32();
    a.uid = u32();
    a.gid = u32();
    a.size = u64();
    a.used = u64();
    a.rdev = {u32(), u32()};
    a.fsid = u64();
    a.fileid = u64();
    a.atime = {u32(), u32()};
    a.mtime = {u32(), u32()};
    a.ctime = {u32(), u32()};
    return a;
  }
  post_op_attr post_op() {
    post_op_attr attr{};
    attr.attributes_follow = flip() ? 1 : 0;
    if (attr.attributes_follow != 0) attr.post_op_attr_u.attributes = attributes();
    return attr;
  }
  wcc_data wcc() {
    wcc_data data{};
    data.before.attributes_follow = flip() ? 1 : 0;
    data.before.pre_op_attr_u.attributes.size = u64();
    data.before.pre_op_attr_u.attributes.mtime = {u32(), u32()};
    data.before.pre_op_attr_u.attributes.ctime = {u32(), u32()};
    data.after = post_op();
    return data;
  }
  WriteVerifier verifier(writeverf3& to) {
    for (char& byte : to) byte = static_cast<char>(random_());
    WriteVerifier verifier;
    std::memcpy(&verifier, to, sizeof verifier);
    return verifier;
  }
  nfsstat3 status() {
    constexpr nfsstat3 kSome[] = {NFS3ERR_IO,    NFS3ERR_NOSPC, NFS3ERR_STALE,
                                  NFS3ERR_ACCES, NFS3ERR_DQUOT, NFS3ERR_JUKEBOX};
    return flip() ? NFS3_OK : kSome[below(std::size(kSome))];
  }

 private:
  std::mt19937_64 random_{20240817};
};

nfs_fh3 as_fh3(FileHandle& file) {
  nfs_fh3 fh{};
  fh.data.data_len = file.length;
  fh.data.data_val = reinterpret_cast<char*>(file.bytes.data());
  return fh;
}

template <typename Encode>
std::vector<std::byte> ours(Encode encode) {
  std::vector<std::byte> buffer(kDataArgumentsMax);
  XdrWriter to(buffer);
  encode(to);
  EXPECT_TRUE(to.ok());
  buffer.resize(to.size());
  return buffer;
}

TEST(Nfs3Data, ArgumentsAreThoseOfLibnfs) {
  Generator generate;
  for (uint32_t length = 0; length <= kFileHandleMax; length++) {
    for (int round = 0; round < 20; round++) {
      FileHandle file = generate.handle(length);
      const uint64_t offset = generate.u64();
      const uint32_t count = generate.u32();

      READ3args read{as_fh3(file), offset, count};
      EXPECT_EQ(to_hex(ours([&](XdrWriter& to) { encode_read_args(to, file, offset, count); })),
                to_hex(zdr_encode<READ3args>(zdr_READ3args, read)));

      COMMIT3args commit{as_fh3(file), offset, count};
      EXPECT_EQ(to_hex(ours([&](XdrWriter& to) { encode_commit_args(to, file, offset, count); })),
                to_hex(zdr_encode<COMMIT3args>(zdr_COMMIT3args, commit)));

      // Ours ends at the length word; the data follow as bulk.
      std::vector<char> data(generate.below(70), 'd');
      const auto bytes = static_cast<uint32_t>(data.size());
      const auto stable = static_cast<StableHow>(generate.below(3));
      WRITE3args write{as_fh3(file), offset, bytes, static_cast<stable_how>(stable), {}};
      write.data.data_len = bytes;
      write.data.data_val = data.data();
      std::vector<std::byte> whole =
          ours([&](XdrWriter& to) { encode_write_args(to, file, offset, bytes, stable); });
      for (const char c : data) whole.push_back(std::byte(c));
      whole.resize(whole.size() + xdr_pad(bytes));
      EXPECT_EQ(to_hex(whole), to_hex(zdr_encode<WRITE3args>(zdr_WRITE3args, write)));
    }
  }
}

TEST(Nfs3Data, LargestArgumentsFitTheirBound) {
  Generator generate;
  const FileHandle file = generate.handle(kFileHandleMax);
  EXPECT_EQ(ours([&](XdrWriter& to) {
              encode_write_args(to, file, UINT64_MAX, UINT32_MAX, StableHow::kFileSync);
            }).size(),
            kDataArgumentsMax);
}

// Of every proper prefix: decoded as incomplete, and within the bytes given (ASan watches the
// exact allocation).
template <typename T>
void expect_prefixes_fail(const std::vector<std::byte>& whole, bool (*decode)(XdrReader, T*)) {
  for (size_t length = 0; length < whole.size(); length++) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<long>(length));
    T result;
    EXPECT_FALSE(decode(XdrReader(cut), &result)) << length << " of " << whole.size();
  }
}

TEST(Nfs3Data, DecodesWriteResults) {
  Generator generate;
  for (int round = 0; round < 300; round++) {
    WRITE3res res{};
    res.status = generate.status();
    WriteVerifier verifier = 0;
    if (res.status == NFS3_OK) {
      WRITE3resok& ok = res.WRITE3res_u.resok;
      ok.file_wcc = generate.wcc();
      ok.count = generate.u32();
      ok.committed = static_cast<stable_how>(generate.below(3));
      verifier = generate.verifier(ok.verf);
    } else {
      res.WRITE3res_u.resfail.file_wcc = generate.wcc();
    }
    const auto wire = zdr_encode<WRITE3res>(zdr_WRITE3res, res);
    WriteResult result;
    ASSERT_TRUE(decode_write_result(XdrReader(wire), &result));
    EXPECT_EQ(result.status, static_cast<uint32_t>(res.status));
    if (res.status == NFS3_OK) {
      EXPECT_EQ(result.count, res.WRITE3res_u.resok.count);
      EXPECT_EQ(static_cast<int>(result.committed),
                static_cast<int>(res.WRITE3res_u.resok.committed));
      EXPECT_EQ(result.verifier, verifier);
    }
    expect_prefixes_fail(wire, decode_write_result);
  }
}

TEST(Nfs3Data, DecodesCommitResults) {
  Generator generate;
  for (int round = 0; round < 300; round++) {
    COMMIT3res res{};
    res.status = generate.status();
    WriteVerifier verifier = 0;
    if (res.status == NFS3_OK) {
      res.COMMIT3res_u.resok.file_wcc = generate.wcc();
      verifier = generate.verifier(res.COMMIT3res_u.resok.verf);
    } else {
      res.COMMIT3res_u.resfail.file_wcc = generate.wcc();
    }
    const auto wire = zdr_encode<COMMIT3res>(zdr_COMMIT3res, res);
    CommitResult result;
    ASSERT_TRUE(decode_commit_result(XdrReader(wire), &result));
    EXPECT_EQ(result.status, static_cast<uint32_t>(res.status));
    EXPECT_EQ(result.verifier, verifier);
    expect_prefixes_fail(wire, decode_commit_result);
  }
}

TEST(Nfs3Data, DecodesAndSplitsReadResults) {
  Generator generate;
  for (int round = 0; round < 300; round++) {
    READ3res res{};
    res.status = generate.status();
    std::vector<char> data(generate.below(100), 'r');
    if (res.status == NFS3_OK) {
      READ3resok& ok = res.READ3res_u.resok;
      ok.file_attributes = generate.post_op();
      ok.count = generate.u32();
      ok.eof = generate.flip() ? 1 : 0;
      ok.data.data_len = static_cast<u_int>(data.size());
      ok.data.data_val = data.data();
    } else {
      res.READ3res_u.resfail.file_attributes = generate.post_op();
    }
    std::vector<std::byte> results = zdr_encode<READ3res>(zdr_READ3res, res);
    // Servers may answer with a verifier of their own; any length up to 400 is legal.
    const std::string verifier(generate.flip() ? 0 : generate.below(401), 'v');
    XdrText header;
    header.u32(generate.u32()).u32(1).u32(0).u32(6).opaque(verifier).u32(0);
    std::vector<std::byte> reply = header.bytes();
    reply.insert(reply.end(), results.begin(), results.end());

    const size_t padded = data.size() + xdr_pad(static_cast<uint32_t>(data.size()));
    const size_t data_at = reply.size() - padded;
    const bool ok = res.status == NFS3_OK;
    const size_t known_at = header.bytes().size() + 4;  // behind the status
    for (size_t length = 0; length <= reply.size(); length++) {
      const std::vector<std::byte> cut(reply.begin(), reply.begin() + static_cast<long>(length));
      const int at = split_read_reply(cut);
      if (ok)
        EXPECT_EQ(at, length < data_at ? 0 : static_cast<int>(data_at)) << length;
      else
        EXPECT_EQ(at, length < known_at ? 0 : -1) << length;
    }

    if (ok) results.resize(results.size() - padded);
    ReadResult result;
    ASSERT_TRUE(decode_read_result(XdrReader(results), &result));
    EXPECT_EQ(result.status, static_cast<uint32_t>(res.status));
    if (ok) {
      EXPECT_EQ(result.count, res.READ3res_u.resok.count);
      EXPECT_EQ(result.eof, res.READ3res_u.resok.eof != 0);
      EXPECT_EQ(result.data_length, data.size());
    }
    expect_prefixes_fail(results, decode_read_result);
  }
}

TEST(Nfs3Data, SplitRefusesWhatIsNoSuccessfulReadReply) {
  const auto split = [](const XdrText& text) { return split_read_reply(text.bytes()); };
  EXPECT_EQ(split(XdrText().u32(7).u32(0).u32(0).u32(0).u32(0)), -1) << "a call";
  EXPECT_EQ(split(XdrText().u32(7).u32(1).u32(1).u32(0).u32(0)), -1) << "denied";
  EXPECT_EQ(split(XdrText().u32(7).u32(1).u32(0).u32(0).u32(401)), -1) << "verifier too long";
  EXPECT_EQ(split(XdrText().u32(7).u32(1).u32(0).u32(0).u32(0xffffffff)), -1);
  EXPECT_EQ(split(XdrText().u32(7).u32(1).u32(0).u32(0).u32(0).u32(5).u32(0)), -1) << "SYSTEM_ERR";
  EXPECT_EQ(split(XdrText().u32(7).u32(1).u32(0).u32(0).u32(0).u32(0).u32(0).u32(2)), -1)
      << "no boolean";
}

TEST(Nfs3Data, DecodersRefuseWordsOutOfRange) {
  WriteResult write;
  const XdrText stable = XdrText().u32(0).no_wcc().u32(8).u32(3).u64(1);
  EXPECT_FALSE(decode_write_result(XdrReader(stable.bytes()), &write)) << "stable_how 3";
  const XdrText follows = XdrText().u32(0).u32(2).u32(0).u32(8).u32(2).u64(1);
  EXPECT_FALSE(decode_write_result(XdrReader(follows.bytes()), &write)) << "no boolean";
  ReadResult read;
  const XdrText eof = XdrText().u32(0).u32(0).u32(8).u32(2).u32(8);
  EXPECT_FALSE(decode_read_result(XdrReader(eof.bytes()), &read)) << "no boolean";
}

}  // namespace
}  // namespace nfsrdma
