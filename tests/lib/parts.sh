# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Finds the parts of tests/run, runs one, counts its cases. Needs common.sh.
: "${root_dir:?}"

logs_dir=$root_dir/build/test-logs
skips_allowed=$root_dir/tests/skips-allowed
passed=0
failed=0
skipped=0

# list_parts MODE: "budget name file", cheapest first, of the parts that belong to quick, run or
# long; a longer mode holds the shorter ones. The header of a part is its second or third line:
#   # part: NAME budget: SECONDS in: quick|run|long
list_parts() {
  local modes=quick
  case $1 in
    run) modes='quick run' ;;
    long) modes='quick run long' ;;
  esac
  awk -v modes=" $modes " '
    FNR <= 5 && $1 == "#" && $2 == "part:" && $4 == "budget:" && $6 == "in:" &&
      index(modes, " " $7 " ") { print $5, $3, FILENAME }
  ' "$root_dir"/tests/parts/*.sh | sort -n -k1,1 -k2,2
}

# skip_is_allowed NAME REASON: a line of tests/skips-allowed is a shell pattern for the name, a tab,
# and an extended regular expression that the reason must contain.
skip_is_allowed() {
  local name pattern
  while IFS=$'\t' read -r name pattern; do
    [[ -n $name && $name != '#'* && -n $pattern ]] || continue
    # shellcheck disable=SC2053
    if [[ $1 == $name && $2 =~ $pattern ]]; then return 0; fi
  done <"$skips_allowed"
  return 1
}

# judge_skips PART LOG: turns skips that are not allowed into failures, in the log.
judge_skips() {
  local line name reason
  while IFS= read -r line; do
    line=${line#skip }
    name=${line%%: *}
    reason=${line#*: }
    skip_is_allowed "$name" "$reason" ||
      printf 'not ok %s (skipped, not on tests/skips-allowed: %s)\n' "$name" "$reason"
  done < <(grep '^skip ' "$1" || true) >"$1.skips"
  cat "$1.skips" >>"$1"
}

count_lines() { grep -c "$1" "$2" || true; }

# run_part MODE BUDGET NAME FILE: a part must end with status 0, whatever its cases said.
run_part() {
  local mode=$1 budget=$2 name=$3 file=$4 log=$logs_dir/$3.log begin=$SECONDS status=0 spent
  local good bad skips refused
  printf '%-14s ' "$name"
  mkdir -p "$logs_dir/$name"
  NFSRDMA_MODE=$mode NFSRDMA_PART_DIR=$logs_dir/$name \
    timeout --kill-after=20 $((2 * budget)) bash "$file" >"$log" 2>&1 </dev/null || status=$?
  spent=$((SECONDS - begin))
  judge_skips "$log"
  bad=$(count_lines '^not ok ' "$log")
  good=$(count_lines '^ok ' "$log")
  refused=$(wc -l <"$log.skips")
  skips=$(($(count_lines '^skip ' "$log") - refused))
  if [ "$status" = 124 ] || [ "$status" = 137 ] || [ "$spent" -gt $((2 * budget)) ]; then
    note_failure "$log" "$name: $spent s, twice its budget of $budget s"
  elif [ "$status" != 0 ]; then
    note_failure "$log" "$name: ended with status $status"
  elif [ $((good + bad + skips)) = 0 ]; then
    note_failure "$log" "$name: ran no test"
  fi
  bad=$(count_lines '^not ok ' "$log")
  printf '%4d passed %3d failed %3d skipped  %4d s of %d s\n' \
    "$good" "$bad" "$skips" "$spent" "$budget"
  [ "$bad" = 0 ] || show_part "$name" "$log"
  passed=$((passed + good))
  failed=$((failed + bad))
  skipped=$((skipped + skips))
}

note_failure() { printf 'not ok %s\n' "$2" >>"$1"; }

# The end of a failed part's log, set in so that no line of it is taken for one of ours.
show_part() {
  tail -n 100 "$2" | sed 's/^/  | /'
  printf '  The cases that failed:\n'
  grep '^not ok ' "$2" | head -n 40 | sed 's/^/  ! /'
  printf '  The whole log is %s\n' "$2"
}
