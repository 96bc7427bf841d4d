#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the benchmarks of lanes in turn and prints the best figure of several rounds."""

import os

import rounds

RUNTIMES = ["fj", "execute", "glib", "uv"]


def main():
    parser = rounds.parser(__doc__)
    parser.add_argument("--beside", action="append", default=[], metavar="PROGRAM",
                        help="another program that prints figures in the same form")
    args = parser.parse_args()
    programs = [[os.path.join(args.bin, "lanes"), r] for r in RUNTIMES]
    rounds.run(programs + [[p] for p in args.beside], args)


if __name__ == "__main__":
    main()
