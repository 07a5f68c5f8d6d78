#!/usr/bin/env python3
"""Sends pods and nodes through a real API server by server dry-run, once for each mode of admission, and compares what would be stored.
differential.py PORT PKI vectors | random COUNT SEED | guard COUNT SEED FILE | nodes FILE | cluster. The modes are namespaces: policies act in those labelled mode=policy and mode=both, the
webhook in mode=webhook and mode=both, the guard everywhere (tests/e2e/policy-differential.sh). Differences are failures unless
differences.json has an entry whose condition holds for the pod. Random pods are sent by CLIENTS (4) connections at once; a pod depends on SEED
its number and the state of the cluster only (DIFFERENTIAL_STATES: some of the numbers of STATES). Every 20th is also created, read and deleted: dry-run shows what is stored. Nodes are in no namespace: their results are written to FILE, and the caller
compares the files of two modes. "guard" sends vectors and random pods where only the guard acts: what is stored has its permissions, and what
the webhook makes of a pod is stored as it is; the decisions are written to FILE (tests/e2e/policy-guard.sh). "cluster" leaves a
partitioned cluster behind."""

import concurrent.futures
import copy
import fractions
import http.client
import json
import os
import pathlib
import random
import re
import ssl
import sys
import threading
import time

MODES = ("webhook", "policy", "both")
TARGET, RESOURCES = "target.workload.openshift.io/", "resources.workload.openshift.io/"
CORES, STAMP = ".workload.openshift.io/cores", "pinfold.io/cpus"
PREFERRED = '{"effect":"PreferredDuringScheduling"}'
here = pathlib.Path(__file__).resolve().parent
documented = {entry["id"]: entry for entry in json.loads((here / "differences.json").read_text())}
port, pki = int(sys.argv[1]), sys.argv[2]
context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
CLIENTS = int(os.environ.get("DIFFERENTIAL_CLIENTS", 4))
local = threading.local()


def connection():
    """Of this thread."""
    if not hasattr(local, "connection"):
        local.connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=120)
    return local.connection


def call(method, path, body=None, kind="application/json", headers=()):
    for is_last in (False, True):
        try:
            connection().request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": kind, **dict(headers)})
            response = connection().getresponse()
            return response.status, json.loads(response.read() or "{}")
        except (http.client.RemoteDisconnected, ConnectionError):
            connection().close()  # the API server closes connections that are idle; the next request opens it again
            if is_last:
                raise
    raise AssertionError


def put(path, name, body):
    """Creates or replaces an object."""
    status, old = call("GET", f"{path}/{name}")
    if status == 200:
        body = copy.deepcopy(body)
        body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        return call("PUT", f"{path}/{name}", body)
    return call("POST", path, body)


def wait(what, function, limit=60):
    end = time.monotonic() + limit
    while not function():
        if time.monotonic() > end:
            sys.exit(f"Bail out! {what} did not happen within {limit} s")
        time.sleep(0.1)


# --- the cluster ---

def make_namespace(name, annotations, mode):
    status, body = put("/api/v1/namespaces", name, {"apiVersion": "v1", "kind": "Namespace",
                       "metadata": {"name": name, "annotations": annotations or {}, "labels": {"mode": mode}}})
    assert status in (200, 201), body
    put(f"/api/v1/namespaces/{name}/serviceaccounts", "default", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})


def parameters():
    return call("GET", "/api/v1/namespaces/kube-system/configmaps/pinfold-admission")[1].get("data")


