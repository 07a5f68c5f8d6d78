#!/usr/bin/env python3
"""compare-specs.py WITHOUT WITH: two reports of a test suite (ginkgo's JSON), without Pinfold and with it. Prints how many specs passed,
failed and were skipped in each, the specs whose results differ, and those that failed in both. Exit status 1 when results differ, or when
no spec passed.
compare-specs.py --names WITHOUT WITH: only the names of specs that differ, one on a line.
compare-specs.py --tsv WITHOUT WITH [WITHOUT WITH]...: a line for each spec that ran: name, result without, result with. Of specs that ran
again, the last pair of reports counts.
"""
import collections
import json
import sys


def results(path):
    found = {}
    with open(path, encoding="utf-8") as file:
        for suite in json.load(file):
            for spec in suite["SpecReports"] or []:
                if spec["LeafNodeType"] == "It":
                    name = " ".join((spec["ContainerHierarchyTexts"] or []) + [spec["LeafNodeText"]])
                    found[name] = spec["State"]
    return found


def write_tsv(reports):
    specs = {}
    for without, with_it in zip(reports[::2], reports[1::2]):
        first, second = results(without), results(with_it)
        for name in first | second:
            states = (first.get(name, "-"), second.get(name, "-"))
            # A report names all specs of the suite, also those that were not to run.
            if not set(states) <= {"skipped", "pending", "-"}:
                specs[name] = states
    for name, states in sorted(specs.items()):
        print(name, *states, sep="\t")
    return 0


def main():
    if sys.argv[1] == "--tsv":
        return write_tsv(sys.argv[2:])
    only_names = sys.argv[1] == "--names"
    without, with_it = (results(path) for path in sys.argv[-2:])
    differ = sorted(name for name in without | with_it if without.get(name) != with_it.get(name))
    if only_names:
        print("\n".join(differ))
        return 0
    for title, each in (("without Pinfold", without), ("with Pinfold", with_it)):
        count = collections.Counter(each.values())
        print(f"{title}: {count['passed']} passed, {count['failed']} failed, {count['skipped'] + count['pending']} skipped")
    for name in differ:
        print(f"differs: {name}: {without.get(name)}, with Pinfold {with_it.get(name)}")
    for name in sorted(name for name, state in without.items() if state == "failed" and name not in differ):
        print(f"failed in both: {name}")
    return 1 if differ or "passed" not in without.values() else 0


sys.exit(main())
