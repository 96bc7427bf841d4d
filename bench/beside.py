# SPDX-License-Identifier: MIT
"""Functions that run.py and algo.py share: run the program of a runtime, and print tables."""

import argparse
import subprocess
import sys

EXIT_UNSUPPORTED = 3


class Failure(Exception):
    """A run without a result. `fatal` says that a program is broken."""

    def __init__(self, text, fatal):
        super().__init__(text)
        self.fatal = fatal


def results(line, limit, right, count=None):
    """Runs one process and returns its result lines, each as a list of words. Word number `right`
    is "1" if the answer was right. `count` is the expected number of lines, or None."""
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise Failure(f"took more than {limit:g} s", fatal=False) from None
    if done.returncode == EXIT_UNSUPPORTED:
        raise Failure("unsupported", fatal=False)
    found = [s.split() for s in done.stdout.splitlines() if s.startswith("result ")]
    if any(r[right] != "1" for r in found):
        raise Failure("WRONG ANSWER", fatal=True)
    if done.returncode != 0 or not found or count not in (None, len(found)):
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise Failure(f"failed with status {done.returncode}: {last[0]}", fatal=True)
    return found


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text)
        sys.stderr.flush()


def print_columns(lines, left=1):
    """Prints a table. The first `left` columns are aligned left, the others right."""
    widths = [max(len(cell) for cell in column) for column in zip(*lines)]
    for row in lines:
        cells = [c.ljust(w) if i < left else c.rjust(w)
                 for i, (c, w) in enumerate(zip(row, widths))]
        print("  " + "  ".join(cells).rstrip())
    sys.stdout.flush()


def names(text, known, what):
    """Splits a command-line argument at its commas and checks that all names are known."""
    chosen = text.split(",")
    for name in chosen:
        if name not in known:
            raise argparse.ArgumentTypeError(f"unknown {what}: {name}")
    return chosen
