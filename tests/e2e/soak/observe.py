#!/usr/bin/env python3
"""observe.py DIR MS: checks invariants of placement on one node, from outside, while tests/e2e/soak.sh or soak-nodes.sh acts.

Standard input is the output of `kernel_truth ROOT MS`: what the kernel does with every cgroup, round after round. The line "lost" says that
the output was interrupted there; the round that it interrupts does not count. DIR has:

    expect/NAME     what a container is to have, "CONTAINER-ID CLASS CPUS": management, shared, exclusive or ending, and how many CPUs.
                    An exclusive container owns its CPUs until its file is removed, an ending one while it has processes
    management      the CPUs of the management pool
    all             all CPUs
    creating        the name of a pod whose creation the runtime has not reported yet
    up              exists while the agent is up
    round           is written after every round: the number of containers that were seen of each class, and how many deviations there are

A cgroup whose last component contains CONTAINER-ID is the container, unless it is that of its monitor (conmon). All other cgroups are those
of pause processes, or of containers that are not known yet. The runtime tells the agent of a pause process when it has started it;
so those of a pod that is being created do not count yet.

An invariant that does not hold is a violation when it has not held for SOAK_LIMIT seconds while the agent was up. The default is 2: the agent
looks once a second at cgroups that others have written to, and has a second to act. The time is counted in rounds: on a machine where
both are slow, rounds are, too. SOAK_START_LIMIT is the limit for cgroups that are not known (yet); the default is SOAK_LIMIT. Violations are
written to DIR/violations. A deviation that lasted longer than a second is printed when it ends, and statistics at the end of the input.
"""
import os
import sys
import time

LIMIT = float(os.environ.get("SOAK_LIMIT") or 2)
START_LIMIT = float(os.environ.get("SOAK_START_LIMIT") or LIMIT)


def cpus(text):
    found = set()
    for part in text.split(",") if text not in ("", "-") else []:
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def show(cpu_set):
    return ",".join(str(cpu) for cpu in sorted(cpu_set)) or "none"


class Observer:
    def __init__(self, directory, every):
        self.directory = directory
        self.every = every
        self.age = {}  # what does not hold -> for how long
        self.owned = {}  # name of an exclusive container -> its CPUs when it was last seen
        self.reported = set()
        self.rounds = self.seen = 0
        self.longest = {True: 0, False: 0}  # whether the cgroup is known -> for how long something did not hold
        self.classes = {"management": set(), "shared": set(), "exclusive": set()}  # those that were seen
        self.worst = {True: "", False: ""}
        self.long = {True: 0, False: 0}  # how many lasted longer than a second

    def read(self, name):
        try:
            with open(os.path.join(self.directory, name), encoding="utf-8") as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""

    def expectations(self):
        wanted = {}
        for name in os.listdir(os.path.join(self.directory, "expect")):
            fields = self.read("expect/" + name).split()
            if len(fields) == 3:
                wanted[fields[0]] = (name, fields[1], int(fields[2]))
        return wanted

    def classify(self, lines):
        """Lines of kernel_truth -> (path, name, class, number, allowed, quota)."""
        wanted, creating = self.expectations(), self.read("creating")
        for line in lines:
            path, _, allowed, _, quota = line.split("\t")[:5]
            if creating and f"pod-{creating}/" in path:
                continue
            last = os.path.basename(path)
            found = next((w for key, w in wanted.items() if key in last and "conmon" not in last), None)
            name, kind, number = found or (path, "other", 0)
            if kind in self.classes:
                self.classes[kind].add(name)
            yield path, name, kind, number, cpus(allowed), quota

    def broken(self, lines):
        """What does not hold in this round, and whether that is about a container that is known."""
        management, everything = cpus(self.read("management")), cpus(self.read("all"))
        seen = list(self.classify(lines))
        owners = [s for s in seen if s[2] in ("exclusive", "ending")]
        # The CPUs of a container that has just ended are its own until its pod is removed.
        expected = {name for name, kind, _ in self.expectations().values() if kind == "exclusive"}
        self.owned = {name: held for name, held in self.owned.items() if name in expected}
        self.owned.update({s[1]: s[4] for s in owners if s[2] == "exclusive"})
        owned = set().union(*self.owned.values(), *(s[4] for s in owners))
        # A pod that is being created may own CPUs that the test does not know yet.
        shared = (set() if self.read("creating") else everything - management - owned) or everything - owned
        for path, name, kind, number, allowed, quota in seen:
            self.seen += 1
            for other in owners:
                if other[0] != path and allowed & other[4]:
                    yield f"CPU {show(allowed & other[4])} of {other[1]} is also a CPU of {kind} {name}", kind != "other"
            if kind == "exclusive" and len(allowed) != number:
                yield f"{name} is to own {number} CPUs and has {show(allowed)}", True
            if kind == "exclusive" and quota != "max":
                yield f"{name} owns its CPUs and has a quota of {quota}", True
            if kind == "management" and not allowed <= management:
                yield f"management {name} may use {show(allowed)}, the pool is {show(management)}", True
            if kind == "shared" and not allowed <= shared:
                yield f"shared {name} may use {show(allowed)}, the pool has {show(shared)}", True

    def round(self, lines, elapsed):
        self.rounds += 1
        if not os.path.exists(os.path.join(self.directory, "up")):
            self.age.clear()
            return
        now = set(self.broken(lines))
        step = max(0, min(elapsed, 2 * self.every))
        for (what, is_known), age in self.age.items():
            if age > 1 and (what, is_known) not in now:
                self.long[is_known] += 1
                print(f"{time.strftime('%H:%M:%S')} ended after {age:.1f} s: {what}", flush=True)
        self.age = {what: self.age.get(what, -step) + step for what in now}
        for (what, is_known), age in self.age.items():
            if age > self.longest[is_known]:
                self.longest[is_known], self.worst[is_known] = age, what
            if age > (LIMIT if is_known else START_LIMIT) and what not in self.reported:
                self.reported.add(what)
                with open(os.path.join(self.directory, "violations"), "a", encoding="utf-8") as file:
                    file.write(f"{time.strftime('%H:%M:%S')} for {age:.1f} s: {what}\n")

    def count(self):
        text = " ".join(f"{kind} {len(names)}" for kind, names in self.classes.items())
        with open(os.path.join(self.directory, "round"), "w", encoding="utf-8") as file:
            file.write(f"{self.rounds} rounds: {text}, {len(self.age)} deviations\n")

    def run(self, stream):
        lines, before = [], None
        for line in stream:
            if line == "lost\n":
                lines, before = [], None
                continue
            if not line.startswith("end "):
                lines.append(line.rstrip("\n"))
                continue
            now = int(line.split()[1]) / 1000
            self.round(lines, now - before if before else 0)
            self.count()
            lines, before = [], now
        for is_known, what in self.worst.items():
            if what:
                print(f"the longest deviation{'' if is_known else ' of a start'}: {what}")
        print(f"{self.rounds} rounds, {self.seen} cgroups looked at, longest deviation {self.longest[True]:.1f} s, "
              f"{self.longest[False]:.1f} s of starts, {len(self.reported)} violations, "
              f"longer than 1 s: {self.long[True]}, {self.long[False]} starts")


if __name__ == "__main__":
    Observer(sys.argv[1], int(sys.argv[2]) / 1000).run(sys.stdin)
