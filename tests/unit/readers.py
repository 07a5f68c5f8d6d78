#!/usr/bin/env python3
"""What other readers make of our output: readers.py yaml|toml TEXT JSON.

Reads TEXT with PyYAML (YAML 1.1) or tomllib and compares it with the JSON text, types included."""

import json
import sys
import tomllib

import yaml


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def differences(where, got, want):
    if isinstance(got, dict) and isinstance(want, dict) and list(got) == list(want):
        pairs = [(k, got[k], want[k]) for k in got]
    elif isinstance(got, list) and isinstance(want, list) and len(got) == len(want):
        pairs = [(i, *pair) for i, pair in enumerate(zip(got, want))]
    else:
        return [f"{where}: got {got!r}, want {want!r}"]
    return [d for k, g, w in pairs if not same(g, w) for d in differences(f"{where}/{k}", g, w)]


kind, text, expected = sys.argv[1:]
with open(text, "rb") as file:
    got = tomllib.load(file) if kind == "toml" else list(yaml.safe_load_all(file))
with open(expected, "rb") as file:
    want = json.load(file) if kind == "toml" else [json.loads(line) for line in file]
if not same(got, want):
    sys.exit("\n".join(differences("", got, want)))
