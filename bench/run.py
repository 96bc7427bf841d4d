#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the benchmark programs in turn and compares them.

There are several rounds for each workload and number of workers. In each round every runtime runs
once, in a process of its own, so that a disturbance of the machine affects all runtimes alike. The
best time counts. README.md describes the workloads and the tables.
"""

import argparse
import json
import os
import shutil
import sys

from beside import Failure, names, print_columns, progress, results

WORKLOADS = ["fib", "integrate", "nqueens", "uts-geo", "uts-bin", "skynet", "fan", "dd",
             "submit-1", "submit-2", "wake", "trip-200us", "trip-5ms", "trip-100ms",
             "first", "create", "idle", "oversub",
             "fib-future", "fib-completer", "sum-completer",
             "group-fan", "group-fib", "each-uts", "each-array"]
RUNTIMES = ["serial", "bare", "fj", "fj-typed", "fj-join", "fj-get", "fj-help", "tbb", "tbb-invoke",
            "libgomp", "libomp", "java"]
ONE_THREAD = {"serial", "bare"}     # the number of workers has no effect on these runtimes
ROUND_TRIPS = {"trip-200us", "trip-5ms", "trip-100ms", "first", "create"}
ROUNDS = ROUND_TRIPS | {"wake"}     # the result is the median of many rounds

REFERENCE = "fj-typed"
OVERSUB_WORKERS = 8
OVERSUB_BASE = "oversub-base"   # oversub is compared with this: fib, measured in the same rounds,
OVERSUB_BASE_WORKERS = 2        # with this number of workers
ONE_REP = {"idle", "trip-5ms", "trip-100ms"}    # not repeated within a process
MANY_REPS_BELOW = 0.5           # seconds; shorter runs are repeated within their process
MANY_REPS = 3


class Run:
    """One timed run of a program: a result line."""

    def __init__(self, words):
        more = dict(word.split("=") for word in words[7:])
        self.seconds = float(words[4])
        self.tasks = int(words[5])
        self.p99 = float(more["p99"]) if "p99" in more else None
        self.peak = int(more["peak"]) if "peak" in more else None


class Series:
    """The times of one runtime for one workload and number of workers."""

    def __init__(self):
        self.rounds = []        # the best time of each round
        self.tasks = 0
        self.p99 = None         # the lowest 99th percentile, in seconds
        self.peak = None        # the largest peak memory, in bytes

    def add(self, runs):
        self.rounds.append(min(r.seconds for r in runs))
        self.tasks = runs[0].tasks
        self.p99 = min((x for x in [self.p99] + [r.p99 for r in runs] if x is not None),
                       default=None)
        self.peak = max((x for x in [self.peak] + [r.peak for r in runs] if x is not None),
                        default=None)

    @property
    def best(self):
        return min(self.rounds)

    @property
    def spread(self):
        return max(self.rounds) / self.best - 1 if self.best > 0 else 0.0

    @property
    def ns_per_task(self):
        return self.best * 1e9 / self.tasks


def command(bin_dir, runtime):
    """Returns the beginning of the runtime's command line, or None if it is not built."""
    if runtime == "java":
        java = shutil.which("java")
        classes = os.path.join(bin_dir, "java")
        built = os.path.exists(os.path.join(classes, "Bench.class"))
        return [java, "-cp", classes, "Bench"] if java and built else None
    program = os.path.join(os.path.abspath(bin_dir), runtime)
    return [program] if os.access(program, os.X_OK) else None


def measure(args, program, workload, workers, reps):
    """Runs one process. Returns its timed runs."""
    line = program + [workload, str(workers), str(reps)] + (["--quick"] if args.quick else [])
    return [Run(words) for words in results(line, args.limit, right=6, count=reps)]


