# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs tests of a build with ASan and UBSan. Needs part.sh.
#
# fio itself is not instrumented, and the sanitizer's runtime must come first in a process that
# loads an instrumented engine: a `fio` before the real one in PATH preloads it, for fio alone.
# What it finds must not depend on how a test looks at fio: fio's children end in _exit, a test of
# bad input expects a status other than 0. ASan therefore writes files; UBSan does not honour its
# log_path beside ASan: the engine's tests look for its words in what fio and the server wrote to
# stderr, the verdict in what the tests put out.
: "${part_dir:?}"
asan_reports=$part_dir/reports

asan_environment() {
  local fio bin=$part_dir/bin
  rm -rf "$asan_reports" "$bin"
  mkdir -p "$asan_reports" "$bin"
  fio=$(command -v fio)
  cat >"$bin/fio" <<EOF
#!/bin/bash
# fio's own leaks are not ours to judge.
export ASAN_OPTIONS=\$ASAN_OPTIONS:detect_leaks=0
export LD_PRELOAD=$(gcc -print-file-name=libasan.so)\${LD_PRELOAD:+:\$LD_PRELOAD}
exec $fio "\$@"
EOF
  chmod +x "$bin/fio"
  export PATH=$bin:$PATH
  export ASAN_OPTIONS="log_path=$asan_reports/asan:detect_stack_use_after_return=1"
  export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
}

# asan_verdict NAME LOG...: one case. LOG: output of instrumented tests, which may hold UBSan's words.
asan_verdict() {
  local name=$1 count
  shift
  mapfile -t found < <(
    find "$asan_reports" -name 'asan.*' -size +0
    grep -ls 'runtime error: ' "$@" || true
  )
  count=${#found[@]}
  if [ "$count" = 0 ]; then
    ok "$name:no-report"
  else
    head -n 50 "${found[@]:0:5}"
    not_ok "$name:no-report" "$count reports: ${found[*]}"
  fi
}
