#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the event loop benchmarks in turn and prints the best figure of several rounds."""

import os

import rounds

RUNTIMES = ["fj", "fj-future", "fj-uv", "fj-async", "uv"]
PARTS = ["trip", "100000", "1000000"]


def main():
    parser = rounds.parser(__doc__)
    parser.add_argument("part", nargs="*", default=PARTS, help=f"default: {' '.join(PARTS)}")
    args = parser.parse_args()
    program = os.path.join(args.bin, "loops")
    rounds.run([[program, runtime, workers, part]
                for part in args.part for workers in ("1", "2") for runtime in RUNTIMES], args)


if __name__ == "__main__":
    main()
