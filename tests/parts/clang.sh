# SPDX-License-Identifier: GPL-2.0-or-later
# part: clang budget: 360 in: run
# Everything builds with clang, where warnings are errors too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"
. "$root_dir/tests/lib/build.sh"

export CC=clang-14 CXX=clang++-14
dir=$root_dir/build-clang
check clang:build build_in "$dir" --buildtype=debugoptimized \
  "-Dfio_source=$(build_option "$build_dir" fio_source)"
