# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What jobs/run and results/ab share: the embedded server, and what an engine offers. Needs common.sh.
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

# offered_transports ENGINE: tcp and rdma as far as the engine itself says that it has them.
offered_transports() {
  fio "--enghelp=$1,transport" | sed -n '/valid values:/,$ s/^[^:]*: *//p' |
    awk '$1 == "tcp" || $1 == "rdma" { print $1 }'
}
