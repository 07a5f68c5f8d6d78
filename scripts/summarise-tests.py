#!/usr/bin/env python3
"""Counts single tests over the logs of `meson test` in the given build directories.

Each result line of a TAP program counts, any other program counts as one test. A program that failed without a
failed test (a crash, a timeout) counts as one failure, and so does a directory without a log. The last line is the
sum; exit status 1 when anything failed."""

import json
import pathlib
import re
import sys

TAP_LINE = re.compile(r"^(not )?ok\b([^#]*)(#\s*skip\b)?", re.IGNORECASE)
GOOD = {"OK", "SKIP", "EXPECTEDFAIL"}


def count(run):
    """(passed, failed, skipped) of one test program."""
    passed = failed = skipped = 0
    for line in run.get("stdout", "").splitlines():
        m = TAP_LINE.match(line)
        if not m:
            continue
        if m[3]:
            skipped += 1
        elif m[1]:
            failed += 1
        else:
            passed += 1
    if run["result"] not in GOOD and not failed:
        failed = 1
    if run["result"] in GOOD and not passed + failed + skipped:
        passed, skipped = (0, 1) if run["result"] == "SKIP" else (1, 0)
    return passed, failed, skipped


def main(dirs):
    sums = [0, 0, 0]
    for d in dirs:
        log = pathlib.Path(d, "meson-logs", "testlog.json")
        if not log.exists():
            print(f"{d}: no test log")
            sums[1] += 1
            continue
        for line in log.read_text(errors="replace").splitlines():
            run = json.loads(line)
            result = count(run)
            sums = [a + b for a, b in zip(sums, result)]
            if result[1]:
                print(f"{d}: {run['name']}: {run['result']}")
    print(f"{sums[0]} passed, {sums[1]} failed" + (f", {sums[2]} skipped" if sums[2] else ""))
    return 1 if sums[1] else 0


sys.exit(main(sys.argv[1:]))