def set_cluster(infrastructure, nodes):
    """Infrastructure status (None: no object) and Nodes; until the operator has published them."""
    path = "/apis/config.openshift.io/v1/infrastructures"
    call("DELETE", f"{path}/cluster")
    for node in call("GET", "/api/v1/nodes")[1]["items"]:
        call("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")
    if infrastructure is not None:
        put(path, "cluster", {"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"}})
        call("PATCH", f"{path}/cluster/status", {"status": infrastructure}, "application/merge-patch+json")
    types = set()
    for node in nodes:
        name = node["metadata"]["name"]
        status, body = put("/api/v1/nodes", name, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": node.get("spec", {})})
        assert status in (200, 201), body
        call("PATCH", f"/api/v1/nodes/{name}/status", {"status": node.get("status", {})}, "application/merge-patch+json")
        types |= {k[:-len(CORES)] for k in node.get("status", {}).get("allocatable", {}) if k.endswith(CORES)}
    status = infrastructure or {}
    workloads = "" if not status else "on" if status.get("cpuPartitioning") == "AllNodes" else \
        "single" if status.get("controlPlaneTopology") == "SingleReplica" and any(
            n.get("status", {}).get(k) for n in nodes for k in ("allocatable", "capacity")) else "off"
    wait(f"workloads {workloads!r} with types {types} for {json.dumps(nodes)}", lambda: (parameters() or {}).get("workloads") == workloads and
         set(filter(None, parameters()["reported-types"].split(","))) == types)


# --- comparing ---

SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def amount(text):
    """Quantities are compared by value: CEL cannot keep their format."""
    m = re.fullmatch(r"([+-]?[0-9.]+)(?:([eE][+-]?\d+)|([KMGTPE]i)|([numkMGTPE]?))", str(text))
    if not m:
        return str(text)
    value = fractions.Fraction(m[1])
    if m[2]:
        return value * fractions.Fraction(10) ** int(m[2][1:])
    if m[3]:
        return value * 1024 ** ("KMGTPE".index(m[3][0]) + 1)
    return value * fractions.Fraction(10) ** SUFFIXES[m[4]]


def essence(pod):
    """What admission decides about: annotations, and the resources of every container."""
    spec = pod["spec"]
    namespace = pod["metadata"]["namespace"]  # differs between the modes, and the warning names it
    return {"annotations": {k: v.replace(f" {namespace} ", " NAMESPACE ") for k, v in pod["metadata"].get("annotations", {}).items()},
            "containers": [(c["name"], {k: {r: amount(q) for r, q in c.get("resources", {}).get(k, {}).items()} for k in ("requests", "limits")})
                           for c in spec.get("initContainers", []) + spec["containers"]]}


def post(pod, namespace, user, query):
    if not user:
        return call("POST", f"/api/v1/namespaces/{namespace}/pods{query}", pod)
    headers = [("Impersonate-User", user), ("Impersonate-Group", "system:nodes"), ("Impersonate-Group", "system:authenticated")]
    # http.client joins no repeated headers, so the request is written by hand
    connection().putrequest("POST", f"/api/v1/namespaces/{namespace}/pods{query}")
    body = json.dumps(pod).encode()
    for key, value in headers + [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]:
        connection().putheader(key, value)
    connection().endheaders(body)
    response = connection().getresponse()
    return response.status, json.loads(response.read())


def stored(answer):
    """What a pod that was created is in the store; it is deleted."""
    path = f"/api/v1/namespaces/{answer['metadata']['namespace']}/pods/{answer['metadata']['name']}"
    status, pod = call("GET", path)
    assert status == 200, pod
    status, body = call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    assert status == 200, body
    return pod


def create(pod, namespace, user=None, is_dry=True):
    pod = copy.deepcopy(pod)
    pod["metadata"]["namespace"] = namespace
    status, answer = post(pod, namespace, user, "?dryRun=All" if is_dry else "")
    if status >= 500 or status == 429:
        raise RuntimeError(f"Bail out! {status} {answer}")
    if status not in (200, 201):
        return "refused", (status, answer.get("message", ""))
    return "stored", essence(answer if is_dry else stored(answer))


def same(a, b):
    return a[0] == b[0] and (a[0] == "refused" or a[1] == b[1])


# --- documented differences ---

def effects(pod):
    return [v for k, v in pod["metadata"].get("annotations", {}).items() if k.startswith(TARGET)]


SPELLINGS = re.compile(r'\s*[{]\s*("effect"\s*:\s*"[^"\\]*"\s*,\s*)*"effect"\s*:\s*"PreferredDuringScheduling"\s*[}]\s*')


def has_cores(pod):
    return any(k.endswith(CORES) for c in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]
               for k in c.get("resources", {}).get("requests", {}))