class Session:
    """All measurements of one run of this program."""

    def __init__(self, args, programs):
        self.args = args
        self.programs = programs
        self.series = {}        # (workload, runtime, workers) -> Series
        self.left_out = {}      # the same key -> why it was not measured
        self.fatal = False

    def plan(self, workload):
        """Returns groups of (workload, runtime, workers). The members of a group run in turn."""
        if workload == "oversub":
            parallel = [r for r in self.programs if r not in ONE_THREAD]
            return [[key for r in parallel for key in
                     (("oversub", r, OVERSUB_WORKERS), (OVERSUB_BASE, r, OVERSUB_BASE_WORKERS))]]
        groups = []
        for i, workers in enumerate(self.args.workers):
            groups.append([(workload, r, 1 if r in ONE_THREAD else workers)
                           for r in self.programs if r not in ONE_THREAD or i == 0])
        return groups

    def run(self, workload):
        for group in self.plan(workload):
            for n in range(self.args.rounds):
                turn = n % max(len(group), 1)
                for key in group[turn:] + group[:turn]:
                    self.run_one(key, n)

    def run_one(self, key, n):
        name, runtime, workers = key
        if name == OVERSUB_BASE:
            name = "fib"
        if key in self.left_out:
            return
        series = self.series.setdefault(key, Series())
        progress(f"{name}: {runtime}, workers: {workers}, round {n + 1} of {self.args.rounds}")
        reps = 1
        if name not in ONE_REP and series.rounds and series.best < MANY_REPS_BELOW:
            reps = MANY_REPS
        try:
            series.add(measure(self.args, self.programs[runtime], name, workers, reps))
        except Failure as f:
            self.left_out[key] = str(f)
            self.fatal |= f.fatal
            del self.series[key]

    def rows(self, workload):
        """Returns the keys of the workload's series, in the order of the runtimes."""
        found = [k for k in self.series if k[0] == workload]
        return sorted(found, key=lambda k: (RUNTIMES.index(k[1]), k[2]))

    def best(self, workload, runtime, workers):
        series = self.series.get((workload, runtime, workers))
        return series.best if series else None

    def reasons(self, workload):
        """Returns the runtimes that were not measured, by reason: reason -> names."""
        out = {}
        for (name, runtime, workers), why in self.left_out.items():
            if name != workload:
                continue
            if why != "unsupported":
                runtime += f" with {workers} worker" + ("s" if workers > 1 else "")
            if runtime not in out.setdefault(why, []):
                out[why].append(runtime)
        return out


def ratio(a, b):
    return f"{a / b:.2f}" if a is not None and b else "-"


def baseline(workload):
    """Returns the runtime that all others are compared with."""
    return "bare" if workload in ROUND_TRIPS else "serial"


def own_cell(session, key):
    """Returns the cell of the column that depends most on the workload; see own_head()."""
    workload, runtime, workers = key
    series = session.series[key]
    if workload in ROUNDS:
        return f"{series.p99:.7f}"
    if workload == "oversub":
        return ratio(series.best, session.best(OVERSUB_BASE, runtime, OVERSUB_BASE_WORKERS))
    if workload == "idle":
        return "-"
    return ratio(session.best(workload, runtime, 1), series.best)


def own_head(workload):
    if workload in ROUNDS:
        return "p99"
    return f"vs {OVERSUB_BASE_WORKERS} workers" if workload == "oversub" else "speedup"


def table_row(session, key):
    workload, runtime, workers = key
    series = session.series[key]
    best = series.best
    base = session.best("fib" if workload == "oversub" else workload, baseline(workload), 1)
    row = [runtime, str(workers), f"{best:.7f}",
           "-" if workload == "idle" else f"{series.ns_per_task:.2f}", ratio(best, base),
           ratio(best, session.best(workload, REFERENCE, workers)), own_cell(session, key),
           f"{series.spread * 100:.0f}%"]
    return row + [f"{series.peak / 1e6:.1f}"] if series.peak is not None else row


