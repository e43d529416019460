# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What every script here shares. Sourced; the caller has `set -euo pipefail`.

# A failure inside $(...) counts as well.
shopt -s inherit_errexit

root_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

# The script as the user knows it, like jobs/run.
program=$(cd "$(dirname "$0")" && pwd -P)/${0##*/}
program=${program#"$root_dir"/}

say() { printf '%s\n' "$*" >&2; }

die() {
  say "$program: $*"
  exit 1
}

# The folder for downloads and what is built from them: the user's cache, or for a home that cannot
# be written a folder under build/. Prints its path.
cache_dir() {
  local base=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/nfsrdma
  if ! mkdir -p "$base" 2>/dev/null || ! [ -w "$base" ]; then
    base=$root_dir/build/cache
    mkdir -p "$base" || die "neither the home folder nor $root_dir/build can be written"
  fi
  printf '%s\n' "$base"
}

# Prints the words that make a command run as root: none for root, `sudo -n` where that needs no
# password. Status 1 where neither holds.
root_prefix() {
  if [ "$(id -u)" = 0 ]; then
    return 0
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    echo 'sudo -n'
  else
    return 1
  fi
}

cpus() { nproc 2>/dev/null || echo 1; }
