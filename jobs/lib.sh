# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The steps of jobs/run. They share its variables: the arguments, and what each step sets.
# shellcheck disable=SC2154
: "${root_dir:?}" "${here:?}"

files=16
engine_dir=$root_dir/build/engine
tree_tool=$root_dir/build/nfsclient/nfsrdma-tree
server_dir=''
folder_made=no

check_arguments() {
  local name
  if [ ${#experiments[@]} = 0 ] || [[ " ${experiments[*]} " == *' all '* ]]; then
    mapfile -t experiments < <(shipped_experiments)
  fi
  for name in "${experiments[@]}"; do
    [ -f "$here/$name.fio" ] ||
      die "no experiment '$name'; there are: $(shipped_experiments | tr '\n' ' ')and all"
  done
  case $wanted_transport in
    tcp | rdma | all) ;;
    *) die "--transport takes tcp, rdma or all, not '$wanted_transport'" ;;
  esac
  [ -z "$server" ] || [[ $server == nfs://?*/* ]] ||
    die "--server takes a URL like nfs://host/export, not '$server'"
  [ "$keep" = no ] || [ -n "$server" ] || die "--keep is for --server: the embedded one keeps nothing"
  [ "$full" = no ] || [ -z "$size" ] || die "--full and --size exclude each other"
}

shipped_experiments() {
  find "$here" -maxdepth 1 -name 'E*.fio' -printf '%f\n' | sed 's/\.fio$//' | sort -V
}

choose_transports() {
  local offered
  mapfile -t offered < <(offered_transports "$engine_dir/libnfsrdma.so")
  [ ${#offered[@]} -gt 0 ] || die "fio does not load $engine_dir/libnfsrdma.so; run tests/setup"
  transports=("${offered[@]}")
  if [ "$wanted_transport" != all ]; then
    [[ " ${offered[*]} " == *" $wanted_transport "* ]] ||
      die "this build offers no $wanted_transport, only: ${offered[*]}"
    transports=("$wanted_transport")
  fi
}

choose_sizes() {
  runtime=30
  if [ "$full" = yes ]; then
    size=1g
    runtime=240
  fi
  size=${size:-64m}
  file_bytes=$(numfmt --from=iec "${size^^}" 2>/dev/null) ||
    die "--size takes a number with k, m or g, like 64m, not '$size'"
  [ "$file_bytes" -ge $((1 << 20)) ] || die "--size: 1m is the least"
  total_bytes=$((files * file_bytes))
}

human() { numfmt --to=iec-i --suffix=B --format=%.1f "$1"; }

use_memd() {
  # Beside the files: fio's 16 jobs with their buffers, the server, some air.
  local needed=$((total_bytes + total_bytes / 16 + (512 << 20))) available
  available=$(($(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo) * 1024))
  [ "$needed" -le "$available" ] || die "the embedded server keeps its files in memory: this needs" \
    "$needed bytes, and $available are available. A smaller --size, or --server, will do"
  start_memd "$results/memd.log"
  url=$memd_url
  server_dir='jobs'
  echo "Server: the embedded one, $url"
  echo "Files: $files x $(human "$file_bytes")"
}

# folder_exists URL DIR: mounts the folder, which stands before the URL's arguments.
folder_exists() {
  local arguments=''
  [[ $1 != *\?* ]] || arguments="?${1#*\?}"
  "$tree_tool" df "${1%%\?*}/$2$arguments" >/dev/null 2>&1
}

# Works in a new folder only, and tells what it will do to the server before it does.
use_server() {
  local available written
  url=$server
  available=$("$tree_tool" df "$url" | awk '$1 == "available" { print $2 }') || exit 1
  [ -n "$available" ] || die "$url did not tell its free space"
  written=$((total_bytes + ${#transports[@]} * total_bytes * 3 / 10))
  [ "$total_bytes" -le "$available" ] ||
    die "$url has $available bytes available and the files take $total_bytes: use a smaller --size"
  server_dir=nfsrdma-$(uname -n | tr -cd 'A-Za-z0-9.-')-$$
  echo "Server: $url ($(human "$available") available)"
  echo "Will write up to $(human "$written") into $files files of $(human "$file_bytes") in the new" \
    "folder $server_dir"
  # What is there already is not ours to remove at the end.
  ! folder_exists "$url" "$server_dir" || die "folder $server_dir of $url exists already: run again"
  "$tree_tool" mkdir "$url" "$server_dir" || exit 1
  folder_made=yes
}

# Ends what was started; also after Ctrl-C, when fio has ended already.
cleanup() {
  trap '' INT TERM
  if [ "$folder_made" = yes ] && [ "$keep" = yes ]; then
    echo "Kept: folder $server_dir of $url"
  elif [ "$folder_made" = yes ]; then
    "$tree_tool" rmtree "$url" "$server_dir" || say "jobs/run: folder $server_dir of $url is left"
  fi
  stop_memd
}

# The job as it is run: the shipped file and the two options that are ours alone.
write_job() {
  local line
  while IFS= read -r line; do
    printf '%s\n' "$line"
    [[ $line != nfs_url=* ]] ||
      printf '%s\n' "nfs_dir=$server_dir" "stats_json=$2.stats.json"
  done <"$here/$1.fio" >"$2.fio"
}

# fio_job OUT TRANSPORT: runs OUT.fio. fio wants the engine as a file of the current folder and as a
# name that dlopen finds. It puts its messages into the file that --output names, before the JSON.
fio_job() {
  local status=0
  (cd "$engine_dir" && NFS_URL=$url TRANSPORT=$2 SIZE=$size RUNTIME=$runtime \
    LD_LIBRARY_PATH=$engine_dir fio --output-format=json --output="$1.out" "$1.fio" \
    2>"$1.log") || status=$?
  sed '/^{/,$d' "$1.out" >>"$1.log" || true
  sed -n '/^{/,$p' "$1.out" >"$1.json" || true
  rm -f "$1.out"
  return "$status"
}

# run_job EXPERIMENT TRANSPORT
run_job() {
  local out=$results/$1-$2 begin=$SECONDS status=0
  write_job "$1" "$out"
  printf '%s over %s ... ' "$1" "$2"
  fio_job "$out" "$2" || status=$?
  # On a terminal fio has written its progress over the line.
  if [ -t 1 ]; then printf '\r\033[K%s over %s ... ' "$1" "$2"; fi
  if [ "$status" = 0 ]; then
    printf 'done in %d s\n' $((SECONDS - begin))
    done_files+=("$out.json")
    [ ! -s "$out.stats.json" ] || done_files+=("$out.stats.json")
    return
  fi
  printf 'failed, status %d\n' "$status"
  grep -v '^ *$' "$out.log" | tail -n 5 | sed 's/^/  /' || true
  # A server of the user's need not offer each transport, unless it was asked for by name.
  if [ -z "$server" ] || [ "$2" = "$wanted_transport" ] || [ "$2" = tcp ]; then
    refused=$((refused + 1))
  fi
}
