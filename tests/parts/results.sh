# SPDX-License-Identifier: GPL-2.0-or-later
# part: results budget: 60 in: quick
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"

meson_suite "$build_dir" results
# The published table is the one that its recorded ratios give.
baseline=$root_dir/results/baseline
check results:baseline-table diff "$baseline/baseline.md" <("$baseline/measure" --table "$baseline/baseline.json")
