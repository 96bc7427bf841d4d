#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the timer benchmarks in turn and prints the best figure of several rounds."""

import argparse
import json
import os
import subprocess

PROGRAMS = [
    ("fj", ["timers", "fj", "cancel"]),
    ("uv", ["timers", "uv", "cancel"]),
    ("java", ["java", "-cp", "BIN/java", "Timers"]),
    ("fj", ["timers", "fj", "late"]),
    ("timerfd", ["timers", "timerfd", "late"]),
]


def run(command, folder):
    program = [c.replace("BIN", folder) for c in command]
    if program[0] == "timers":
        program[0] = os.path.join(folder, "timers")
    try:
        done = subprocess.run(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=300, check=False)
    except OSError:
        return
    for line in done.stdout.splitlines():
        word = line.split()
        if len(word) == 4 and word[0] == "result":
            yield word[1], word[2], float(word[3])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bench/bin", metavar="DIR",
                        help="folder of the benchmark programs")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: 5")
    parser.add_argument("--json", metavar="FILE", help="also write the results to a file")
    args = parser.parse_args()
    best = {}
    for _ in range(args.rounds):
        for _, command in PROGRAMS:
            for runtime, name, value in run(command, args.bin):
                best[name, runtime] = min(best.get((name, runtime), value), value)
    names = list(dict.fromkeys(name for name, _ in best))
    for name in names:
        row = "   ".join(f"{r} {best[name, r]:.1f}" for n, r in best if n == name)
        print(f"{name:20} {row}")
    if args.json:
        rows = [{"name": n, "runtime": r, "value": v} for (n, r), v in best.items()]
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
