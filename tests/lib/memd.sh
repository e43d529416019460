# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Starts and stops the embedded server. Needs common.sh.
# shellcheck disable=SC2034
: "${root_dir:?}"

memd_pid=''
memd_url=''

# start_memd LOG [OPTION...]: on free ports of loopback; sets memd_url and memd_pid.
start_memd() {
  local log=$1 program=${MEMD:-$root_dir/build/tests/server/nfsrdma-memd}
  shift
  exec {memd_out}< <(exec "$program" --port 0 "$@" 2>"$log")
  memd_pid=$!
  if ! read -r -t 15 -u "$memd_out" memd_url; then
    stop_memd
    die "nfsrdma-memd did not start: $(tail -n 3 "$log")"
  fi
}

stop_memd() {
  [ -n "$memd_pid" ] || return 0
  kill "$memd_pid" 2>/dev/null || true
  wait "$memd_pid" 2>/dev/null || true
  memd_pid=''
  exec {memd_out}<&-
}
