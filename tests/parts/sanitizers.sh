# SPDX-License-Identifier: GPL-2.0-or-later
# part: sanitizers budget: 600 in: run
# Unit, server and engine tests under ASan and UBSan, in a build folder of their own.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"
. "$root_dir/tests/lib/build.sh"
. "$root_dir/tests/lib/asan.sh"

dir=$root_dir/build-asan
build_in "$dir" --buildtype=debugoptimized -Db_sanitize=address,undefined \
  "-Dfio_source=$(build_option "$build_dir" fio_source)"
asan_environment
for suite in unit server transports results engine; do
  meson_suite "$dir" "$suite" --timeout-multiplier 4
done
asan_verdict sanitizers "$dir"/meson-logs/testlog-*.txt
