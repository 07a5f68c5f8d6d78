#!/usr/bin/env python3
"""Writes a line for every change of the CPUs of some containers.

watch-cpus.py FILE CGROUP...

FILE exists once all of them are watched. A line is the time, the number of the container and its CPUs."""

import sys
import time

paths = [f"{path}/cpuset.cpus" for path in sys.argv[2:]]


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read().strip()


known = [read(path) for path in paths]
with open(sys.argv[1], "w", encoding="ascii", buffering=1) as log:
    while True:
        for i, path in enumerate(paths):
            now = read(path)
            if now != known[i]:
                print(f"{time.time():.3f}", i, now, file=log)
                known[i] = now
        time.sleep(0.005)
