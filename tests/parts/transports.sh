# SPDX-License-Identifier: GPL-2.0-or-later
# part: transports budget: 120 in: quick
# The same cases over tcp and rdma against nfsrdma-memd, and RDMA servers that misbehave.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"

meson_suite "$build_dir" transports