def arrives_converted(pod):
    """By the one who creates it: every container has its annotation, and no CPU."""
    notes = pod["metadata"].get("annotations", {})
    return len(effects(pod)) == 1 and all(
        RESOURCES + c["name"] in notes and not any(amount(c.get("resources", {}).get(k, {}).get("cpu", "0")) for k in ("requests", "limits"))
        for c in pod["spec"].get("initContainers", []) + pod["spec"]["containers"])


def keeps_annotations(pod, result):
    return result[0] == "stored" and result[1]["annotations"] == pod["metadata"]["annotations"]


CONDITIONS = {
    "effect-spelling": lambda pod, results: any(not SPELLINGS.fullmatch(e) for e in effects(pod)) and
    results["policy"][0] == "refused",
    "annotation-spelling": lambda pod, results: has_cores(pod) and any(
        k.startswith(RESOURCES) and not re.fullmatch(r'[{]"cpushares":\s?\d+(,"cpulimit":\d+)?[}]', v)
        for k, v in pod["metadata"].get("annotations", {}).items()),
    "unknown-cluster": lambda pod, results: arrives_converted(pod) and keeps_annotations(pod, results["policy"]) and
    results["webhook"][0] == "refused" and 'infrastructure.config.openshift.io "cluster" not found' in results["webhook"][1][1],
}


class Report:
    def __init__(self):
        self.n, self.stored, self.created, self.used, self.failed, self.lock = 0, 0, 0, {}, [], threading.Lock()

    @staticmethod
    def explain(pod, results):
        """"": no difference. The name of a documented one. None: another one."""
        if all(same(results["webhook"], results[mode]) for mode in MODES):
            return ""
        # Mode both has the webhook behind the policies, for what they did not convert: it decides as one of them.
        for key, holds in CONDITIONS.items():
            like = {"webhook": ("webhook",), "either": ("webhook", "policy")}[documented[key]["both"]]
            if any(same(results[mode], results["both"]) for mode in like) and holds(pod, results):
                return key
        return None

    def add(self, name, pod, results, why):
        with self.lock:
            self.n += 1
            if self.n % 500 == 0:
                print(f"# {self.n} pods, {len(self.failed)} unexplained differences", flush=True)
            self.stored += results["webhook"][0] == "stored"
            if why:
                self.used[why] = self.used.get(why, 0) + 1
            if why is None:
                self.fail(name, pod, results)

    def fail(self, name, pod, results):
        self.failed.append(name)
        if len(self.failed) <= 5:
            print(f"# {name}: {json.dumps(pod)}")
            for mode, result in results.items():
                print(f"#   {mode}: {result}")

    def end(self, what):
        for key, count in sorted(self.used.items()):
            print(f"# documented difference {key}: {count} ({documented[key]['why']})")
        print(f"# {what}: {self.n} pods, {self.stored} stored by the webhook, {self.created} created and read in each mode, "
              f"{len(self.failed)} unexplained differences")
        print(f"{'not ok' if self.failed or not self.n else 'ok'} - {what}: the same pod is stored in every mode, or the difference is documented")
        return not self.failed and self.n > 0


def try_pod(report, name, pod, namespaces, user=None):
    """A difference has to last: webhook and operator follow a change of the cluster with a delay."""
    end = time.monotonic() + 15
    while True:
        results = {mode: create(pod, namespaces[mode], user) for mode in MODES}
        why = report.explain(pod, results)
        if why is not None or time.monotonic() > end or report.failed:
            report.add(name, pod, results, why)
            return results
        time.sleep(0.5)


def try_stored(report, name, pod, namespaces, dry):
    """The same, created: the API server stores what a dry run returned."""
    for mode in MODES:
        created = create(pod, namespaces[mode], is_dry=False)
        with report.lock:
            report.created += mode == MODES[0] and created[0] == "stored"
            if not same(created, dry[mode]):
                report.fail(f"{name}, {mode}: a dry run differs", pod, {"dry run": dry[mode], "created": created})


