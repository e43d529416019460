// SPDX-License-Identifier: GPL-2.0-or-later
// libnfs's XDR codecs (zdr_*), called so that they stay within bounds and give back their memory.
#pragma once

#include <nfsc/libnfs-zdr.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "nfs3_types.h"
#include "xdr.h"

namespace nfsrdma {

template <typename T>
using ZdrProcedure = uint32_t (*)(ZDR*, T*);

/// The largest arguments of the control plane are those of RENAME and MNT.
constexpr uint32_t kArgumentsMax = 1536;
static_assert(kArgumentsMax >= 2 * (4 + kFileHandleMax + 4 + kNameMax + 1));
static_assert(kArgumentsMax >= 4 + kMountPathMax);

/// Encodes arguments whose names and handles were checked against their bounds before.
class ZdrArguments {
 public:
  /// Empty when the arguments do not fit.
  template <typename T>
  ConstBytes encode(ZdrProcedure<T> procedure, T& arguments) {
    ZDR zdr;
    zdrmem_create(&zdr, buffer_.data(), kArgumentsMax, ZDR_ENCODE);
    const bool encoded = procedure(&zdr, &arguments) != 0;
    const uint32_t length = zdr_getpos(&zdr);
    zdr_destroy(&zdr);
    if (!encoded || length > kArgumentsMax) return {};
    return std::as_bytes(std::span(buffer_.data(), length));
  }

 private:
  static constexpr uint32_t kSlack = 8;  // libnfs pads without a look at the end
  alignas(8) std::array<char, kArgumentsMax + kSlack> buffer_{};
};

/// A list node that libnfs allocated: its allocator aligns to 4 bytes only.
template <typename T>
T zdr_load(const T* node) {
  T copy;
  std::memcpy(&copy, static_cast<const void*>(node), sizeof copy);
  return copy;
}

/// Results decoded from a reply whose shape was checked before (reply_shape.h). Pointers within
/// value() live as long as this object.
template <typename T>
class ZdrResults {
 public:
  ZdrResults(ConstBytes reply, ZdrProcedure<T> procedure)
      : copy_((reply.size() + kSlack) / sizeof(uint64_t) + 1) {
    // A copy, since libnfs terminates strings in place and reads words at their own alignment.
    if (!reply.empty()) std::memcpy(copy_.data(), reply.data(), reply.size());
    zdrmem_create(&zdr_, reinterpret_cast<char*>(copy_.data()), static_cast<uint32_t>(reply.size()),
                  ZDR_DECODE);
    ok_ = procedure(&zdr_, &value_) != 0;
  }
  ~ZdrResults() { zdr_destroy(&zdr_); }
  ZdrResults(const ZdrResults&) = delete;
  ZdrResults& operator=(const ZdrResults&) = delete;

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] const T& value() const { return value_; }

 private:
  static constexpr size_t kSlack = 8;
  std::vector<uint64_t> copy_;
  ZDR zdr_{};
  T value_{};
  bool ok_ = false;
};

}  // namespace nfsrdma
