// SPDX-License-Identifier: GPL-2.0-or-later
// XDR (RFC 4506) over spans, bounds checked: words of 4 bytes, big-endian, opaques padded to 4.
//
// Neither class allocates or throws. A step beyond the bounds makes the object fail, every later
// step fails too, and the caller asks ok() once at the end. Not shared between threads.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace nfsrdma {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

constexpr uint32_t kXdrUnit = 4;

/// Length of an opaque's pad (RFC 4506 section 4.10).
constexpr uint32_t xdr_pad(uint32_t length) {
  return (kXdrUnit - (length & (kXdrUnit - 1))) & (kXdrUnit - 1);
}

inline uint32_t load_be32(const void* from) {
  uint32_t word;
  std::memcpy(&word, from, sizeof word);
  return std::endian::native == std::endian::little ? __builtin_bswap32(word) : word;
}

inline uint64_t load_be64(const void* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
}

inline void store_be32(void* to, uint32_t word) {
  if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap32(word);
  std::memcpy(to, &word, sizeof word);
}

inline void store_be64(void* to, uint64_t word) {
  if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
  std::memcpy(to, &word, sizeof word);
}

/// Writes XDR into memory owned by the caller.
class XdrWriter {
 public:
  explicit XdrWriter(Bytes to) : at_(to.data()), begin_(to.data()), end_(to.data() + to.size()) {}

  void u32(uint32_t word) {
    if (!room(4)) return;
    store_be32(at_, word);
    at_ += 4;
  }

  void u64(uint64_t word) {
    if (!room(8)) return;
    store_be64(at_, word);
    at_ += 8;
  }

  void boolean(bool value) { u32(value ? 1 : 0); }

  /// Bytes of a length both sides know: no length word, padded.
  void opaque_fixed(ConstBytes bytes) {
    const size_t pad = (kXdrUnit - (bytes.size() & 3)) & 3;
    if (!room(bytes.size() + pad)) return;
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
    std::memset(at_ + bytes.size(), 0, pad);
    at_ += bytes.size() + pad;
  }

  /// Length word, bytes, pad.
  void opaque(ConstBytes bytes) {
    u32(static_cast<uint32_t>(bytes.size()));
    opaque_fixed(bytes);
  }

  void string(std::string_view text) { opaque(std::as_bytes(std::span(text.data(), text.size()))); }

  [[nodiscard]] size_t size() const { return static_cast<size_t>(at_ - begin_); }
  [[nodiscard]] ConstBytes written() const { return {begin_, size()}; }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  bool room(size_t bytes) {
    if (static_cast<size_t>(end_ - at_) >= bytes) return true;
    ok_ = false;
    end_ = at_;
    return false;
  }

  std::byte* at_;
  std::byte* begin_;
  std::byte* end_;
  bool ok_ = true;
};

/// Reads XDR from memory owned by the caller. Spans it returns point into that memory.
class XdrReader {
 public:
  explicit XdrReader(ConstBytes from)
      : at_(from.data()), begin_(from.data()), end_(from.data() + from.size()) {}

  uint32_t u32() {
    if (!have(4)) return 0;
    const uint32_t word = load_be32(at_);
    at_ += 4;
    return word;
  }

  uint64_t u64() {
    if (!have(8)) return 0;
    const uint64_t word = load_be64(at_);
    at_ += 8;
    return word;
  }

  /// RFC 4506 section 4.4: only 0 and 1 are booleans; another word makes the reader fail.
  bool boolean() {
    const uint32_t word = u32();
    if (word > 1) stop();
    return word == 1;
  }

  ConstBytes opaque_fixed(uint32_t length) {
    if (!have(length) || !have(size_t{length} + xdr_pad(length))) return {};
    const ConstBytes bytes(at_, length);
    at_ += size_t{length} + xdr_pad(length);
    return bytes;
  }

  /// Fails when the length on the wire is above `length_max`.
  ConstBytes opaque(uint32_t length_max) {
    const uint32_t length = u32();
    if (length > length_max) {
      stop();
      return {};
    }
    return opaque_fixed(length);
  }

  std::string_view string(uint32_t length_max) {
    const ConstBytes bytes = opaque(length_max);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void skip(size_t bytes) {
    if (have(bytes)) at_ += bytes;
  }

  [[nodiscard]] size_t consumed() const { return static_cast<size_t>(at_ - begin_); }
  [[nodiscard]] size_t left() const { return static_cast<size_t>(end_ - at_); }
  [[nodiscard]] ConstBytes rest() const { return {at_, left()}; }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  bool have(size_t bytes) {
    if (static_cast<size_t>(end_ - at_) >= bytes) return true;
    stop();
    return false;
  }

  void stop() {
    ok_ = false;
    end_ = at_;
  }

  const std::byte* at_;
  const std::byte* begin_;
  const std::byte* end_;
  bool ok_ = true;
};

}  // namespace nfsrdma
