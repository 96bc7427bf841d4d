#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the timer benchmarks in turn and prints the best figure of several rounds."""

import os

import rounds


def main():
    args = rounds.parser(__doc__).parse_args()
    timers = os.path.join(args.bin, "timers")
    rounds.run([[timers, "fj", "cancel"],
                [timers, "uv", "cancel"],
                ["java", "-cp", os.path.join(args.bin, "java"), "Timers"],
                [timers, "fj", "late"],
                [timers, "timerfd", "late"]], args)


if __name__ == "__main__":
    main()