# --- vectors ---

def group_key(row):
    return json.dumps([row["cluster"].get("infrastructureStatus") if row["cluster"]["infrastructurePresent"] else None,
                       row["cluster"].get("nodes", [])], sort_keys=True)


def rename(pod):
    """Vectors have container names that the API server refuses; admission is the same for others."""
    text = json.dumps(pod).replace("initTest", "init-test")
    pod = json.loads(text)
    pod["metadata"].pop("uid", None)
    pod["spec"].pop("serviceAccountName", None)
    pod["metadata"].setdefault("name", "test")
    return pod


def vectors():
    report = Report()
    rows = [r for r in json.loads((here / "../../vectors/admission.json").read_text())
            if r.get("pod") and r["request"]["operation"] == "CREATE" and not r["request"]["subresource"]]
    groups = {}
    for row in rows:
        groups.setdefault(group_key(row), []).append(row)
    number = 0
    for key, members in groups.items():
        set_cluster(*json.loads(key))
        for row in members:
            number += 1
            annotations = ((row.get("namespace") or {}).get("metadata") or {}).get("annotations")
            namespaces = {mode: f"v{number}-{mode}" for mode in MODES}
            for mode in MODES:
                make_namespace(namespaces[mode], annotations, mode)
            try_pod(report, row["name"], rename(row["pod"]), namespaces)
    ok = report.end(f"{len(rows)} admission vectors")
    report = Report()
    set_cluster(CLUSTER, NODES)
    for mode in MODES:
        make_namespace(f"static-{mode}", {"workload.openshift.io/allowed": "management"}, mode)
    namespaces = {mode: f"static-{mode}" for mode in MODES}
    rows = json.loads((here / "../../vectors/static-pod.json").read_text())
    for row in rows:
        if not row.get("pod"):
            continue
        pod = rename(row["pod"])
        try_pod(report, row["name"], pod, namespaces)
        pod["metadata"].setdefault("annotations", {}).update({"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"})
        pod["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "n0", "uid": node_uid("n0"), "controller": True}]
        pod["spec"]["nodeName"] = "n0"
        try_pod(report, row["name"] + " as a mirror pod", pod, namespaces, "system:node:n0")
        try_pod(report, row["name"] + " as a forged mirror pod", pod, namespaces)
    return report.end(f"{len(rows)} static pod vectors, three times each") and ok


def node_uid(name):
    return call("GET", f"/api/v1/nodes/{name}")[1]["metadata"]["uid"]


# --- random pods ---

CLUSTER = {"cpuPartitioning": "AllNodes", "controlPlaneTopology": "HighlyAvailable", "infrastructureTopology": "HighlyAvailable"}
BOTH_POOLS = {"management.workload.openshift.io/cores": "8000", "ran.workload.openshift.io/cores": "2000", "openshift.io/shared-cpus": "8000",
              "openshift.io/guaranteed-cpus": "8000"}
NODES = [{"metadata": {"name": "n0"}, "status": {"allocatable": BOTH_POOLS, "capacity": BOTH_POOLS}},
         {"metadata": {"name": "n1"}, "spec": {"taints": [{"key": "control", "value": "plane", "effect": "NoSchedule"}]},
          "status": {"allocatable": {"cpu": "4"}}}]
STATES = [(CLUSTER, NODES), (CLUSTER, NODES + [{"metadata": {"name": "n2"}, "status": {"allocatable": {"cpu": "4"}}}]),
          ({**CLUSTER, "cpuPartitioning": "None"}, NODES), ({"controlPlaneTopology": "SingleReplica"}, NODES[:1]), (None, NODES)]
NAMESPACES = {"allowed": "management", "ran": "ran", "several": "other,management,ran", "empty": "", "plain": None, "ranged": "management"}
CPUS = ["0", "1m", "100m", "250m", "0.5", "1", "1", "2", "2000m", "1.5", "3", "100u", "0.0015", "1Ki", "300"]
MEMORY = ["1Mi", "64Mi", "1Gi", "0"]
EFFECTS = [PREFERRED] * 12 + ['{ "effect" : "PreferredDuringScheduling" }', '{"effect":"Required"}', "", "{}", "null", "[]", '{"effect":"x","effect":"PreferredDuringScheduling"}',
                              '{"eff\\u0065ct":"PreferredDuringScheduling"}', '{"effect":"PreferredDuringScheduling","a":"b"}']


def resources(r, kind):
    result = {"requests": {}, "limits": {}}
    cpu, memory = r.choice(CPUS), r.choice(MEMORY)
    if kind == "guaranteed":
        return {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"cpu": cpu, "memory": "64Mi"}}
    if r.random() < 0.7:
        result["requests"]["cpu"] = cpu
    if r.random() < 0.6:
        result["requests"]["memory"] = memory
    if r.random() < 0.3:
        result["limits"]["cpu"] = max([cpu if "cpu" in result["requests"] else "0", r.choice(CPUS)], key=amount)
    if r.random() < 0.2:
        result["limits"]["memory"] = max([memory, r.choice(MEMORY)], key=amount)
    if r.random() < 0.06:
        name = r.choice(["management", "ran"]) + CORES
        result["requests"][name] = result["limits"][name] = r.choice(["0", "100", "1k", "250"])
    if r.random() < 0.05:
        name = r.choice(["openshift.io/shared-cpus", "openshift.io/guaranteed-cpus"])
        result["requests"][name] = result["limits"][name] = r.choice(["100", "1k"])
    if r.random() < 0.02:
        result[r.choice(["requests", "limits"])]["cpu"] = r.choice(["-1", "-100m", "-1n"])
    return result


