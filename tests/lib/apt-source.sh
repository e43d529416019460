# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Source packages through an apt source entry of our own: made at run time from the entry of the
# machine that offers the binary package, in a folder of ours, with lists and cache of its own. The
# machine's sources lists are read, never changed. Needs common.sh.

# source_targets PACKAGE VERSION: the configured entries that may have its source, best first, as
# lines "uri suite component file:number" (the number is apt's: of a line, or of a stanza).
source_targets() {
  local offers
  offers=$(apt-cache madison "$1" 2>/dev/null |
    awk -F ' *[|] *' -v v="$2" '$2 == v { split($3, w, " "); print w[1], w[2] }')
  # Without downloaded lists (a container image) every entry may be the one.
  # shellcheck disable=SC2016
  apt-get indextargets --format \
    '$(SITE) $(REPO_URI) $(RELEASE) $(COMPONENT) $(SOURCESENTRY)' 'Created-By: Packages' |
    awk -v offers="$offers" '
      BEGIN { n = split(offers, line, "\n"); for (i = 1; i <= n; i++) offered[line[i]] = 1 }
      NF == 5 && (n == 0 || (($1 " " $3 "/" $4) in offered)) && !seen[$2, $3, $4]++ {
        print $2, $3, $4, $5
      }'
}

# stanza FILE NUMBER: one stanza of a deb822 file, comments dropped.
stanza() {
  awk -v want="$2" '
    /^#/ { next }
    /^[ \t]*$/ { inside = 0; next }
    !inside { inside = 1; n++ }
    n == want { print }' "$1"
}

# source_entry URI SUITE COMPONENT FILE:NUMBER: a deb-src entry that keeps the options of the entry
# named (Signed-By above all), in the format of its file.
source_entry() {
  local file=${4%:*} number=${4##*:} options
  case $file in
    *.sources)
      printf 'Types: deb-src\nURIs: %s\nSuites: %s\nComponents: %s\n' "$1" "$2" "$3"
      stanza "$file" "$number" | awk '
        /^[^ \t]/ {
          name = tolower($0); sub(/:.*/, "", name)
          keep = name !~ /^(types|uris|suites|components|enabled|architectures)$/
        }
        keep { print }' ;;
    *)
      options=$(sed -n "${number}s/^[^#]*\(\[[^]]*\]\).*/\1/p" "$file")
      printf 'deb-src %s %s %s %s\n' "$options" "$1" "$2" "$3" ;;
  esac
}

# private_apt DIR COMMAND...: apt-get on DIR/entry.list or .sources alone, state and cache in DIR.
private_apt() {
  local dir=$1 entry
  shift
  entry=$(find "$dir" -maxdepth 1 -name 'entry.*' -print -quit)
  mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
  # Hooks of the machine that refresh its own caches are no business of ours.
  cat >"$dir/apt.conf" <<EOF
#clear APT::Update;
Dir::Etc::sourcelist "$entry";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$dir/lists";
Dir::Cache "$dir/cache";
Acquire::Languages "none";
Acquire::Retries "2";
APT::Sandbox::User "root";
EOF
  apt-get -q -c "$dir/apt.conf" "$@" </dev/null
}

# download_source PACKAGE[=VERSION] DIR: the upstream tarball of the package into DIR, its entry
# standing as DIR/apt/entry.*. apt checks it against the signed index; packaging files are not
# needed. Prints the tarball's path; on failure apt's words are in DIR/log.
download_source() {
  local dir=$2 tarball
  { private_apt "$dir/apt" update &&
    (cd "$dir" && private_apt "$dir/apt" source --download-only --tar-only "$1"); } \
    >>"$dir/log" 2>&1 || return 1
  tarball=$(find "$dir" -maxdepth 1 -name '*.orig.tar.*' ! -name '*.asc' -print -quit)
  [ -n "$tarball" ] && printf '%s\n' "$tarball"
}

# write_entry DIR URI SUITE COMPONENT FILE:NUMBER
write_entry() {
  local dir=$1 kind=list
  shift
  [[ ${4%:*} != *.sources ]] || kind=sources
  rm -rf "$dir/apt"
  mkdir -p "$dir/apt"
  source_entry "$@" >"$dir/apt/entry.$kind"
}
