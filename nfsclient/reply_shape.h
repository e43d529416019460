// SPDX-License-Identifier: GPL-2.0-or-later
// Bounds of a reply's XDR, checked before libnfs decodes it.
//
// libnfs's decoders trust the lengths, counts and enumerators that they meet. A reply from a
// network may hold anything, so the shape of what it claims to be is walked over first, and
// libnfs sees only replies whose every length lies within them.
#pragma once

#include <cstdint>
#include <string_view>

#include "xdr.h"

namespace nfsrdma {

/// Entries of a list at most: libnfs decodes lists by recursion.
constexpr uint32_t kListMax = 4096;
/// Elements of an array of words at most.
constexpr uint32_t kArrayMax = 64;

/// True when `reply` begins with what `shape` describes, one letter an item (RFC 1813's names):
///   4  word                    8  hyper                      b  bool
///   V  8 bytes (verifier)      A  fattr3                     a  post_op_attr
///   w  wcc_data                F  nfs_fh3, fhandle3          f  post_op_fh3
///   s  string (1024 at most, no NUL)
///   I  array of words          {...}  optional-data list of what stands inside
/// Bytes after the shape are left alone. Never allocates.
bool has_shape(ConstBytes reply, std::string_view shape);

}  // namespace nfsrdma
