# SPDX-License-Identifier: MIT
"""Builds programs for the simulator; see src/plat/sim/sim.h.

The library and the programs are compiled with -fsanitize=thread, so that the compiler inserts a
call at each access to memory. They are linked with the simulator, which defines the called
functions. Tunables are small, so that rare paths are taken often, and every counter starts just
before it wraps.
"""

import concurrent.futures
import glob
import os
import subprocess

# Macros of the scenarios.
NUMBERS = {
    "FJI_CHECKED": 1, "FJI_FAULTS": 1, "FJI_SIM": 1, "FJI_WRAP_TEST": 1, "FJI_NO_ASM": 1,
    "FJI_CLOSE_AFTER": 3, "FJI_SPLIT_MIN": 2, "FJI_SHARE_SPINS": 2, "FJI_SPIN_NS": 200, "FJI_JOIN_SPIN_NS": 200,
    "FJI_FENCE_GAP_NS": 300, "FJI_QUEUE_FIRST": 3, "FJI_SUBMISSIONS_FIRST": 2,
    "FJI_QUEUE_RESERVED": 12, "FJI_SUBMISSIONS_RESERVED": "(1u<<20)", "FJI_QUEUE_KEPT": 4,
    "FJI_SUBMISSIONS_KEPT": 4, "FJI_SUBMISSION_INTERVAL": 3, "FJI_UNTHROTTLED_WORKERS": 2,
    "FJI_SEARCH_MIN": 1, "FJI_SEARCH_MAX": 1, "FJI_INBOX_CELLS": 1, "FJI_INBOX_BATCH": 2,
    "FJI_AGING_INTERVAL": 5, "FJI_LANE_FIRST": 2, "FJI_LANE_ACTIONS": 3, "FJI_LANE_WINDOW": 2,
}

# Macros of measurements (test/sim/scale): the tunables are those of the shipped library.
SHIPPED = {"FJI_SIM": 1, "FJI_NO_ASM": 1}

# Options that make the compiler report accesses to memory.
SEEN = ["-fsanitize=thread", "-U__SANITIZE_THREAD__",
        "--param", "tsan-instrument-func-entry-exit=0"]

# Modules that use src/algo/, which the simulator does not have. They have no scenarios.
ON_ALGORITHMS = ["src/compose/for_each.c"]

# The programs in test/sim/ that contain no scenarios.
WITHOUT_SCENARIOS = ["frame", "scale"]


def scenarios():
    """Returns the names of the programs with scenarios: test/sim/NAME.c."""
    here = os.path.dirname(os.path.abspath(__file__))
    names = [os.path.basename(p)[:-2] for p in glob.glob(os.path.join(here, "*.c"))]
    return sorted(set(names) - set(WITHOUT_SCENARIOS))


class Failed(Exception):
    """A build step failed, or a mutant does not fit the sources."""


class Build:
    """Builds objects and programs of the tree `root` in the folder `out`. `numbers` are the macros;
    `frame` says whether the test framework of test/sim/frame.c belongs to the library."""

    def __init__(self, root, out, jobs=2, numbers=None, frame=True):
        self.root, self.out, self.jobs, self.frame = root, out, jobs, frame
        self.numbers = NUMBERS if numbers is None else numbers
        os.makedirs(out, exist_ok=True)

    def flags(self):
        words = ["-std=gnu11", "-g", "-fno-omit-frame-pointer"]
        words += [f"-D{name}={value}" for name, value in self.numbers.items()]
        for folder in ("include", "src", "test", "test/sim", "test/conformance"):
            words.append("-I" + os.path.join(self.root, folder))
        return words

    def compile(self, source, seen):
        """Compiles a source and returns the path of the object. If `seen`, the simulator sees its
        accesses to memory."""
        name = source.replace("/", "_").rsplit(".", 1)[0] + ".o"
        target = os.path.join(self.out, name)
        command = ["gcc", *self.flags()]
        if seen:
            command += ["-O1", *SEEN, "-include", os.path.join(self.root, "src/plat/sim/posix.h")]
        else:
            command += ["-O3"]
        command += ["-c", os.path.join(self.root, source), "-o", target]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Failed(" ".join(command) + "\n" + done.stdout)
        return target

    def syntax_errors(self, source, text):
        """Returns what the compiler says about `text` in place of a source, or "" if it is valid."""
        command = ["gcc", *self.flags(), "-I" + os.path.join(self.root, os.path.dirname(source)),
                   "-include", os.path.join(self.root, "src/plat/sim/posix.h"),
                   "-fsyntax-only", "-x", "c", "-"]
        done = subprocess.run(command, input=text, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return done.stdout if done.returncode != 0 else ""

    def library_sources(self):
        """Returns (source, seen) of all sources except the programs."""
        def of(pattern):
            return sorted(os.path.relpath(p, self.root)
                          for p in glob.glob(os.path.join(self.root, pattern)))
        layers = ["queue", "task", "sched", "pool", "tier", "future", "compose"]
        seen = [s for layer in layers for s in of(f"src/{layer}/*.c")]
        seen = [s for s in seen if s not in ON_ALGORITHMS]
        seen += ["src/plat/lock.c", "src/plat/blocking.c", "src/plat/memory.c"]
        plain = of("src/plat/sim/*.c") + (["test/sim/frame.c"] if self.frame else [])
        return [(s, True) for s in seen] + [(s, False) for s in plain]

    def library(self):
        """Compiles the library and the simulator. Returns the paths of the objects."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda s: self.compile(*s), self.library_sources()))

    def program(self, source, objects, again=True):
        """Builds the test program `source` and returns its path. If not `again`, its object file
        exists and is only linked."""
        main = os.path.join(self.out, source.replace("/", "_").rsplit(".", 1)[0] + ".o")
        if again:
            main = self.compile(source, True)
        name = os.path.join(self.out, source.replace("/", "_").rsplit(".", 1)[0])
        done = subprocess.run(["gcc", "-no-pie", *objects, main, "-lpthread", "-o", name],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Failed(done.stdout)
        return name

    def programs(self, sources, objects, again=True):
        """Builds several programs as program() does. Returns their paths."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda s: self.program(s, objects, again), sources))
