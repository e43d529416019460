# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A configured fio source tree for the installed fio. Needs common.sh and apt-source.sh.

# unpack_fio TARBALL DIR: unpacks and configures into DIR, which appears only when complete.
unpack_fio() {
  local tarball=$1 dir=$2 work=$2.unpacking
  rm -rf "$work"
  mkdir -p "$work"
  tar -x -f "$tarball" -C "$work" --strip-components=1 --no-same-owner
  configure_fio "$work"
  mv "$work" "$dir"
}

# configure_fio DIR: fio's struct layout follows config-host.h, its version FIO-VERSION-FILE.
configure_fio() {
  (cd "$1" && ./configure --disable-native && sh ./FIO-VERSION-GEN) >"$1/setup.log" 2>&1 </dev/null ||
    die "fio's ./configure failed in $1: $(tail -n 3 "$1/setup.log")"
}

# Refuses to guess for a fio that is not the packaged one: its headers would not fit.
installed_fio_version() {
  local path version
  path=$(command -v fio) || die "no fio in PATH, though the package is installed"
  dpkg-query -S "$(readlink -f "$path")" >/dev/null 2>&1 || die \
    "fio is $path, which no package owns: name its source tree with tests/setup -Dfio_source=DIR"
  # shellcheck disable=SC2016
  version=$(dpkg-query -W -f '${source:Version}' fio)
  printf '%s\n' "$version"
}

# obtain_fio_headers: prints the tree for the installed fio, which it downloads once.
obtain_fio_headers() {
  local version cache dir work target tarball=''
  version=$(installed_fio_version)
  cache=$(cache_dir)
  dir=$cache/fio-$version
  if ! [ -e "$dir/config-host.h" ]; then
    exec 9>"$cache/lock"
    flock 9
    [ -e "$dir/config-host.h" ] || {
      say "setup: obtaining the source of fio $version, for its headers"
      work=$cache/fio-$version.download
      rm -rf "$work" "$dir"
      mkdir -p "$work"
      while read -ra target; do
        write_entry "$work" "${target[@]}"
        tarball=$(download_source "fio=$version" "$work") && break
      done < <(source_targets fio "$(dpkg-query -W -f '${Version}' fio)")
      [ -n "$tarball" ] || fio_headers_missing "$version" "$work/log"
      unpack_fio "$tarball" "$dir"
      rm -rf "$work"
    }
    exec 9>&-
  fi
  printf '%s\n' "$dir"
}

fio_headers_missing() {
  say "setup: the source of fio $1 could not be had from the machine's apt mirror:"
  grep -E '^(E|W|Err)' "$2" 2>/dev/null | tail -n 5 >&2 || true
  die "unpack the source of fio $1 and run: tests/setup -Dfio_source=DIR"
}
