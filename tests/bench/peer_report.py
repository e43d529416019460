# SPDX-License-Identifier: GPL-2.0-or-later
"""Medians and paired ratios of the runs that tests/bench/peer made."""
import json
import re
import statistics
import sys


def read_run(path):
    """IOPS, client CPU microseconds per operation, mean and p99 latency in microseconds."""
    with open(path, encoding="utf-8") as file:
        job = json.loads(file.read())["jobs"][0]
    if job["error"]:
        sys.exit(f"{path}: fio ended with error {job['error']}")
    sides = [job["read"], job["write"]]
    ops = sum(side["total_ios"] for side in sides)
    if ops == 0:
        sys.exit(f"{path}: no operation was made")
    # fio gives CPU in percent of the job's run time, for one job of the group on the average.
    jobs = int(job["job options"].get("numjobs", 1))
    cpu_ms = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"]
    busiest = max(sides, key=lambda side: side["total_ios"])
    return {
        "kIOPS": sum(side["iops"] for side in sides) / 1000,
        "CPU us/op": cpu_ms * 1000 / ops,
        "mean us": busiest["lat_ns"]["mean"] / 1000,
        "p99 us": busiest["clat_ns"]["percentile"]["99.000000"] / 1000,
        "_ops": ops,
        "_jobs": jobs,
    }


def read_calls(work, who):
    """System calls per operation, and the most frequent ones."""
    ops = read_run(f"{work}/{who}.calls.json")["_ops"]
    total, names = 0, []
    with open(f"{work}/{who}.strace", encoding="utf-8") as file:
        for line in file:
            row = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", line)
            if row and row.group(2) != "total":
                total += int(row.group(1))
                names.append((int(row.group(1)), row.group(2)))
    top = ", ".join(f"{name} {count / ops:.3f}" for count, name in sorted(names)[::-1][:4])
    return total / ops, top


def main():
    work, reps = sys.argv[1], int(sys.argv[2])
    runs = {who: [read_run(f"{work}/{who}.{rep}.json") for rep in range(1, reps + 1)]
            for who in ("ours", "peer")}
    print(f"{'':14} {'nfsrdma':>10} {'fio nfs':>10} {'ratio':>8}   (of pairs: least to most)")
    for figure in ("kIOPS", "CPU us/op", "mean us", "p99 us"):
        ours = [run[figure] for run in runs["ours"]]
        peer = [run[figure] for run in runs["peer"]]
        ratios = [a / b for a, b in zip(ours, peer)]
        print(f"{figure:14} {statistics.median(ours):10.2f} {statistics.median(peer):10.2f} "
              f"{statistics.median(ratios):8.3f}   ({min(ratios):.3f} to {max(ratios):.3f})")
    ours_calls, ours_top = read_calls(work, "ours")
    peer_calls, peer_top = read_calls(work, "peer")
    print(f"{'syscalls/op':14} {ours_calls:10.3f} {peer_calls:10.3f} "
          f"{ours_calls / peer_calls:8.3f}")
    print(f"  nfsrdma: {ours_top}\n  fio nfs: {peer_top}")


main()
