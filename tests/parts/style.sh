# SPDX-License-Identifier: GPL-2.0-or-later
# part: style budget: 60 in: quick
# What a compiler does not see: format, licence lines, lengths, the layers' includes.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"

longest_file=600
cd "$root_dir"

cpp_files() { source_files '*.h' '*.c' '*.cc' '*.cpp'; }

# Scripts by name or by their first line.
scripts() {
  source_files '*.sh'
  source_files | while IFS= read -r file; do
    case $file in
      *.*) ;;
      *) ! head -c 32 "$file" | grep -aq '^#!.*bash' || printf '%s\n' "$file" ;;
    esac
  done
}

# none NAME: passes when there is no line on stdin; the lines are the offenders.
none() {
  local found
  found=$(cat)
  if [ -z "$found" ]; then
    ok "style:$1"
  else
    printf '%s\n' "$found"
    not_ok "style:$1"
  fi
}

files_without_licence() {
  source_files | while IFS= read -r file; do
    case $file in
      LICENSE | .gitignore | *.md | *.json | *.jsonl | *.patch | *.csv | *.tsv | *.txt | *.bin) continue ;;
    esac
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0-or-later' || echo "$file"
  done
}

long_files() {
  { cpp_files; scripts; source_files '*.py' '*meson.build'; } | sort -u |
    xargs -r wc -l | awk -v n="$longest_file" '$2 != "total" && $1 > n { print $2 ": " $1 " lines" }'
}

# include_outside HEADER FOLDER...: lines that include HEADER (a pattern) outside these folders.
include_outside() {
  local header=$1 file folder
  shift
  cpp_files | while IFS= read -r file; do
    for folder in "$@"; do
      [[ $file != "$folder"/* ]] || continue 2
    done
    grep -HnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"](${header})[>\"]" "$file" || true
  done
}

leftovers() {
  # The words are written apart so that this file does not name itself.
  source_files | grep -vxF LICENSE | xargs grep -InwE 'TO''DO|FIX''ME|XX''X' || true
}

including_fio() {
  cpp_files | grep '^engine/' |
    xargs -r grep -lE '#[[:space:]]*include[[:space:]]*[<"]([^">]*/)?fio\.h[">]' || true
}

# A test that no part runs would never run.
suites_without_part() {
  local suite
  meson introspect --tests "$build_dir" | grep -oE '"suite": \["[^"]*"' | sed 's/"$//; s/.*[":]//' |
    sort -u | while IFS= read -r suite; do
      grep -qE "^meson_suite .* ${suite}( |\$)" tests/parts/*.sh || echo "no part runs the suite $suite"
    done
}

# A mutant that does not apply any more breaks nothing.
stale_mutants() {
  local mutant
  for mutant in tests/mutants/*.patch; do
    git -c safe.directory='*' apply --check "$mutant" 2>/dev/null || echo "$mutant does not apply"
  done
}

if [ -n "$(cpp_files)" ]; then
  check style:clang-format xargs clang-format-14 --dry-run -Werror --style=file < <(cpp_files)
fi
check style:shellcheck xargs shellcheck < <(scripts)
files_without_licence | none licence-lines
long_files | none file-length
leftovers | none no-leftovers
include_outside '(fio|ioengines|io_u)\.h' engine | none fio-only-in-engine
including_fio | tail -n +2 | none one-file-includes-fio
include_outside '(infiniband|rdma)/[^>"]*' rdma tests | none verbs-only-in-rdma
suites_without_part | none every-suite-has-a-part
stale_mutants | none mutants-apply
