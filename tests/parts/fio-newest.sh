# SPDX-License-Identifier: GPL-2.0-or-later
# part: fio-newest budget: 240 in: run
# The engine on the newest fio that can be had: it builds, a job passes, and neither fio takes the
# build for the other.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"
. "$root_dir/tests/lib/build.sh"
. "$root_dir/tests/lib/memd.sh"

status=0
"$root_dir/tests/fio-newest" >"$part_dir/newest" 2>"$part_dir/newest.log" || status=$?
cat "$part_dir/newest.log"
case $status in
  0) ;;
  77) skip fio-newest "$(tail -n 1 "$part_dir/newest.log" | sed 's/^fio-newest: //')"; exit 0 ;;
  *) not_ok fio-newest:obtain "status $status"; exit 1 ;;
esac
source=$(sed -n 's/^source //p' "$part_dir/newest")
newest=$(sed -n 's/^binary //p' "$part_dir/newest")
dir=$root_dir/build-fio-newest
# shellcheck disable=SC2034
build_targets=(engine/libnfsrdma.so)
check fio-newest:build build_in "$dir" --buildtype=release -Dtests=false "-Dfio_source=$source"

# run_fio FIO ENGINE: a short job whose data is read back and compared.
run_fio() {
  timeout 60 "$1" --name=newest --ioengine="external:$2" --nfs_url="$memd_url" --nfs_dir=newest \
    --rw=randwrite --bsrange=1k-64k --size=8m --numjobs=2 --iodepth=16 --direct=1 \
    --verify=crc32c --verify_state_save=0 --output-format=json
}

passes() {
  run_fio "$@" >"$part_dir/job.json" || { cat "$part_dir/job.json"; return 1; }
  grep -q '"total_ios" : [1-9]' "$part_dir/job.json"
}

# refused FIO ENGINE: not run at all, and one line names both versions.
refused() {
  local log=$part_dir/refused.log
  ! run_fio "$1" "$2" >"$log" 2>&1 || { echo "$1 took $2"; return 1; }
  cat "$log"
  grep -F "$("$newest" --version)" "$log" | grep -qF "$(fio --version)"
}

start_memd "$part_dir/memd.log"
trap stop_memd EXIT
check fio-newest:job passes "$newest" "$dir/engine/libnfsrdma.so"
if [ "$("$newest" --version)" = "$(fio --version)" ]; then
  skip fio-newest:refusal 'the installed fio is the newest'
else
  check fio-newest:refuses-installed refused "$newest" "$build_dir/engine/libnfsrdma.so"
  check fio-newest:refused-by-installed refused fio "$dir/engine/libnfsrdma.so"
fi
