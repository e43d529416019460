# SPDX-License-Identifier: GPL-2.0-or-later
# part: results budget: 60 in: quick
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"
. "$root_dir/tests/lib/memd.sh"

meson_suite "$build_dir" results
# The published table is the one that its recorded ratios give.
baseline=$root_dir/results/baseline
check results:baseline-table diff "$baseline/baseline.md" <("$baseline/measure" --table "$baseline/baseline.json")
# What is measured by results/ab is what the engine offers: all of it.
offered=$(offered_transports "$build_dir/engine/libnfsrdma.so" | paste -sd ' ')
check results:offered-transports [ "$offered" = 'tcp rdma' ]
