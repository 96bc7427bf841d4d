#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the event loop benchmarks in turn and prints the best figure of several rounds."""

import argparse
import json
import os
import subprocess

RUNTIMES = ["fj", "fj-future", "fj-uv", "fj-async", "uv"]
PARTS = ["trip", "100000", "1000000"]


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          timeout=300, check=False)
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
    parser.add_argument("part", nargs="*", default=PARTS, help=f"default: {' '.join(PARTS)}")
    args = parser.parse_args()
    best = {}
    program = os.path.join(args.bin, "loops")
    for _ in range(args.rounds):
        for part in args.part:
            for workers in ("1", "2"):
                for name in RUNTIMES:
                    for runtime, figure, value in run([program, name, workers, part]):
                        best[figure, runtime] = min(best.get((figure, runtime), value), value)
    for figure in dict.fromkeys(figure for figure, _ in best):
        row = "   ".join(f"{r} {best[figure, r]:.1f}" for f, r in best if f == figure)
        print(f"{figure:20} {row}")
    if args.json:
        rows = [{"name": n, "runtime": r, "value": v} for (n, r), v in best.items()]
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
