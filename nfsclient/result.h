// SPDX-License-Identifier: GPL-2.0-or-later
// Errors as values: what was asked, of whom, what came back.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace nfsrdma {

/// A failure. `code` is an errno value, never 0; `text` is one line, without a full stop at its
/// end, that a user can act on: what was tried, of which server, what came back.
struct Error {
  int code = 0;
  std::string text;
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(int code, std::string text) {
  return tl::unexpected<Error>(Error{code, std::move(text)});
}

}  // namespace nfsrdma
