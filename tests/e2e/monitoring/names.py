#!/usr/bin/env python3
"""names.py rules ALERTS DASHBOARD OUT: writes the alerts' groups and every query of the dashboard as rules.
names.py check RULES EXPORTED...: every metric and label in the rules is in the scraped metrics EXPORTED."""
import json
import re
import sys

import yaml

# What the scrape adds to every series.
SCRAPED = {"job", "pod", "namespace", "instance", "le"}


def queries(panel):
    for value in panel.values() if isinstance(panel, dict) else panel if isinstance(panel, list) else ():
        yield from queries(value)
    if isinstance(panel, dict) and isinstance(panel.get("expr"), str):
        yield panel["expr"]


def write_rules(alerts, dashboard, out):
    groups = yaml.safe_load(open(alerts))["spec"]["groups"]
    exprs = [e.replace("$__rate_interval", "5m").replace("$job", ".*") for e in queries(json.load(open(dashboard)))]
    assert len(exprs) > 5, exprs
    groups.append({"name": "dashboard", "rules": [{"record": f"dashboard:query:{i}", "expr": e} for i, e in enumerate(exprs)]})
    yaml.safe_dump({"groups": groups}, open(out, "w"), sort_keys=False)


def exported(files):
    """Name -> every label seen with it."""
    known = {}
    for path in files:
        for line in open(path):
            found = re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$", line)
            if found and not line.startswith("#"):
                known.setdefault(found[1], set()).update(re.findall(r'(\w+)="', found[2] or ""))
    return known


def check(rules, files):
    known, bad, n = exported(files), [], 0
    for group in yaml.safe_load(open(rules))["groups"]:
        for rule in group["rules"]:
            expr = rule["expr"]
            names = re.findall(r"\b((?:pinfold|apiserver|process)_\w+)", re.sub(r'"[^"]*"', '""', expr))
            assert names, expr
            labels = set(re.findall(r'(\w+)\s*[=!]~?"', expr))
            labels |= {w for by in re.findall(r"\bby \(([^)]*)\)", expr) for w in re.findall(r"\w+", by)}
            for name in names:
                n += 1
                if name not in known:
                    bad.append(f"{name} is not exported: {expr}")
                bad += [f"{name} has no label {l}: {expr}" for l in labels - SCRAPED - known.get(name, labels)]
    print("\n".join(bad) or f"{n} names")
    return bool(bad)


if sys.argv[1] == "rules":
    write_rules(*sys.argv[2:])
else:
    sys.exit(check(sys.argv[2], sys.argv[3:]))
