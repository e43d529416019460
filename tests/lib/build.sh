# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Configures a build folder with meson and builds it. Needs common.sh.

: "${root_dir:?}"

# build_option DIR NAME: the value of a meson option; nothing where the folder is not configured.
build_option() {
  local options=$1/meson-info/intro-buildoptions.json
  [ -e "$options" ] || return 0
  sed -n "s/.*{\"name\": \"$2\", \"value\": \"\([^\"]*\)\".*/\1/p" "$options"
}

# known_targets DIR NAME...: those of the names that the folder can build.
known_targets() {
  local dir=$1
  shift
  ninja -C "$dir" -t targets all | sed -n 's/^\([^:]*\): .*/\1/p' |
    grep -xF -f <(printf '%s\n' "$@") || true
}

# build_in DIR OPTION...: configures where it is new or an option differs, then builds everything,
# or those of the targets in the array build_targets that there are.
build_targets=()
build_in() {
  local dir=$1 stamp=$1/setup-options
  shift
  mkdir -p "$dir"
  [ -w "$dir" ] || die "$dir belongs to another user: remove it or work in a clone of your own"
  (
    flock 9
    if ! [ -e "$dir/build.ninja" ]; then
      meson setup "$dir" "$root_dir" "$@" >"$dir/setup.log" 2>&1 || show_failure "$dir/setup.log"
    elif [ "$*" != "$(cat "$stamp" 2>/dev/null)" ]; then
      meson configure "$dir" "$@" >"$dir/setup.log" 2>&1 || show_failure "$dir/setup.log"
    fi
    printf '%s' "$*" >"$stamp"
    # First what meson makes: a new target is not known before.
    ninja -C "$dir" build.ninja >"$dir/build.log" 2>&1 || show_failure "$dir/build.log"
    targets=()
    [ ${#build_targets[@]} = 0 ] || mapfile -t targets < <(known_targets "$dir" "${build_targets[@]}")
    ninja -C "$dir" -j "$(cpus)" "${targets[@]}" >>"$dir/build.log" 2>&1 || show_failure "$dir/build.log"
  ) 9>"$dir/setup.lock"
}

show_failure() {
  tail -n 60 "$1" >&2
  die "the build failed; the whole log is $1"
}
