# SPDX-License-Identifier: MIT
"""Functions that timers.py, loops.py and lanes.py share: run programs in turn, and print the best
figure of several rounds. A program prints lines of the form `result RUNTIME NAME VALUE`."""

import argparse
import json
import subprocess


def parser(text):
    made = argparse.ArgumentParser(description=text)
    made.add_argument("--bin", default="build/release/bench/bin", metavar="DIR",
                      help="folder of the benchmark programs")
    made.add_argument("--rounds", type=int, default=5, metavar="N", help="default: 5")
    made.add_argument("--json", metavar="FILE", help="also write the results to a file")
    return made


def figures(program):
    """Runs a program and yields its figures; none if the program does not exist."""
    try:
        done = subprocess.run(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=300, check=False)
    except OSError:
        return
    for line in done.stdout.splitlines():
        word = line.split()
        if len(word) == 4 and word[0] == "result":
            yield word[1], word[2], float(word[3])


def run(programs, args):
    """Runs all programs args.rounds times, in turn, and prints the smallest value of each figure."""
    best = {}
    for _ in range(args.rounds):
        for program in programs:
            for runtime, name, value in figures(program):
                best[name, runtime] = min(best.get((name, runtime), value), value)
    for name in dict.fromkeys(name for name, _ in best):
        row = "   ".join(f"{r} {best[name, r]:.1f}" for n, r in best if n == name)
        print(f"{name:20} {row}")
    if args.json:
        rows = [{"name": n, "runtime": r, "value": v} for (n, r), v in best.items()]
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
