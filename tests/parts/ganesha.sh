# SPDX-License-Identifier: GPL-2.0-or-later
# part: ganesha budget: 360 in: run
# The engine against nfs-ganesha, in namespaces of its own.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"

for tool in ganesha.nfsd rpcbind; do
  if ! command -v $tool >/dev/null; then
    skip ganesha "no $tool on this machine"
    exit
  fi
done
if ! unshare --net --mount --pid --fork true 2>/dev/null; then
  skip ganesha 'no right to make namespaces'
  exit
fi
"$root_dir/tests/interop/ganesha/run" "$build_dir" || not_ok ganesha "status $?"
