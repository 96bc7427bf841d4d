#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the parallel algorithms of forkjoin with serial code and with other libraries.

There are several rounds for each workload and number of workers. In each round every program runs
once, so that a disturbance of the machine affects all programs alike. The best time counts.
README.md describes the workloads and the tables.
"""

import argparse
import json
import os
import shutil
import sys

from beside import Failure, names, print_columns, progress, results

WORKLOADS = ["for-even", "for-triangle", "for-heavy", "for-grain1", "for-tiny", "for-tiny-inside",
             "region-2us", "region-5us", "region-13us", "region-50us", "region-heavy-6us",
             "sum", "sum-fixed", "scan-i64", "scan-f64", "copy", "filter", "find",
             "histogram-u8", "histogram-u32",
             "sort-u32", "sort-u32-sorted", "sort-u32-reversed", "sort-u32-equal",
             "sort-u32-organ", "sort-u32-few", "sort-struct", "sort-strings",
             "sort-kv32", "sort-kv64", "merge", "pipeline"]
RUNTIMES = ["fj", "serial", "stl", "tbb", "libgomp", "libomp", "gnu", "java"]
OURS = "fj"
SERIAL = ("serial", "stl")      # these use one thread, except for `copy`


class Series:
    """The times of one variant of a runtime for one workload and number of workers."""

    def __init__(self, items, size):
        self.items = items
        self.bytes = size
        self.rounds = []        # the best time of each round
        self.cpu = float("inf")  # the shortest processor time of a run

    @property
    def best(self):
        return min(self.rounds)

    @property
    def spread(self):
        return max(self.rounds) / self.best - 1


def command(bin_dir, runtime, workload, workers):
    """Returns the beginning of the runtime's command line, or None if it is not built."""
    if runtime == "java":
        java = shutil.which("java")
        classes = os.path.join(bin_dir, "java")
        if not java or not os.path.exists(os.path.join(classes, "Algo.class")):
            return None
        # In for-tiny the caller is outside the pool. It works too and counts as a worker.
        common = workers - 1 if workload == "for-tiny" else workers
        size = f"-Djava.util.concurrent.ForkJoinPool.common.parallelism={common}"
        return [java, size, "-cp", classes, "Algo"]
    program = os.path.join(os.path.abspath(bin_dir), "algo-" + runtime)
    return [program] if os.access(program, os.X_OK) else None


def measure(args, runtime, workload, workers):
    """Runs one process and returns its result lines, each as a list of words."""
    line = command(args.bin, runtime, workload, workers)
    line += [workload, str(workers), str(args.reps)] + (["--quick"] if args.quick else [])
    return results(line, args.limit, right=9)


class Session:
    """All measurements of one run of this program."""

    def __init__(self, args, runtimes):
        self.args = args
        self.runtimes = runtimes
        self.series = {}        # (workload, workers, runtime, variant) -> Series
        self.left_out = {}      # (workload, workers, runtime) -> why it was not measured
        self.fatal = False

    def run(self, workload, workers):
        for n in range(self.args.rounds):
            turn = n % len(self.runtimes)
            for runtime in self.runtimes[turn:] + self.runtimes[:turn]:
                if (workload, workers, runtime) in self.left_out:
                    continue
                progress(f"{workload}: {runtime}, workers: {workers}, "
                         f"round {n + 1} of {self.args.rounds}")
                try:
                    self.add(workload, workers, runtime)
                except Failure as f:
                    self.left_out[workload, workers, runtime] = str(f)
                    self.fatal |= f.fatal

    def add(self, workload, workers, runtime):
        times = {}
        for r in measure(self.args, runtime, workload, workers):
            times.setdefault(r[3], []).append(float(r[5]))
            key = (workload, workers, runtime, r[3])
            series = self.series.setdefault(key, Series(int(r[7]), int(r[8])))
            series.cpu = min(series.cpu, float(r[6]))
        for variant, seconds in times.items():
            self.series[workload, workers, runtime, variant].rounds.append(min(seconds))

    def rows(self, workload, workers):
        """Returns the keys of the measured variants, in the order of RUNTIMES."""
        found = [k for k in self.series if k[:2] == (workload, workers)]
        return sorted(found, key=lambda k: RUNTIMES.index(k[2]))

    def least(self, workload, workers, which):
        """Returns the fastest variant of the runtimes for which which(name) is true, or None."""
        rows = [k for k in self.rows(workload, workers) if which(k[2])]
        return min(rows, key=lambda k: self.series[k].best) if rows else None


def seconds(value):
    """Returns the time as text: rounded to microseconds, or to nanoseconds below 1 ms."""
    return f"{value:.6f}" if value >= 0.001 else f"{value:.9f}"


def ratio(session, key, other):
    if key is None or other is None:
        return "-"
    return f"{session.series[key].best / session.series[other].best:.2f}"


