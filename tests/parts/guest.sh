# SPDX-License-Identifier: GPL-2.0-or-later
# part: guest budget: 1200 in: run
# The Linux kernel's NFS server and client, in an emulated guest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"

guest=$root_dir/tests/interop/guest
for tool in qemu-system-x86_64 debootstrap; do
  if ! command -v $tool >/dev/null; then
    skip guest "no $tool on this machine"
    exit
  fi
done
begin=$SECONDS
check guest:image "$guest/build"
echo "image: $((SECONDS - begin)) s"

for scenario in selftest host-client guest-client verbs kernel-client events; do
  begin=$SECONDS
  "$guest/$scenario" || not_ok "guest:$scenario" "ended with status $?"
  echo "$scenario: $((SECONDS - begin)) s"
done

begin=$SECONDS
"$root_dir/tests/interop/capture" guest || not_ok guest:capture "ended with status $?"
echo "capture: $((SECONDS - begin)) s"

# The published tables are those that their recorded runs give.
for recorded in "$root_dir"/results/kernel/*.json; do
  recorded=${recorded%.json}
  check "guest:$(basename "$recorded")-table" \
    diff "$recorded.md" <("$guest/yardstick-table" "$recorded.json")
done
