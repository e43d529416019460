# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Reads tests/packages, the one list of Debian packages, and installs from it. Needs common.sh.

: "${root_dir:?}"
package_list=$root_dir/tests/packages

# packages_in SECTION...: the packages of these sections, one a line; of all without an argument.
packages_in() {
  awk -v wanted=" $* " '
    { sub(/#.*/, "") }
    /^\[.*\]/ { section = substr($1, 2, length($1) - 2); next }
    NF && (wanted == "  " || index(wanted, " " section " ")) { print $1 }
  ' "$package_list" | sort -u
}

# missing_packages SECTION...: those that dpkg does not know as installed.
missing_packages() {
  local -a wanted
  mapfile -t wanted < <(packages_in "$@")
  [ ${#wanted[@]} -gt 0 ] || return 0
  comm -23 <(printf '%s\n' "${wanted[@]}") \
    <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${wanted[@]}" 2>/dev/null |
      awk '$1 ~ /^.i/ { print $2 }' | sort -u)
}

# True where apt knows a version to install of each package named.
apt_knows() {
  local known
  known=$(apt-cache policy "$@" 2>/dev/null | grep -c '^  Candidate: [^(]' || true)
  [ "$known" -ge $# ]
}

# install_missing SECTION...: installs what is missing; without the right to, prints the command
# that would and stops.
install_missing() {
  local -a missing prefix
  local words line log
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  line="apt-get install --no-install-recommends ${missing[*]}"
  if ! words=$(root_prefix); then
    say "These packages are missing and only root may install them. Please run once:"
    say "  sudo $line"
    exit 1
  fi
  read -ra prefix <<<"$words"
  log=$(cache_dir)/apt.log
  say "setup: installing ${#missing[@]} packages: ${missing[*]}"
  apt_as_root() {
    "${prefix[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q \
      -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >>"$log" 2>&1 </dev/null
  }
  : >"$log"
  apt_knows "${missing[@]}" || apt_as_root update || true
  # Lists that are merely old name files that the mirror has dropped: one update, one more try.
  apt_as_root install -y --no-install-recommends "${missing[@]}" ||
    { apt_as_root update && apt_as_root install -y --no-install-recommends "${missing[@]}"; } || {
    tail -n 20 "$log" >&2
    die "the packages could not be installed (whole log: $log); by hand: $line"
  }
}
