# SPDX-License-Identifier: MIT
"""Helpers of the test scripts: they print results in the same format as the test programs.

A script creates a Script, passes its tests to it in order, and ends with finish():

    script = lines.Script("docs", __doc__)
    script.test("README.md#1", lambda: ...)     # a function that raises Failure
    script.finish()
"""

import argparse
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Failure(Exception):
    """A test has failed; the text is the reason, in one or more lines."""


class Skip(Exception):
    """A test cannot run here; the text is the reason."""


def run(command, cwd=None, env=None, seconds=300):
    """Runs a command and returns its output. If it fails, raises Failure with the output."""
    try:
        done = subprocess.run(command, cwd=cwd, env=env, timeout=seconds, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        raise Failure(f"no command {command[0]}") from None
    except subprocess.TimeoutExpired:
        raise Failure(f"not finished after {seconds} s: {' '.join(command)}") from None
    if done.returncode != 0:
        raise Failure(f"status {done.returncode}: {' '.join(command)}\n{done.stdout}")
    return done.stdout


class Script:
    def __init__(self, name, text):
        p = argparse.ArgumentParser(description=text.splitlines()[0])
        p.add_argument("--build", metavar="DIR", default=os.path.join(ROOT, "build", "dev"),
                       help="a build folder with the library (default: build/dev)")
        p.add_argument("--list", action="store_true", help="print the names of the tests")
        p.add_argument("filter", nargs="*", metavar="FILTER",
                       help="only tests whose names contain one of these")
        self.args = p.parse_args()
        self.name = name
        self.build = os.path.abspath(self.args.build)
        self.counts = {"ok": 0, "not ok": 0, "skip": 0}

    def chosen(self, name):
        full = f"{self.name}/{name}"
        return not self.args.filter or any(f in full for f in self.args.filter)

    def test(self, name, function):
        """Runs a test. Skips it if a filter excludes it; with --list, prints only its name."""
        if not self.chosen(name):
            return
        if self.args.list:
            print(name)
            return
        start = time.monotonic()
        try:
            function()
        except Failure as f:
            first, _, rest = str(f).partition("\n")
            self.tell("not ok", f"{name}: {first}", rest)
        except Skip as s:
            self.tell("skip", f"{name}: {s}")
        else:
            self.tell("ok", f"{name} ({(time.monotonic() - start) * 1000:.0f} ms)")

    def tell(self, what, text, details=""):
        self.counts[what] += 1
        for line in details.rstrip().splitlines():
            print(f"# {line}")
        print(f"{what} {text}", flush=True)

    def finish(self):
        if not self.args.list:
            c = self.counts
            print(f"# {self.name}: {c['ok']} passed, {c['not ok']} failed, {c['skip']} skipped")
        sys.exit(1 if self.counts["not ok"] else 0)
