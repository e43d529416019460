# SPDX-License-Identifier: GPL-2.0-or-later
"""table.py baseline.json: its ratios as a Markdown table."""
import json
import sys

FIGURES = (("kIOPS", "IOPS"), ("CPU us/op", "client CPU/op"), ("mean us", "mean latency"),
           ("p99 us", "p99 latency"), ("syscalls/op", "syscalls/op"))


def cell(row):
    spread = f" ({row['least']:.2f} to {row['most']:.2f})" if "least" in row else ""
    return f"{row['ratio']:.2f}{spread}"


def words(command):
    """What was measured against what, and the workload."""
    option = dict(zip(command.split()[1::2], command.split()[2::2]))
    ours = f"nfsrdma {option['--transport']}"
    peer = "fio nfs (tcp)" if option["--against"] == "nfs" else "nfsrdma tcp"
    return (f"{ours} / {peer}",
            f"{option['--rw']} {option['--bs']}, depth {option['--depth']}, {option.get('--jobs', 1)} job(s)")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    print(f"""# Ratios of the last measured state

Against nfsrdma-memd --synthetic on the same machine, in pairs of runs by turns: the median of the
pairs' ratios, least and most in brackets. IOPS: more is better; all others: less is better. The RDMA
rows are iWARP in user space: what an adapter does in hardware is computed here, on both ends.

Revision {data['revision']}, {data['fio']}, {data['machine']}. Made by `results/baseline/measure{' ' + data['options'] if data['options'] else ''}`.
""")
    print("| ratio | workload | " + " | ".join(title for _, title in FIGURES) + " |")
    print("|---|---|" + "---:|" * len(FIGURES))
    for run in data["runs"]:
        ratio, workload = words(run["command"])
        print(f"| {ratio} | {workload} | " + " | ".join(cell(run["figures"][key]) for key, _ in FIGURES) + " |")


main()
