#!/usr/bin/env python3
"""Nodes and NodePartitions as objects on a real API server, and a substitute for the agents of such nodes.

cluster.py PORT PKI create PREFIX COUNT PROFILE...   nodes of these profiles in turn, each with a NodePartition
cluster.py PORT PKI pending WHAT HASH NODE...        the nodes wait for a change
cluster.py PORT PKI agents LOG                       applies what is granted; LOG gets every change of both kinds
cluster.py PORT PKI report NODE READY GENERATION     what an agent reports: True or False, and the profile's generation

cluster.py check LOG MAX NODE_COUNT   at no version of the log were more than MAX nodes of a profile cordoned or
                                      granted, and NODE_COUNT changes were applied, each once"""

import http.client
import json
import random
import ssl
import sys
import threading
import time

NODES, PARTITIONS = "/api/v1/nodes", "/apis/pinfold.io/v1alpha1/nodepartitions"
MERGE = "application/merge-patch+json"


class Server:
    def __init__(self, port, pki):
        self.context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
        self.context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
        self.port = int(port)
        self.connection = None

    def open(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=3600)

    def call(self, method, path, body=None, content_type="application/json"):
        for attempt in range(60):
            try:
                self.connection = self.connection or self.open()
                self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                        {"Content-Type": content_type})
                response = self.connection.getresponse()
                data = json.loads(response.read() or b"{}")
                if response.status < 500 and response.status != 429:
                    return response.status, data
            except (OSError, http.client.HTTPException):
                self.connection = None
            time.sleep(0.2)
        sys.exit(f"{method} {path}: no response")

    def must(self, *args, **kwargs):
        status, data = self.call(*args, **kwargs)
        if status >= 300:
            sys.exit(f"{args[0]} {args[1]}: {status} {data.get('message')}")
        return data

    def watch(self, path, handle):
        """Calls handle(type, object) for everything that exists and every change."""
        version = None
        while True:
            if version is None:
                listed = Server.must(self, "GET", path)
                for item in listed["items"]:
                    handle("ADDED", item)
                version = listed["metadata"]["resourceVersion"]
            connection = self.open()
            try:
                connection.request("GET", f"{path}?watch=1&resourceVersion={version}")
                for line in connection.getresponse():
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        version = None
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    handle(event["type"], event["object"])
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.2)


def report(server, node, profile, ready, generation):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    server.must("PATCH", f"{PARTITIONS}/{node}/status", {"status": {
        "agentVersion": "0.0.0", "source": "Profile", "profile": {"name": profile, "generation": int(generation)},
        "cpus": {"management": "0-1", "online": "0-7"},
        "conditions": [{"type": "Ready", "status": ready, "reason": "Partitioned" if ready == "True" else "ResizeRefused",
                        "message": "as the profile says" if ready == "True" else "CPU 4 is in use",
                        "lastTransitionTime": now}]}}, content_type=MERGE)


def create(server, prefix, count, profiles):
    for i in range(int(count)):
        name, profile = f"{prefix}{i}", profiles[i % len(profiles)]
        # As large as a Node of a real cluster, which lists its images.
        images = [{"names": [f"registry.example/team/image-{k}@sha256:{'0' * 64}"], "sizeBytes": 1000000} for k in range(30)]
        node = server.must("POST", NODES, {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"profile": profile, "kubernetes.io/hostname": name}},
            "status": {"images": images, "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}})
        server.must("POST", PARTITIONS, {"apiVersion": "pinfold.io/v1alpha1", "kind": "NodePartition", "metadata": {
            "name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}]}})
        report(server, name, profile, "True", 1)


def pending(server, what, digest, nodes):
    for node in nodes:
        server.must("PATCH", f"{PARTITIONS}/{node}/status", {"status": {"pending": [
            {"what": what, "reason": "FilesDiffer", "message": "files differ from the profile", "hash": digest}]}},
            content_type=MERGE)


def set_ready(server, node, is_ready):
    server.must("PATCH", f"{NODES}/{node}/status", {"status": {"conditions": [
        {"type": "Ready", "status": "True" if is_ready else "False", "reason": "Kubelet"}]}},
        content_type="application/strategic-merge-patch+json")


def agents(server, path):
    lock, log, busy = threading.Lock(), open(path, "a", encoding="utf-8", buffering=1), set()

    def record(*fields):
        with lock:
            print(*fields, sep="\t", file=log)

    def apply(node, digest):
        mine = Server(server.port, pki)
        time.sleep(random.uniform(0, 0.3))
        set_ready(mine, node, False)  # the kubelet restarts
        time.sleep(random.uniform(0, 0.3))
        mine.must("PATCH", f"{PARTITIONS}/{node}/status", {"status": {"pending": None}}, content_type=MERGE)
        record("applied", node, digest)
        set_ready(mine, node, True)
        with lock:
            busy.discard((node, digest))

    def on_partition(kind, item):
        node, granted = item["metadata"]["name"], item.get("spec", {}).get("granted", "")
        record("granted", item["metadata"]["resourceVersion"], node, granted if kind != "DELETED" else "")
        waits = [p.get("hash") for p in item.get("status", {}).get("pending", [])]
        with lock:
            begins = granted and granted in waits and (node, granted) not in busy
            if begins:
                busy.add((node, granted))
        if begins:
            threading.Thread(target=apply, args=(node, granted), daemon=True).start()

    def on_node(kind, item):
        meta = item["metadata"]
        record("rollout", meta["resourceVersion"], meta["name"], meta.get("annotations", {}).get("pinfold.io/rollout", ""),
               meta.get("labels", {}).get("profile", ""))

    threading.Thread(target=Server(server.port, pki).watch, args=(NODES, on_node), daemon=True).start()
    Server(server.port, pki).watch(PARTITIONS, on_partition)


def check(path, most, count):
    events, applied, profile = [], {}, {}
    for line in open(path, encoding="utf-8"):
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "applied":
            applied[fields[1], fields[2]] = applied.get((fields[1], fields[2]), 0) + 1
        else:
            events.append((int(fields[1]), fields[0], fields[2], fields[3]))
            if fields[0] == "rollout":
                profile[fields[2]] = fields[4]
    taken, highest = {}, {}
    for version, kind, node, value in sorted(set(events)):
        (taken.setdefault(node, set()).add if value else taken.setdefault(node, set()).discard)(kind)
        of = profile.get(node, "")
        now = sum(1 for other, how in taken.items() if how and profile.get(other, "") == of)
        highest[of] = max(highest.get(of, 0), now)
    twice = [key for key, n in applied.items() if n > 1]
    print(f"most nodes taken at once: {highest}, changes applied: {len(applied)}, more than once: {twice}")
    sys.exit(any(n > int(most) for n in highest.values()) or bool(twice) or len(applied) != int(count))


if sys.argv[1] == "check":
    check(*sys.argv[2:])
port, pki, command, *rest = sys.argv[1:]
api = Server(port, pki)
if command == "create":
    create(api, rest[0], rest[1], rest[2:])
elif command == "pending":
    pending(api, rest[0], rest[1], rest[2:])
elif command == "report":
    report(api, rest[0], Server.must(api, "GET", f"{NODES}/{rest[0]}")["metadata"]["labels"]["profile"], rest[1], rest[2])
else:
    agents(api, rest[0])
