# SPDX-License-Identifier: GPL-2.0-or-later
# part: packages budget: 30 in: quick
# Every package of tests/packages exists: it is installed, or apt knows a version of it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"
. "$root_dir/tests/lib/packages.sh"

absent=$(missing_packages)
for package in $(packages_in); do
  if ! grep -qxF "$package" <<<"$absent" || apt_knows "$package"; then
    ok "package:$package"
  else
    not_ok "package:$package" 'neither installed nor known to apt'
  fi
done
