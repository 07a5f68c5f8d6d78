#!/usr/bin/env python3
"""Creates pods by dry-run in the namespaces of several modes of admission, in turn, and reads from the API server's metrics how long they took.
latency.py PORT PKI ROUNDS REQUESTS "MODE...". Prints the median and the
lowest of the rounds' means; on a busy machine the lowest is nearer to the cost."""

import http.client
import json
import re
import ssl
import statistics
import sys
import time

port, pki, rounds, requests, modes = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5].split()
context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=120)
TARGET = {"target.workload.openshift.io/management": '{"effect":"PreferredDuringScheduling"}'}
CORES = "management.workload.openshift.io/cores"


def pod(containers, annotations):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": annotations}, "spec": {
        "automountServiceAccountToken": False, "containers": [{"name": f"c{i}", "image": "i", "resources": {
            "requests": {"cpu": "100m", "memory": "1Mi"}, "limits": {"cpu": "200m"}}} for i in range(containers)]}}


KINDS = {"unrelated, 2 containers": pod(2, {}), "management, 2 containers": pod(2, TARGET), "management, 20 containers": pod(20, TARGET)}


def call(method, path, body=None):
    connection.request(method, path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read().decode()


def measured():
    """Sum of seconds and number of the dry-run creations of pods."""
    total = [0.0, 0.0]
    for line in call("GET", "/metrics")[1].splitlines():
        m = re.match(r'apiserver_request_duration_seconds_(sum|count)\{(.*)\} (\S+)$', line)
        if m and 'resource="pods"' in m[2] and 'verb="POST"' in m[2] and 'dry_run="All"' in m[2]:
            total[m[1] == "count"] += float(m[3])
    return total


def burst(namespace, text, n):
    before = measured()
    for _ in range(n):
        status, body = call("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", text)
        assert status == 201, body
    after = measured()
    assert after[1] - before[1] == n
    return (after[0] - before[0]) / n * 1000


def is_converted(namespace):
    status, body = call("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", json.dumps(KINDS["management, 2 containers"]))
    return status == 201 and CORES in json.loads(body)["spec"]["containers"][0]["resources"]["requests"]


for mode in modes:  # every mode does what it is measured for
    end = time.monotonic() + 60
    while is_converted(mode) != (mode != "none"):
        if time.monotonic() > end:
            sys.exit(f"bench admission: mode {mode} is not in force")
        time.sleep(0.5)
print(f"admission: server dry-run of a pod, milliseconds in the API server, means of {rounds} rounds of {requests}; what is added to \"none\" in brackets")
print(f"{'':36}" + "".join(f"{mode:>16}" for mode in modes))
for kind, body in KINDS.items():
    text = json.dumps(body)
    results = {mode: [] for mode in modes}
    for mode in modes:
        burst(mode, text, 10)
    for _ in range(rounds):
        for mode in modes:
            results[mode].append(burst(mode, text, requests))
    for name, choose in (("median", statistics.median), ("lowest", min)):
        chosen = {mode: choose(values) for mode, values in results.items()}
        print(f"{kind + ', ' + name:36}" + "".join(f"{chosen[m]:>8.2f} ({chosen[m] - chosen['none']:>5.2f})" for m in modes), flush=True)
