#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The command itself: URL line, options, signals, status, call log, counters.
# Usage: command_test.sh PATH_OF_NFSRDMA_MEMD
set -euo pipefail

memd=$1
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT

fail() {
  printf 'FAIL: %s\n' "$*" >&2
  exit 1
}

# start OPTION...: the server runs, $server is its pid, $url, $port and $rdma_port are set.
start() {
  : >"$scratch/out"
  "$memd" "$@" >"$scratch/out" 2>"$scratch/err" &
  server=$!
  for _ in $(seq 200); do
    [ ! -s "$scratch/out" ] || break
    sleep 0.05
  done
  url=$(cat "$scratch/out")
  port=${url##*mountport=}
  port=${port%%&*}
  rdma_port=${url##*rdmaport=}
  [ -n "$port" ] || fail "no URL with $*: $(cat "$scratch/err")"
}

# stop: ends the server with SIGTERM; its status must be 0.
stop() {
  local status=0
  kill -TERM "$server"
  wait "$server" || status=$?
  server=
  [ "$status" = 0 ] || fail "status $status after SIGTERM"
  [ "$(wc -l <"$scratch/out")" = 1 ] || fail "more than one line on stdout"
}

# ask PORT WORD...: sends these 32-bit words as an RPC record, prints the reply's words in hex.
ask() {
  local to=$1 word bytes='' marker length
  shift
  for word in "$((0x80000000 | $# * 4))" "$@"; do
    word=$(printf '%08x' "$word")
    bytes+="\\x${word:0:2}\\x${word:2:2}\\x${word:4:2}\\x${word:6:2}"
  done
  exec 3<>"/dev/tcp/127.0.0.1/$to"
  # shellcheck disable=SC2059 # the format is made of escapes on purpose
  printf "$bytes" >&3
  marker=$(timeout 10 head -c 4 <&3 | od -An -tx1 | tr -d ' \n')
  length=$((0x$marker & 0x7fffffff))
  timeout 10 head -c "$length" <&3 | od -An -v -tx4 --endian=big | xargs
  exec 3<&-
}

refused() {
  local text=$1 status=0
  shift
  timeout 10 "$memd" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
  case $status in
    0 | 124) fail "$*: status $status" ;;
  esac
  [ ! -s "$scratch/out" ] || fail "$*: printed a URL"
  grep -q -e "$text" "$scratch/err" || fail "$*: says '$(cat "$scratch/err")', not '$text'"
}

start --counters --log-calls "$scratch/calls"
[ "$url" = "nfs://127.0.0.1:$port/export?mountport=$port&rdmaport=$rdma_port" ] || fail "URL is $url"
null=(7 0 2 100003 3 0 0 0 0 0)
[ "$(ask "$port" "${null[@]}")" = "00000007 00000001 00000000 00000000 00000000 00000000" ] ||
  fail "NULL is not answered"
ask "$port" "${null[@]}" >/dev/null
kill -USR1 "$server"
stop
grep -q '^xid=00000007 port=[0-9]* proc=NULL offset=0 count=0 stable=0 dup=0 name=$' \
  "$scratch/calls" || fail "call log: $(cat "$scratch/calls")"
grep -q '"NULL": {"calls": 2, "errors": 0}' "$scratch/err" || fail "$(cat "$scratch/err")"

free_port=$port
start --portmap-port "$free_port" --export /a --export "/b c"
[ "$url" = "nfs://127.0.0.1:$port/a?mountport=$port&rdmaport=$rdma_port" ] || fail "URL is $url"
answer=$(ask "$free_port" 7 0 2 100000 2 3 0 0 0 0 100003 3 6 0)
[ "${answer##* }" = "$(printf '%08x' "$port")" ] || fail "GETPORT says $answer"
stop

if [ -e /proc/sys/net/ipv6 ] && grep -q 1 /proc/net/if_inet6 2>/dev/null; then
  start --listen ::1
  [ "$url" = "nfs://[::1]:$port/export?mountport=$port&rdmaport=$rdma_port" ] || fail "URL is $url"
  stop
fi

refused 'no fault is called' --fault nonsense
refused 'numeric address' --listen nowhere.example
refused 'absolute path' --export export
refused 'leave one away' --lossy --synthetic
refused 'call log' --log-calls "$scratch/missing/calls"
refused 'rtmax' --rtmax 2m
refused 'max-handle' --max-handle 65
start
refused 'cannot listen' --port "$port"