def random_pod(r):
    kind = r.choice(["burstable"] * 4 + ["guaranteed", "best-effort"])
    make = lambda name: {"name": name, "image": "i", **({} if kind == "best-effort" and r.random() < 0.9 else {"resources": resources(r, kind)})}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {}},
           "spec": {"automountServiceAccountToken": False, "containers": [make(f"c{i}") for i in range(r.randint(1, 3))]}}
    init = [make(f"i{i}") for i in range(r.choice([0, 0, 0, 1, 2]))]
    for container in init:
        if r.random() < 0.4:
            container["restartPolicy"] = "Always"
    if init:
        pod["spec"]["initContainers"] = init
    notes, names = pod["metadata"]["annotations"], [c["name"] for c in init + pod["spec"]["containers"]]
    if r.random() < 0.75:
        notes[TARGET + r.choice(["management"] * 8 + ["ran", "ran", "other", ""])] = r.choice(EFFECTS)
    if r.random() < 0.03:
        notes[TARGET + "second"] = PREFERRED
    if r.random() < 0.15:
        notes[RESOURCES + r.choice(names + ["absent"])] = r.choice(
            ['{"cpushares":262144}', '{"cpushares":102}', '{"cpushares": 2}', '{"cpushares":102,"cpulimit":500}', "x", "{}", '{"cpulimit":5,"cpushares":1024}'])
    if r.random() < 0.08:
        notes[STAMP] = r.choice(['{"c0":{"kind":"app","milli":2000,"pool":"guaranteed"}}', "{}", "x"])
    if r.random() < 0.05:
        notes["workload.openshift.io/warning"] = "of a user"
    if r.random() < 0.03:
        notes[r.choice(["kubernetes.io/config.source", "kubernetes.io/config.mirror"])] = r.choice(["file", "api", ""])
    if r.random() < 0.1:
        notes["a/b~c"] = "d"
    if not notes and r.random() < 0.5:
        del pod["metadata"]["annotations"]
    if r.random() < 0.15:
        pod["spec"]["tolerations"] = [r.choice([{"operator": "Exists"}, {"key": "control", "operator": "Exists"}, {"key": "control", "value": "plane"},
                                                {"key": "control", "value": "x"}, {"key": "control", "value": "plane", "effect": "NoExecute"}])]
    if r.random() < 0.05:
        pod["spec"]["resources"] = {"requests": {"cpu": "64", "memory": "64Gi"}, "limits": r.choice([{}, {"cpu": "64", "memory": "64Gi"}])}
    return pod