def print_table(session, workload, workers):
    ours = session.least(workload, workers, lambda r: r == OURS)
    serial = session.least(workload, workers, lambda r: r in SERIAL)
    lines = [["runtime", "variant", "seconds", "ns/item", "GB/s", "vs serial", "vs fj", "speedup",
              "cpu s", "cpu vs fj", "spread"]]
    for key in session.rows(workload, workers):
        s = session.series[key]
        speed = f"{s.items * s.bytes / s.best * 1e-9:.1f}" if s.bytes else "-"
        alone = (workload, 1) + key[2:]
        lines.append([key[2], key[3], seconds(s.best), f"{s.best * 1e9 / s.items:.2f}", speed,
                      ratio(session, key, serial), ratio(session, key, ours),
                      ratio(session, alone if alone in session.series else None, key),
                      seconds(s.cpu), f"{s.cpu / session.series[ours].cpu:.2f}" if ours else "-",
                      f"{s.spread * 100:.0f}%"])
    print(f"\n{workload}, {workers} worker" + ("s" if workers > 1 else ""))
    print_columns(lines, 2)
    for (name, number, runtime), why in session.left_out.items():
        if (name, number) == (workload, workers) and why != "unsupported":
            print(f"  left out, {why}: {runtime}")


def print_summary(session, workloads):
    """Compares, for each workload, this library's best variant with the best of the others."""
    for workers in session.args.workers:
        lines = [["workload", "fj", "seconds", "vs serial", "best peer", "its seconds", "fj/peer",
                  "least cpu", "fj/that"]]
        for w in workloads:
            ours = session.least(w, workers, lambda r: r == OURS)
            serial = session.least(w, workers, lambda r: r in SERIAL)
            peer = session.least(w, workers, lambda r: r not in SERIAL + (OURS,))
            if ours is None:
                continue
            mine = min((s.cpu, k[3]) for k, s in session.series.items()
                       if k[:3] == (w, workers, OURS))
            least = min(((s.cpu, " ".join(k[2:])) for k, s in session.series.items()
                         if k[:2] == (w, workers) and k[2] not in SERIAL + (OURS,)), default=None)
            lines.append([w, ours[3], seconds(session.series[ours].best),
                          ratio(session, ours, serial), " ".join(peer[2:]) if peer else "-",
                          seconds(session.series[peer].best) if peer else "-",
                          ratio(session, ours, peer), least[1] if least else "-",
                          f"{mine[0] / least[0]:.2f}" if least else "-"])
        print(f"\nThe best of each, {workers} worker" + ("s" if workers > 1 else ""))
        print_columns(lines, 2)


def records(session):
    """Returns the measurements as the list for the JSON file."""
    out = []
    for (workload, workers, runtime, variant), s in session.series.items():
        out.append({"workload": workload, "runtime": runtime, "variant": variant,
                    "workers": workers, "seconds": s.best, "cpu_seconds": s.cpu, "items": s.items,
                    "bytes_per_item": s.bytes, "rounds": len(s.rounds), "spread": s.spread,
                    "quick": session.args.quick})
    return out


def parse_args():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("workload", nargs="*", metavar="WORKLOAD",
                   help="default: all; a name that ends with a dash selects all workloads that "
                   "begin with it")
    p.add_argument("--bin", metavar="DIR", default="build/release/bench/bin",
                   help="folder of the benchmark programs")
    p.add_argument("--quick", action="store_true",
                   help="small sizes, to check that everything works")
    p.add_argument("--workers", metavar="N,...", default=[1, 2],
                   type=lambda s: [int(w) for w in s.split(",")], help="default: 1,2")
    p.add_argument("--runtimes", metavar="A,...", default=RUNTIMES,
                   type=lambda s: names(s, RUNTIMES, "runtime"), help="default: all")
    p.add_argument("--rounds", metavar="N", type=int, help="default: 5, or 2 with --quick")
    p.add_argument("--reps", metavar="N", type=int, default=3,
                   help="runs of each variant in a process (default: 3)")
    p.add_argument("--limit", metavar="SECONDS", type=float, default=120,
                   help="stop a process that takes longer (default: 120)")
    p.add_argument("--json", metavar="FILE", help="also write the results to a file")
    p.add_argument("--list", action="store_true", help="list workloads and runtimes")
    args = p.parse_args()

    if args.rounds is None:
        args.rounds = 2 if args.quick else 5
    if args.rounds < 1 or args.reps < 1 or any(w < 1 for w in args.workers):
        p.error("--rounds, --reps and --workers: each number has to be at least 1")
    chosen = []
    for name in args.workload:
        found = [w for w in WORKLOADS if w == name or (name.endswith("-") and w.startswith(name))]
        if not found:
            p.error(f"unknown workload: {name}")
        chosen += found
    args.workload = [w for w in WORKLOADS if w in chosen] or WORKLOADS
    return args


def main():
    args = parse_args()
    if args.list:
        print("workloads:", " ".join(WORKLOADS))
        print("runtimes: ", " ".join(RUNTIMES))
        return 0

    runtimes = []
    for runtime in args.runtimes:
        if command(args.bin, runtime, "", 1):
            runtimes.append(runtime)
        else:
            print(f"not built, skipped: {runtime}")
    if not runtimes:
        return 1

    session = Session(args, runtimes)
    for workload in args.workload:
        for workers in args.workers:
            session.run(workload, workers)
            progress("")
            print_table(session, workload, workers)
    print_summary(session, args.workload)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(records(session), f, indent=1)
            f.write("\n")
    return 1 if session.fatal else 0


if __name__ == "__main__":
    sys.exit(main())
