#!/usr/bin/env python3
"""Lines of the parsers that tests reach: coverage.py BUILD_DIR [--lines].

Replays the fuzz corpus and then runs the unit tests and properties of a build with -Db_coverage=true. Prints, for each
file of tests/fuzz/parsers, the share of lines that the corpus alone reaches and the share with all of them; --lines
also prints the lines that are not reached. Lines that only run when memory is exhausted are not counted: allocation
fails by an arena's limit or ends the process, and no input decides that. Exit status 1 when a file has less than 95 %
or a test failed."""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = 95.0
PARSERS = ROOT / "tests/fuzz/parsers"
NO_MEMORY = re.compile(r"ENOMEM|no_memory|out of memory|not enough memory|exhausted\(err\)|\babort\(\)")


def run_tests(build, *suites):
    names = [arg for suite in suites for arg in ("--suite", suite)]
    command = ["meson", "test", "-C", str(build), "--no-rebuild", "--quiet", "--print-errorlogs", *names]
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0


def count_lines(build, source):
    """{line: how often it ran} of a source file, over every object that was compiled from it."""
    lines = {}
    text = (ROOT / source).read_text().splitlines()
    for notes in build.glob(f"src/**/*.p/{source.name}.gcno"):
        out = subprocess.run(["gcov", "--json-format", "--stdout", str(notes)], cwd=build, capture_output=True, text=True, check=True)
        for unit in filter(None, out.stdout.splitlines()):
            for file in json.loads(unit)["files"]:
                if (build / file["file"]).resolve() != ROOT / source:
                    continue
                for line in file["lines"]:
                    number = line["line_number"]
                    if line["count"] or not NO_MEMORY.search(text[number - 1]):
                        lines[number] = lines.get(number, 0) + line["count"]
    return lines


def share(lines):
    return 100.0 * sum(1 for n in lines.values() if n) / len(lines) if lines else 0.0


def main(args):
    build = pathlib.Path(args[0]).resolve()
    sources = [pathlib.Path(line) for line in PARSERS.read_text().split("\n") if line and line[0] != "#"]
    for data in build.glob("**/*.gcda"):
        data.unlink()
    ok = run_tests(build, "fuzz")
    corpus = {source: share(count_lines(build, source)) for source in sources}
    ok = run_tests(build, "unit", "prop", "threads") and ok

    low = []
    print(f"{'parser':<40} {'lines':>6} {'corpus':>8} {'all':>8}")
    for source in sources:
        lines = count_lines(build, source)
        total = share(lines)
        print(f"{str(source):<40} {len(lines):>6} {corpus[source]:>7.1f}% {total:>7.1f}%")
        if total < TARGET:
            low.append(source)
        if "--lines" in args:
            text = (ROOT / source).read_text().splitlines()
            for number in sorted(n for n, runs in lines.items() if not runs):
                print(f"    {number}: {text[number - 1].strip()}")
    print(f"coverage: {len(sources) - len(low)} of {len(sources)} parsers have at least {TARGET:.0f} % of their lines")
    return 0 if ok and not low else 1


sys.exit(main(sys.argv[1:]))