def try_random(report, state, number, seed):
    if len(report.failed) >= 20:
        return
    r = random.Random(f"{seed}/{state}/{number}")
    name = r.choice(["allowed"] * 6 + list(NAMESPACES))
    pod, namespaces, what = random_pod(r), {mode: f"{name}-{mode}" for mode in MODES}, f"state {state}, pod {number} in {name}"
    pod["metadata"]["name"] = f"p{number}"
    results = try_pod(report, what, pod, namespaces)
    if number % 20 == 0 and not report.failed:
        try_stored(report, what, pod, namespaces, results)


def random_pods(count, seed):
    report = Report()
    for name, allowed in NAMESPACES.items():
        for mode in MODES:
            make_namespace(f"{name}-{mode}", None if allowed is None else {"workload.openshift.io/allowed": allowed}, mode)
    for mode in MODES:
        put(f"/api/v1/namespaces/ranged-{mode}/limitranges", "range", {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "range"}, "spec": {
            "limits": [{"type": "Container", "defaultRequest": {"cpu": "30m", "memory": "8Mi"}, "default": {"memory": "4Gi"}}]}})
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        for i in map(int, os.environ.get("DIFFERENTIAL_STATES", "0 1 2 3 4").split()):
            set_cluster(*STATES[i])
            share = count // 2 if i == 0 else count // 8
            for done in [clients.submit(try_random, report, i, number, seed) for number in range(share)]:
                done.result()
    return report.end(f"random pods with seed {seed}")


# --- the guard alone ---

def intrusion(pod, types):
    """Why a stored pod could reach CPUs that it has no permission for, from the pod alone; types: what its namespace allows."""
    notes = pod["metadata"].get("annotations", {})
    containers = {c["name"]: c.get("resources", {}).get("requests", {}) for c in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]}
    targets = [k[len(TARGET):] for k in notes if k.startswith(TARGET)]
    if len(targets) > 1 or any(not t or t not in types for t in targets):
        return f"targets {targets} where {types} are allowed"
    weights = {k[len(RESOURCES):] for k in notes if k.startswith(RESOURCES)}
    if weights and not targets or weights - set(containers):
        return f"weights {weights} without a workload type or container"
    for name, requests in containers.items():
        cores = [k for k in requests if k.endswith(CORES)]
        if cores and (not targets or cores != [targets[0] + CORES] or name not in weights):
            return f"container {name} requests {cores}"
        if name in weights and '"cpushares":262144' in notes[RESOURCES + name].replace(" ", ""):
            return f"container {name} has the largest weight"
    if "kubernetes.io/config.mirror" in notes or notes.get("kubernetes.io/config.source", "api") != "api":
        return "it claims to be static"
    stamps = json.loads(notes.get(STAMP, "{}"))
    for name, stamp in stamps.items():
        if stamp["milli"] and amount(containers[name].get(f"openshift.io/{stamp['pool']}-cpus", "0")) != stamp["milli"]:
            return f"container {name} is stamped {stamp}"
    return None


def as_stored(pod, answer):
    """The pod with the annotations and resources of another one."""
    pod = copy.deepcopy(pod)
    pod["metadata"]["annotations"] = answer["metadata"].get("annotations", {})
    for kind in ("initContainers", "containers"):
        for mine, other in zip(pod["spec"].get(kind, []), answer["spec"].get(kind, [])):
            mine["resources"] = other.get("resources", {})
    return pod


def decision(is_stored, answer):
    """Comparable between versions: the API server's own validation names problems in the order of a map."""
    if is_stored:
        return "stored"
    return "invalid" if " is invalid: " in answer["message"] else answer["message"]


