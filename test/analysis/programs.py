# SPDX-License-Identifier: MIT
"""Functions that the scripts in this folder share: they run test programs, two at a time.

A program is named FOLDER/NAME, and a test in it FOLDER/NAME/TEST. Results are printed in the format
of test/lines.py.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test"))
import recording  # noqa: E402

JOBS = 2
RESULT = re.compile(r"(ok|not ok|skip) (\S+?)(:.*| \(.*|)$")
SUMMARY = re.compile(r"# \S+: \d+ passed, \d+ failed, \d+ skipped")


def parser(text):
    """Returns a parser for the arguments that all scripts take. `text` is the help text."""
    p = argparse.ArgumentParser(description=text,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--list", action="store_true", help="print the names of the tests")
    recording.option(p)
    p.add_argument("filter", nargs="*", metavar="FILTER",
                   help="only tests whose names contain one of these")
    return p


def sources(folders):
    """Yields the names of the test programs in these folders of test/."""
    for folder in folders:
        for source in sorted(glob.glob(os.path.join(ROOT, "test", folder, "*.c"))):
            yield f"{folder}/{os.path.basename(source)[:-2]}"


def say_command(command):
    """Runs a build step. If it fails, prints its output and ends the script."""
    done = subprocess.run(command, cwd=ROOT, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        print(done.stdout)
        print(f"not ok {' '.join(command[:3])}: status {done.returncode}", flush=True)
        sys.exit(1)


def build(preset):
    """Configures and builds a preset. Returns its folder."""
    say_command(["cmake", "--preset", preset])
    say_command(["cmake", "--build", "--preset", preset, "--parallel", str(JOBS)])
    return os.path.join(ROOT, "build", preset)


class Results:
    """Counts the results of tests and prints them. If `quiet`, prints no test that passed."""

    def __init__(self, name, args, quiet=False):
        self.name = name
        self.args = args
        self.quiet = quiet
        self.counts = {"ok": 0, "not ok": 0, "skip": 0}
        self.lock = threading.Lock()
        self.record = recording.Record(args.record)

    def chosen(self, test):
        full = f"{self.name}/{test}"
        return not self.args.filter or any(f in full for f in self.args.filter)

    def tell(self, what, text, details=()):
        with self.lock:
            self.counts[what] += 1
            if self.quiet and what == "ok":
                return
            for line in details:
                print(f"# {line}")
            print(f"{what} {text}", flush=True)

    def run(self, label, command, env=None):
        """Runs one test program. Its tests are printed as LABEL/TEST."""
        done = subprocess.run(command, cwd=ROOT, env=dict(os.environ, **(env or {})), text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        told, failed, summary = [], 0, False
        for line in done.stdout.splitlines():
            result = RESULT.match(line)
            summary = summary or bool(SUMMARY.match(line))
            if not result:
                told.append(line)
                continue
            what, test, rest = result.groups()
            failed += what == "not ok"
            self.tell(what, f"{label}/{test}{rest}", told[-80:] if what == "not ok" else ())
            told = []
        if not summary or (done.returncode != 0 and failed == 0):
            self.tell("not ok", f"{label}: ended with status {done.returncode}", told[-80:])
        return done.stdout

    def run_all(self, jobs):
        """Runs programs, two at a time. jobs: (label, command, env) of each."""
        with concurrent.futures.ThreadPoolExecutor(max_workers=JOBS) as two:
            return [d.result() for d in [two.submit(self.run, *job) for job in jobs]]

    def each(self, tests):
        """Runs tests, two at a time. tests: (name, function) of each.

        A function may raise Failure or Skip of test/lines.py."""
        with concurrent.futures.ThreadPoolExecutor(max_workers=JOBS) as two:
            for done in [two.submit(self.one, name, function) for name, function in tests]:
                done.result()

    def one(self, name, function):
        try:
            function()
        except Exception as e:  # noqa: BLE001 - printed as the result of the test
            kind = type(e).__name__
            if kind not in ("Failure", "Skip"):
                raise
            first, _, rest = str(e).partition("\n")
            self.tell("skip" if kind == "Skip" else "not ok", f"{name}: {first}",
                      rest.splitlines()[:200])
        else:
            self.tell("ok", name)

    def finish(self):
        c = self.counts
        result = f"{c['ok']} passed, {c['not ok']} failed, {c['skip']} skipped"
        print(f"# {self.name}: {result}")
        every = ["all"] if getattr(self.args, "all", False) else []
        self.record.write([self.name] + every + self.args.filter, result + ".")
        sys.exit(1 if c["not ok"] or not any(c.values()) else 0)
