# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# For the scripts in tests/parts: how a part tells its cases. Sourced after `set -euo pipefail`.
# A part runs with NFSRDMA_MODE=quick|run|long and a folder of its own, NFSRDMA_PART_DIR.

. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_dir=$root_dir/build
part_mode=${NFSRDMA_MODE:-run}
part_dir=${NFSRDMA_PART_DIR:-$build_dir/test-logs/${0##*/}}
mkdir -p "$part_dir"
: "$part_mode"

ok() { printf 'ok %s\n' "$1"; }
not_ok() { printf 'not ok %s%s\n' "$1" "${2:+ ($2)}"; }
skip() { printf 'skip %s: %s\n' "$1" "$2"; }

# check NAME COMMAND...: the case passes when the command does; its output goes to the log.
check() {
  local name=$1
  shift
  if "$@" 2>&1; then ok "$name"; else not_ok "$name" "status $?"; fi
}

# meson_suite BUILD_DIR SUITE [OPTION...]: runs the suite and prints its cases.
meson_suite() {
  local dir=$1 suite=$2 log=$1/meson-logs/testlog-$2.json status=0
  shift 2
  rm -f "$log"
  meson test -C "$dir" --no-rebuild --suite "$suite" --logbase "testlog-$suite" \
    --print-errorlogs "$@" </dev/null || status=$?
  if [ -s "$log" ]; then
    "$root_dir/tests/lib/meson_results.py" "$log"
  elif [ "$status" = 0 ]; then
    not_ok "$suite" "no test is in this suite"
  else
    not_ok "$suite" "meson test ended with status $status"
  fi
}

# source_files [PATTERN...]: files of the repository, tracked or new, as paths from its root.
source_files() {
  git -C "$root_dir" -c safe.directory='*' ls-files -z -co --exclude-standard --deduplicate -- "$@" |
    while IFS= read -r -d '' file; do
      [ ! -f "$root_dir/$file" ] || printf '%s\n' "$file"
    done
}
