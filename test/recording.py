# SPDX-License-Identifier: MIT
"""The option --record FILE of the test tools: writes the result of a run with tools/record.

    recording.option(parser)
    args = parser.parse_args()
    record = recording.Record(args.record)      # before the run, to get the commit
    ...
    record.write(["sim"], "70 passed, 0 failed")
"""

import os
import re
import subprocess
import sys

TOOL = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools", "record")


def option(parser):
    parser.add_argument("--record", metavar="FILE",
                        help="write the result to a block of this file, such as docs/runs.md")


class Record:
    """Does nothing if there is no path."""

    def __init__(self, path):
        self.path = os.path.abspath(path) if path else None
        self.tree = None
        if path:
            if not os.path.isdir(os.path.dirname(self.path)):
                sys.exit(f"--record: no folder {os.path.dirname(self.path)}")
            self.tree = subprocess.run([TOOL, "--tree"], check=True, stdout=subprocess.PIPE,
                                       text=True).stdout.strip()

    def write(self, words, text):
        """Replaces the block whose name consists of these words."""
        if self.path:
            name = " ".join(re.sub(r"[^a-z0-9_./]+", "-", w.lower()).strip("-") for w in words)
            subprocess.run([TOOL, self.path, name, self.tree, text, *sys.argv], check=True)
