#!/usr/bin/env python3
"""clang-tidy over every file of the compilation database, in parallel. A file that was clean is not
checked again, in any checkout, until it, a header it includes, its flags or .clang-tidy change."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

TIDY = "clang-tidy-14"
GCC_FLAGS = "--extra-arg=-Wno-unknown-warning-option"  # the database is gcc's
ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "pinfold/tidy")


def run(args, cwd):
    return subprocess.run(args, cwd=cwd, capture_output=True, text=True, check=False)


def preprocess(entry):
    """The compile command without its output: only lists what the file includes."""
    args = shlex.split(entry["command"])
    for flag in ("-o", "-MF", "-MQ"):
        if flag in args:
            i = args.index(flag)
            del args[i : i + 2]
    return [a for a in args if a not in ("-c", "-MD")] + ["-MM"]


def key(entry):
    """A hash of everything that the result depends on, except for system headers."""
    listed = run(preprocess(entry), entry["directory"]).stdout.replace("\\\n", " ")
    files = [pathlib.Path(entry["directory"], f) for f in listed.partition(":")[2].split()]
    h = hashlib.sha256((entry["command"].replace(str(ROOT), "") + TIDY).encode())
    for f in [*files, ROOT / ".clang-tidy", ROOT / "tests/.clang-tidy"]:
        h.update(f.read_bytes())
    return h.hexdigest()


def check(entry, database):
    """The findings of clang-tidy for one file."""
    stamp = CACHE / key(entry)
    if stamp.exists():
        return ""
    done = run([TIDY, "--quiet", "-p", database, GCC_FLAGS, entry["file"]], entry["directory"])
    if done.returncode == 0 and not done.stdout.strip():
        stamp.touch()
        return ""
    summary = re.compile(r"^\d+ (warnings?|errors?)\b.*(generated|treated)|^Error while processing|^Suppressed|^Use -header-filter")
    return done.stdout + "".join(l + "\n" for l in done.stderr.splitlines() if not summary.match(l))


def main(build):
    CACHE.mkdir(parents=True, exist_ok=True)
    entries = {}
    for entry in json.loads(pathlib.Path(build, "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if any(path.is_relative_to(ROOT / d) for d in ("src", "tests")):
            entries.setdefault(path, entry)
    # clang-tidy checks a file once per entry, and the second time in one process its analyzer reports
    # every va_list as uninitialised. So its database has one entry per file.
    database = pathlib.Path(build, "tidy").resolve()
    database.mkdir(exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps([*entries.values()]))
    unlisted = sorted({*ROOT.glob("src/**/*.c")} - {*entries})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [f for f in pool.map(lambda e: check(e, database), entries.values()) if f]
    findings += [f"{path}: in no meson.build\n" for path in unlisted]
    print("".join(findings) + f"clang-tidy: {len(entries)} files, {len(findings)} with findings")
    return 1 if findings else 0


sys.exit(main(sys.argv[1]))
