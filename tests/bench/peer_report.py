# SPDX-License-Identifier: GPL-2.0-or-later
"""Medians and paired ratios of the runs that tests/bench/peer made."""
import json
import re
import statistics
import sys


def read_run(path):
    """IOPS, client CPU microseconds per operation, mean and p99 latency in microseconds."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    # fio's own engine writes a line there for each call that is out when the time is over.
    job = json.JSONDecoder().raw_decode(text[text.index("{"):])[0]["jobs"][0]
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
    work, reps, name, peer_name, *json_path = sys.argv[1:]
    runs = {who: [read_run(f"{work}/{who}.{rep}.json") for rep in range(1, int(reps) + 1)]
            for who in ("ours", "peer")}
    calls = {who: read_calls(work, who) for who in ("ours", "peer")}
    report = {}
    for figure in ("kIOPS", "CPU us/op", "mean us", "p99 us"):
        ours, peer = ([run[figure] for run in runs[who]] for who in ("ours", "peer"))
        ratios = [a / b for a, b in zip(ours, peer)]
        report[figure] = {"ours": statistics.median(ours), "peer": statistics.median(peer),
                          "ratio": statistics.median(ratios), "least": min(ratios),
                          "most": max(ratios)}
    report["syscalls/op"] = {"ours": calls["ours"][0], "peer": calls["peer"][0],
                             "ratio": calls["ours"][0] / calls["peer"][0]}
    print(f"{'':14} {name:>10} {peer_name:>10} {'ratio':>8}   (of pairs: least to most)")
    for figure, row in report.items():
        spread = f"   ({row['least']:.3f} to {row['most']:.3f})" if "least" in row else ""
        digits = 2 if spread else 3
        print(f"{figure:14} {row['ours']:10.{digits}f} {row['peer']:10.{digits}f} "
              f"{row['ratio']:8.3f}{spread}")
    for who, label in (("ours", name), ("peer", peer_name)):
        print(f"  {label}: {calls[who][1]}")
    for path in json_path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(report, file)


main()
