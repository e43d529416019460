# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What the scenarios share, on the host and in the guest: cases, and fio jobs with our engine.
# Sourced after `set -euo pipefail`. Needs ENGINE, the path of libnfsrdma.so; SERVER, the words that
# run a command where the server is (guest-exec, or nothing in the guest itself).

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
read -r -a server <<<"${SERVER:-}"
fio_timeout_s=${FIO_TIMEOUT_S:-240}

ok() { printf 'ok %s\n' "$1"; }
not_ok() { printf 'not ok %s%s\n' "$1" "${2:+ ($2)}"; }

# check NAME COMMAND...: the case passes when the command does; else its output is shown.
check() {
  local name=$1 status=0
  shift
  # A subshell with errexit of its own: inside a condition it would be off.
  set +e
  (set -e; "$@") >"$work/log" 2>&1
  status=$?
  set -e
  if [ $status = 0 ]; then
    ok "$name"
  else
    tail -n 40 "$work/log"
    not_ok "$name" "status $status"
  fi
}

on_server() { "${server[@]}" "$@"; }

# job NAME URL 'OPTION...' OPTION...: runs one fio job with our engine. The first options are the
# transport's, all are words key=value. Output: $work/NAME.json, .err, .stats.
job() {
  local name=$1 url=$2 transport=$3 word
  shift 3
  {
    printf '[%s]\nioengine=external:%s\nnfs_url=%s\nstats_json=%s\n' "$name" "$ENGINE" "$url" "$work/$name.stats"
    for word in $transport "$@"; do echo "$word"; done
  } >"$work/$name.fio"
  rm -f "$work/$name.json" "$work/$name.stats"
  (cd "$work" && timeout -k 5 "$fio_timeout_s" fio --output-format=json --output="$work/$name.json" \
    "$work/$name.fio") >"$work/$name.out" 2>"$work/$name.err" </dev/null || {
    local status=$?
    echo "fio ended with status $status"
    # fio repeats itself for each I/O; what the engine says comes first.
    grep -h '^nfsrdma' "$work/$name.err" | head -n 10
    tail -n 15 "$work/$name.out" "$work/$name.err"
    return 1
  }
}

judge() {
  local name=$1
  shift
  "$(dirname "${BASH_SOURCE[0]}")/fio-check" "$work/$name.json" --stats "$work/$name.stats" "$@" || {
    tail -n 30 "$work/$name.err"
    return 1
  }
}

# refused NAME PATTERN URL OPTIONS...: fio must fail, soon, and say why.
refused() {
  local name=$1 pattern=$2
  shift 2
  if fio_timeout_s=60 job "$name" "$@"; then
    echo "fio succeeded where it should have failed"
    return 1
  fi >"$work/$name.text"
  cat "$work/$name.text" "$work/$name.err" "$work/$name.out" >"$work/$name.all"
  grep -qF 'status 124' "$work/$name.text" && {
    echo 'fio hung'
    return 1
  }
  grep -qiE "$pattern" "$work/$name.all" || {
    echo "no message like '$pattern':"
    cat "$work/$name.all"
    return 1
  }
}

server_hash() { on_server sha256sum "$1" | cut -d' ' -f1; }

same() {
  [ "$1" = "$2" ] || {
    echo "got '$1', wanted '$2'"
    return 1
  }
}
