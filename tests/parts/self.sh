# SPDX-License-Identifier: GPL-2.0-or-later
# part: self budget: 60 in: quick
# The scripts themselves: tests/run on parts made for it, and the apt entries that setup derives.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"
. "$root_dir/tests/lib/apt-source.sh"

tree=$part_dir/tree

# A checkout whose setup does nothing and whose parts are ours.
make_tree() {
  rm -rf "$tree"
  mkdir -p "$tree/tests/parts" "$tree/build"
  cp -r "$root_dir/tests/lib" "$root_dir/tests/run" "$tree/tests/"
  printf '#!/bin/sh\n' >"$tree/tests/setup"
  chmod +x "$tree/tests/setup"
  printf 'known:*\tno device$\n' >"$tree/tests/skips-allowed"
}

# part NAME BUDGET MODE LINE...
part() {
  local file=$tree/tests/parts/$1.sh
  printf '# part: %s budget: %s in: %s\nset -euo pipefail\n' "$1" "$2" "$3" >"$file"
  shift 3
  printf '%s\n' "$@" >>"$file"
}

# ends_with STATUS LINE [ARGUMENT...]: tests/run in the tree.
ends_with() {
  local status=0 log=$part_dir/run.log wanted=$1 line=$2
  shift 2
  "$tree/tests/run" "$@" >"$log" 2>&1 || status=$?
  sed 's/^/  | /' "$log"
  [ "$status" = "$wanted" ] && [ "$(tail -n 1 "$log")" = "$line" ]
}

make_tree
part good 10 quick 'echo ok a' 'echo "  ok indented"' 'echo "skip known:b: has no device"'
check self:passes ends_with 0 '1 passed, 0 failed, 1 skipped' --quick
part slow 10 long 'echo ok long'
check self:quick-leaves-long-out ends_with 0 '1 passed, 0 failed, 1 skipped' --quick
check self:long-holds-all ends_with 0 '2 passed, 0 failed, 1 skipped' --long
check self:only ends_with 0 '1 passed, 0 failed, 0 skipped' --only slow
check self:only-unknown ends_with 1 \
  'tests/run: no such part; tests/run --long --list names them all' --only none
part bad 10 quick 'echo ok a' 'echo "not ok b (why)"'
check self:failed-case ends_with 1 '1 passed, 1 failed, 0 skipped' --only bad
part bad 10 quick 'echo ok a' 'false' 'echo ok c'
check self:ended-early ends_with 1 '1 passed, 1 failed, 0 skipped' --only bad
part bad 10 quick 'true'
check self:no-case ends_with 1 '0 passed, 1 failed, 0 skipped' --only bad
part bad 10 quick 'echo "skip unknown: has no device"'
check self:skip-not-allowed ends_with 1 '0 passed, 1 failed, 0 skipped' --only bad
part bad 10 quick 'echo "skip known:x: no device found"'
check self:skip-for-another-reason ends_with 1 '0 passed, 1 failed, 0 skipped' --only bad
part bad 1 quick 'echo ok a' 'sleep 30'
check self:overrun ends_with 1 '1 passed, 1 failed, 0 skipped' --only bad
printf '#!/bin/sh\nexit 3\n' >"$tree/tests/setup"
check self:setup-fails ends_with 1 '0 passed, 1 failed, 0 skipped' --only good

# entry_is EXPECTED ARGUMENT...: the deb-src entry made of an apt entry.
entry_is() {
  local expected=$1
  shift
  diff <(printf '%s\n' "$expected") <(source_entry "$@")
}

lists=$part_dir/lists
mkdir -p "$lists"
cat >"$lists/one.list" <<'EOF'
# deb http://old.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib
deb http://plain.example/debian bookworm main
EOF
cat >"$lists/two.sources" <<'EOF'
# A comment, and a stanza that is not the one.

Types: deb
URIs: http://first.example/debian
Suites: bookworm
Components: main

# Another.
Types: deb deb-src
URIs: http://mirror.example/debian http://other.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Enabled: yes
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----
EOF
uri=http://mirror.example/debian/
check self:entry-options entry_is "deb-src [arch=amd64 signed-by=/k.gpg] $uri sid main" \
  "$uri" sid main "$lists/one.list:2"
check self:entry-plain entry_is "deb-src  $uri sid main" "$uri" sid main "$lists/one.list:3"
check self:entry-deb822 entry_is "Types: deb-src
URIs: $uri
Suites: sid
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----" "$uri" sid main "$lists/two.sources:2"

# What setup does to apt happens in a folder of its own.
lists_state() { find /etc/apt /var/lib/apt/lists -type f -printf '%p %s %T@\n' 2>/dev/null | sort; }
lists_untouched() {
  local before work=$part_dir/private
  before=$(lists_state)
  rm -rf "$work"
  mkdir -p "$work"
  write_entry "$work" http://127.0.0.1:9/none none main "$lists/one.list:3"
  ! download_source nothing "$work" || return 1
  diff <(printf '%s\n' "$before") <(lists_state)
}
check self:lists-untouched lists_untouched
