#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the benchmarks of lanes in turn and prints the best figure of several rounds."""

import argparse
import os
import subprocess

RUNTIMES = ["fj", "execute", "glib", "uv"]


def run(program):
    done = subprocess.run(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
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
    parser.add_argument("--beside", action="append", default=[], metavar="PROGRAM",
                        help="another program that prints figures in the same form")
    args = parser.parse_args()
    programs = [[os.path.join(args.bin, "lanes"), r] for r in RUNTIMES]
    programs += [[p] for p in args.beside]
    best = {}
    for _ in range(args.rounds):
        for program in programs:
            for runtime, name, value in run(program):
                best[name, runtime] = min(best.get((name, runtime), value), value)
    for name in dict.fromkeys(name for name, _ in best):
        row = "   ".join(f"{r} {best[name, r]:.1f}" for n, r in best if n == name)
        print(f"{name:12} {row}")


if __name__ == "__main__":
    main()
