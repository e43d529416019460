# SPDX-License-Identifier: GPL-2.0-or-later
# part: capture budget: 120 in: run
# What the engine and nfsrdma-memd send, captured and decoded by tshark.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"

"$root_dir/tests/interop/capture" memd || not_ok capture "status $?"