def print_table(session, workload):
    keys = session.rows(workload)
    head = ["runtime", "workers", "seconds", "ns/task", f"vs {baseline(workload)}",
            f"vs {REFERENCE}", own_head(workload), "spread"]
    if any(session.series[key].peak is not None for key in keys):
        head.append("peak MB")
    lines = [row + ["-"] * (len(head) - len(row)) for row in
             [head] + [table_row(session, key) for key in keys]]
    what = " (processor seconds)" if workload == "idle" else ""
    if workload in ROUNDS:
        what = " (median seconds)"
    print(f"\n{workload}{what}")
    print_columns(lines)
    for why, what in session.reasons(workload).items():
        print(f"  left out, {why}: " + ", ".join(what))
    sys.stdout.flush()


def records(session, workloads):
    """Returns the measurements as the list for the JSON file."""
    out = []
    for key in [key for w in workloads for key in session.rows(w)]:
        workload, runtime, workers = key
        s = session.series[key]
        record = {"workload": workload, "runtime": runtime, "workers": workers,
                  "seconds": s.best, "ns_per_task": s.ns_per_task, "tasks": s.tasks,
                  "rounds": len(s.rounds), "spread": s.spread, "quick": session.args.quick}
        if s.p99 is not None:
            record["p99"] = s.p99
        if s.peak is not None:
            record["peak_bytes"] = s.peak
        if workload == "oversub":
            record["base_workers"] = OVERSUB_BASE_WORKERS
            record["base_seconds"] = session.best(OVERSUB_BASE, runtime, OVERSUB_BASE_WORKERS)
        out.append(record)
    return out


def parse_args():
    p = argparse.ArgumentParser(description="Runs the benchmark programs and compares them.")
    p.add_argument("workload", nargs="*", metavar="WORKLOAD", help="default: all")
    p.add_argument("--bin", metavar="DIR", help="folder of the benchmark programs")
    p.add_argument("--quick", action="store_true",
                   help="small sizes, to check that everything works")
    p.add_argument("--workers", metavar="N,...", default=[1, 2],
                   type=lambda s: [int(w) for w in s.split(",")], help="default: 1,2")
    p.add_argument("--runtimes", metavar="A,...", default=RUNTIMES,
                   type=lambda s: names(s, RUNTIMES, "runtime"), help="default: all")
    p.add_argument("--rounds", metavar="N", type=int,
                   help="default and minimum: 5, or 3 with --quick")
    p.add_argument("--limit", metavar="SECONDS", type=float, default=300,
                   help="stop a process that takes longer (default: 300)")
    p.add_argument("--json", metavar="FILE", help="also write the results to a file")
    p.add_argument("--list", action="store_true", help="list workloads and runtimes")
    args = p.parse_args()

    least = 3 if args.quick else 5
    if args.rounds is None:
        args.rounds = least
    if args.rounds < least:
        p.error(f"--rounds: at least {least}")
    if any(w < 1 for w in args.workers):
        p.error("--workers: each number has to be at least 1")
    for name in args.workload:
        if name not in WORKLOADS:
            p.error(f"unknown workload: {name}")
    if not args.list and args.bin is None:
        p.error("--bin DIR is missing")
    return args


def main():
    args = parse_args()
    if args.list:
        print("workloads:", " ".join(WORKLOADS))
        print("runtimes: ", " ".join(RUNTIMES))
        return 0

    programs = {}
    for runtime in RUNTIMES:
        if runtime not in args.runtimes:
            continue
        program = command(args.bin, runtime)
        if program:
            programs[runtime] = program
        else:
            print(f"not built, skipped: {runtime}")

    workloads = [w for w in WORKLOADS if w in args.workload] or WORKLOADS
    session = Session(args, programs)
    for workload in workloads:
        session.run(workload)
        progress("")
        print_table(session, workload)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(records(session, workloads), f, indent=2)
            f.write("\n")
    return 1 if session.fatal else 0


if __name__ == "__main__":
    sys.exit(main())
