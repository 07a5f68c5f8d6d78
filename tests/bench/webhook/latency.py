#!/usr/bin/env python3
"""Creates pods by dry-run in the namespaces of several modes of admission, in turn, and reads from the API server's metrics how long they took,
and from /proc the CPU time of the processes. latency.py PORT PKI ROUNDS REQUESTS "MODE..." NAME=PID...: the processes are apiserver, webhook
and go. A round sends REQUESTS pods in each mode; few of them and many rounds let other work on the machine disturb all modes alike. Prints the
median and the lowest of the rounds."""

import glob
import http.client
import json
import re
import ssl
import statistics
import sys
import time

port, pki, rounds, requests, modes = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5].split()
pids = dict(argument.split("=") for argument in sys.argv[6:])
context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=120)
TARGET = {"target.workload.openshift.io/management": '{"effect":"PreferredDuringScheduling"}'}
CORES = "management.workload.openshift.io/cores"
# What the API server measures, in seconds: the name of a metric and what its labels have.
METRICS = {
    "request": ("apiserver_request_duration_seconds", ('resource="pods"', 'verb="POST"', 'dry_run="All"')),
    "call": ("apiserver_admission_webhook_admission_duration_seconds", ('type="admit"', 'operation="CREATE"')),
}


def pod(containers, annotations):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": annotations}, "spec": {
        "automountServiceAccountToken": False, "containers": [{"name": f"c{i}", "image": "i", "resources": {
            "requests": {"cpu": "100m", "memory": "1Mi"}, "limits": {"cpu": "200m"}}} for i in range(containers)]}}


KINDS = {"unrelated pod, 2 containers": pod(2, {}), "management pod, 2 containers": pod(2, TARGET),
         "management pod, 20 containers": pod(20, TARGET)}


def call(method, path, body=None):
    connection.request(method, path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read().decode()


def cpu_ns(pid):
    """Of all threads. Threads that end are missed; none of these processes ends threads all the time."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path, encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def measured():
    """For each metric the sum in ms and the number; for each process its CPU time in ms."""
    result = {name: [0.0, 0.0] for name in METRICS}
    lines = call("GET", "/metrics")[1].splitlines()
    cpu = {name: cpu_ns(pid) / 1e6 for name, pid in pids.items()}
    for line in lines:
        m = re.match(r'(\w+)_(sum|count)\{(.*)\} (\S+)$', line)
        for name, (metric, labels) in METRICS.items():
            if m and m[1] == metric and all(label in m[3] for label in labels):
                result[name][m[2] == "count"] += float(m[4]) * (1 if m[2] == "count" else 1000)
    return result, cpu


def burst(namespace, text, n):
    """What one pod took, in ms."""
    before, cpu_before = measured()
    for _ in range(n):
        status, body = call("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", text)
        assert status == 201, body
    cpu_now = {name: cpu_ns(pid) / 1e6 for name, pid in pids.items()}
    after, _ = measured()
    assert after["request"][1] - before["request"][1] == n
    result = {name: (after[name][0] - before[name][0]) / n for name in METRICS}
    result |= {f"CPU of {name}": (cpu_now[name] - cpu_before[name]) / n for name in pids}
    return result


def is_converted(namespace):
    status, body = call("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", json.dumps(KINDS["management pod, 2 containers"]))
    return status == 201 and CORES in json.loads(body)["spec"]["containers"][0]["resources"]["requests"]


def show(what, modes, values):
    print(f"  {what:34}" + "".join(f"{values[m]:>9.2f}" if m in values else f"{'-':>9}" for m in modes), flush=True)


def report(results):
    """results: mode -> list of what burst() returned."""
    median = {m: {name: statistics.median(r[name] for r in results[m]) for name in results[m][0]} for m in modes}
    lowest = {m: min(r["request"] for r in results[m]) for m in modes}
    # Each round has its own "none", so that a disturbance of the whole round cancels.
    added = {m: statistics.median(r["request"] - n["request"] for r, n in zip(results[m], results["none"])) for m in modes if m != "none"}
    show("the whole request, median", modes, {m: median[m]["request"] for m in modes})
    show("  added to none, median of rounds", modes, added)
    show("the whole request, lowest", modes, lowest)
    show("  added to none", modes, {m: lowest[m] - lowest["none"] for m in modes if m != "none"})
    show("the call of a webhook, median", modes, {m: median[m]["call"] for m in modes if median[m]["call"]})
    show("CPU of the API server", modes, {m: median[m]["CPU of apiserver"] for m in modes})
    for name in ("webhook", "go"):
        if name in pids:
            show(f"CPU of {'our' if name == 'webhook' else 'the Go'} webhook", modes,
                 {m: median[m][f"CPU of {name}"] for m in modes if median[m]["call"] and (m == "go") == (name == "go")})
    if "go" in pids and median["go"]["call"]:
        ours, theirs = median["webhook"]["CPU of webhook"], median["go"]["CPU of go"]
        print(f"  webhook / Go webhook: latency added {added['webhook'] / added['go']:.2f}, call {median['webhook']['call'] / median['go']['call']:.2f}, "
              f"CPU time in the webhook's process {ours / theirs:.3f}")
        print(f"  of our call {ours / median['webhook']['call']:.0%} is CPU time in our process, of the Go webhook's {theirs / median['go']['call']:.0%}; "
              f"the rest, {median['webhook']['call'] - ours:.2f} and {median['go']['call'] - theirs:.2f} ms, is the API server and the connection")


for mode in modes:  # every mode does what it is measured for
    end = time.monotonic() + 60
    while is_converted(mode) != (mode not in ("none", "guard")):
        if time.monotonic() > end:
            sys.exit(f"bench admission: mode {mode} is not in force")
        time.sleep(0.5)
print(f"admission: server dry-run of a pod, milliseconds as the API server measures them, {rounds} rounds of {requests} pods in each mode, alternating")
for kind, body in KINDS.items():
    text = json.dumps(body)
    for mode in modes:
        burst(mode, text, 20)
    collected = {mode: [] for mode in modes}
    for number in range(rounds):
        for mode in modes if number % 2 else reversed(modes):
            collected[mode].append(burst(mode, text, requests))
    print(f"{kind:36}" + "".join(f"{mode:>9}" for mode in modes))
    report(collected)
