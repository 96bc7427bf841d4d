# SPDX-License-Identifier: MIT
"""How programs are built for the simulator: see src/plat/sim/sim.h.

The library and the programs are compiled with the calls of -fsanitize=thread and linked with the
simulator, which answers them. Numbers that decide how often the rare paths are taken are made
small, and every count begins just before it wraps.
"""

import concurrent.futures
import glob
import os
import subprocess

NUMBERS = {
    "FJI_CHECKED": 1, "FJI_FAULTS": 1, "FJI_SIM": 1, "FJI_WRAP_TEST": 1, "FJI_NO_ASM": 1,
    "FJI_CLOSE_AFTER": 3, "FJI_SHARE_SPINS": 2, "FJI_SPIN_NS": 200, "FJI_JOIN_SPIN_NS": 200,
    "FJI_FENCE_GAP_NS": 300, "FJI_QUEUE_FIRST": 3, "FJI_SUBMISSIONS_FIRST": 2, "FJI_QUEUE_RESERVED": 12, "FJI_SUBMISSIONS_RESERVED": "(1u<<20)", "FJI_QUEUE_KEPT": 4, "FJI_SUBMISSIONS_KEPT": 4, "FJI_SUBMISSION_INTERVAL": 3,
    "FJI_UNTHROTTLED_WORKERS": 2, "FJI_SEARCH_MIN": 1, "FJI_SEARCH_MAX": 1,
}
SEEN = ["-fsanitize=thread", "-U__SANITIZE_THREAD__",
        "--param", "tsan-instrument-func-entry-exit=0"]


# As it is shipped, for what is counted and not looked for.
SHIPPED = {"FJI_SIM": 1, "FJI_NO_ASM": 1}


# The programs of scenarios, test/sim/NAME.c.
SCENARIOS = ["queue", "pool", "idle", "block", "quiesce", "shutdown", "future", "completer", "outcome",
             "timer", "limit", "common", "help", "ends", "local"]


class Failed(Exception):
    pass


class Build:
    """Objects and programs of the tree `root`, in the folder `out`."""

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
        """One source to an object; `seen`: the simulator sees its accesses."""
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

    def library_sources(self):
        """(source, seen) of everything but the programs."""
        def of(pattern):
            return sorted(os.path.relpath(p, self.root)
                          for p in glob.glob(os.path.join(self.root, pattern)))
        layers = ["queue", "task", "sched", "pool", "tier", "future"]
        seen = [s for layer in layers for s in of(f"src/{layer}/*.c")]
        seen += ["src/plat/lock.c", "src/plat/blocking.c"]
        plain = of("src/plat/sim/*.c") + (["test/sim/frame.c"] if self.frame else [])
        return [(s, True) for s in seen] + [(s, False) for s in plain]

    def library(self):
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda s: self.compile(*s), self.library_sources()))

    def program(self, source, objects, again=True):
        """Links the test program `source` with the library's objects; not `again`: its own object
        is there and as it was."""
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
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda s: self.program(s, objects, again), sources))
