# SPDX-License-Identifier: GPL-2.0-or-later
# part: bench budget: 60 in: run
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/part.sh"

meson_suite "$build_dir" bench