def try_guard(lines, failed, name, pod, space):
    def dry_run(pod, mode):
        status, answer = post(pod, f"{space}-{mode}", None, "?dryRun=All")
        if status >= 500 or status == 429:
            raise RuntimeError(f"Bail out! {status} {answer}")
        return status in (200, 201), answer

    is_stored, answer = dry_run(pod, "guard")
    lines[name] = decision(is_stored, answer)
    why = intrusion(answer, (NAMESPACES[space] or "").split(",")) if is_stored else None
    if why:
        failed.append(f"{name}: stored by the guard: {why}")
    is_converted, answer = dry_run(pod, "webhook")
    if not is_converted:
        return
    kept, again = dry_run(as_stored(pod, answer), "guard")
    if not kept or essence(again)["containers"] != essence(answer)["containers"]:
        failed.append(f"{name}: the guard does not store what the webhook made of it: {json.dumps(answer)} {json.dumps(again)}")
    lines[name + ", converted"] = decision(kept, again)


POD_LEVEL = " with pod-level resources"  # not compared: Kubernetes before 1.34 drops them, later versions refuse some


def guard(count, seed, path):
    lines, failed, done = {}, [], []
    for name, allowed in NAMESPACES.items():
        for mode in ("guard", "webhook"):
            make_namespace(f"{name}-{mode}", None if allowed is None else {"workload.openshift.io/allowed": allowed}, mode)
    rows = [row for file in ("admission", "static-pod") for row in json.loads((here / f"../../vectors/{file}.json").read_text()) if row.get("pod")]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        for row in rows:
            pod = rename(row["pod"])
            pod["metadata"].pop("namespace", None)
            done += [clients.submit(try_guard, lines, failed, f"{row['name']} in {space}", pod, space) for space in ("allowed", "plain")]
        for number in range(count):
            r = random.Random(f"{seed}/guard/{number}")
            space = r.choice(["allowed"] * 3 + list(NAMESPACES))
            pod = random_pod(r)
            name = f"random pod {number} in {space}" + (POD_LEVEL if "resources" in pod["spec"] else "")
            done.append(clients.submit(try_guard, lines, failed, name, pod, space))
        for each in done:
            each.result()
    for line in failed[:5]:
        print(f"# {line}")
    n_stored = sum(v == "stored" for v in lines.values())
    n_converted = sum(k.endswith(", converted") for k in lines)
    print(f"# guard: {len(lines) - n_converted} pods and {n_converted} made by the webhook, {n_stored} stored, {len(lines) - n_stored} refused, {len(failed)} failures")
    pathlib.Path(path).write_text("".join(json.dumps([k, lines[k]]) + "\n" for k in sorted(lines) if POD_LEVEL not in k))
    return not failed and 0 < n_stored < len(lines) and n_converted > 0


# --- nodes ---

def nodes(path):
    rows = [r for r in json.loads((here / "../../vectors/node-admission.json").read_text()) if r.get("node")]
    lines = []
    for row in rows:
        status = row["cluster"].get("infrastructureStatus") if row["cluster"]["infrastructurePresent"] else None
        set_cluster(status, [])
        time.sleep(2)  # nothing tells when the webhook has seen the change
        node = copy.deepcopy(row["node"])
        node["metadata"] = {"name": "joining"}
        code, answer = call("POST", "/api/v1/nodes?dryRun=All", node)
        lines.append({"name": row["name"], "refused": code >= 400, "taints": [t["key"] for t in answer.get("spec", {}).get("taints", [])]})
    pathlib.Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return bool(lines)


passed = True
if sys.argv[3] == "nodes":
    passed = nodes(sys.argv[4])
elif sys.argv[3] == "guard":
    passed = guard(int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
elif sys.argv[3] == "cluster":
    set_cluster(CLUSTER, NODES)
else:
    passed = vectors() if sys.argv[3] == "vectors" else random_pods(int(sys.argv[4]), int(sys.argv[5]))
sys.exit(0 if passed else 1)
