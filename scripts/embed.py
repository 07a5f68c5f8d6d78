#!/usr/bin/env python3
"""Writes a header with one string macro per file: embed.py HEADER FILE... The macro's name is the
file's, in capitals: set-cpus-offline.sh becomes SET_CPUS_OFFLINE_SH."""

import pathlib
import re
import sys

ESCAPES = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n"}

header, *files = sys.argv[1:]
out = ["#pragma once\n"]
for file in map(pathlib.Path, files):
    name = re.sub(r"\W", "_", file.name).upper()
    lines = file.read_text().splitlines(keepends=True)
    text = ["\t\"%s\"" % "".join(ESCAPES.get(c, c) for c in line) for line in lines]
    out.append(f"#define {name} \\\n" + " \\\n".join(text) + "\n")
pathlib.Path(header).write_text("\n".join(out))
