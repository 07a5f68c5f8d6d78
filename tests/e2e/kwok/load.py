"""load.py PORT PKI COMMAND...: many objects on a real API server, over several connections at once.

nodes FIRST COUNT PROFILE        Nodes with the resources of a partitioned node, and their NodePartitions
pods PREFIX COUNT NODES          Pods in namespace load that opt in, on the Nodes 0 to NODES - 1 in turn
report FIRST COUNT PROFILE GENERATION   the NodePartitions as agents would report them

Prints one line of JSON: objects, seconds, objects for each second, and for pods how many are stored converted. Any failure ends
it with status 1."""

import http.client
import json
import multiprocessing
import ssl
import sys
import time

PROCESSES = 8
CORES = "management.workload.openshift.io/cores"
AMOUNTS = {"cpu": "56", "memory": "256Gi", "pods": "250", CORES: "64k"}
NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/load/pods"
PARTITIONS = "/apis/pinfold.io/v1alpha1/nodepartitions"
MERGE = "application/merge-patch+json"


class Connection:
    def __init__(self, port, pki):
        context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
        context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
        self.connection = http.client.HTTPSConnection("127.0.0.1", int(port), context=context, timeout=600)

    def call(self, method, path, body, content_type="application/json"):
        """A busy API server may answer 429; it is not a failure of the cluster."""
        for _ in range(600):
            self.connection.request(method, path, json.dumps(body), {"Content-Type": content_type})
            response = self.connection.getresponse()
            data = response.read()
            if response.status != 429:
                break
            time.sleep(0.1)
        if response.status >= 300:
            raise SystemExit(f"{method} {path}: {response.status} {data[:300].decode()}")
        return data


def make_node(connection, number, profile):
    name = f"kwok-{number}"
    connection.call("POST", NODES, {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "node-role.kubernetes.io/" + profile: ""}},
        "status": {"capacity": AMOUNTS, "allocatable": AMOUNTS}})
    connection.call("POST", PARTITIONS, {"apiVersion": "pinfold.io/v1alpha1", "kind": "NodePartition", "metadata": {"name": name}})
    report(connection, number, profile, 1)


def make_pod(connection, prefix, number, n_nodes):
    data = connection.call("POST", PODS, {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": f"{prefix}-{number}",
                     "annotations": {"target.workload.openshift.io/management": '{"effect":"PreferredDuringScheduling"}'}},
        "spec": {"nodeName": f"kwok-{number % n_nodes}", "containers": [
            {"name": name, "image": "registry.example.com/load:1", "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}}
            for name in ("main", "helper")]}})
    return data.count(f'"{CORES}":"50"'.encode()) >= 2


def report(connection, number, profile, generation):
    connection.call("PATCH", f"{PARTITIONS}/kwok-{number}/status", {"status": {
        "agentVersion": "0.0.0", "source": "Profile", "profile": {"name": profile, "generation": int(generation)},
        "cpus": {"management": "0-7", "online": "0-63"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Partitioned", "message": "as the profile says",
                        "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}]}}, MERGE)


def work(port, pki, command, numbers, arguments, results):
    connection, converted = Connection(port, pki), 0
    for number in numbers:
        if command == "pods":
            converted += make_pod(connection, arguments[0], number, int(arguments[1]))
        elif command == "nodes":
            make_node(connection, number, arguments[0])
        else:
            report(connection, number, *arguments)
    results.put(converted)


def main(port, pki, command, first, count, *arguments):
    if command == "pods":
        arguments, first = (first, *arguments), 0
    numbers, results = range(int(first), int(first) + int(count)), multiprocessing.Queue()
    begin = time.monotonic()
    workers = [multiprocessing.Process(target=work, args=(port, pki, command, numbers[i::PROCESSES], arguments, results))
               for i in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        sys.exit(1)
    seconds = time.monotonic() - begin
    print(json.dumps({"objects": len(numbers), "seconds": round(seconds, 2), "rate": round(len(numbers) / seconds, 1),
                      "converted": sum(results.get() for _ in workers)}))


main(*sys.argv[1:])
