"""compare.py split ALL DIR | decided PODS N | compare SIM PODS NODES GIVEN

The manifests of `sim --print-manifests` as namespaces, nodes and pods that select a pool; whether a scheduler has decided about all
pods; and the comparison of a simulation with the pods of a cluster. `compare` exits with 3 when they differ."""

import collections
import json
import sys

ROLE = "node-role.kubernetes.io/"


def write(path, items):
    with open(path, "w") as f:
        json.dump({"apiVersion": "v1", "kind": "List", "items": items}, f)


def items_of(path):
    with open(path) as f:
        return json.load(f)["items"]


def kind_of(pod):
    """The name that the generator gave: "du-phy-17" is a du-phy."""
    return pod["metadata"]["name"].rsplit("-", 1)[0]


def pool_for(pod, index):
    """Units and functions to their pools, platform pods to both in turn, batch work to the small one; the rest may run anywhere."""
    namespace = pod["metadata"]["namespace"]
    if namespace in ("ran", "core"):
        return namespace
    if namespace.startswith("platform-"):
        return ("ran", "core")[index % 2]
    return "edge" if kind_of(pod) == "batch" else None


def split(path, directory):
    nodes, pods = [], []
    for item in items_of(path):
        if item["kind"] == "Node":
            nodes.append(item)
            continue
        pool = pool_for(item, len(pods))
        if pool:
            item["spec"]["nodeSelector"] = {ROLE + pool: ""}
        pods.append(item)
    names = sorted({pod["metadata"]["namespace"] for pod in pods})
    write(f"{directory}/nodes.json", nodes)
    write(f"{directory}/pods.json", pods)
    write(f"{directory}/namespaces.json", [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": {"workload.openshift.io/allowed": "management"}}}
        for name in names])


def message_of(pod):
    """Why it waits, without what follows about preemption; None while the scheduler has not said anything."""
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition["message"].split(" preemption:")[0].strip()
    return None


def decided(path, n):
    pods = items_of(path)
    return len(pods) == int(n) and all(p["spec"].get("nodeName") or message_of(p) for p in pods)


def millicores(text):
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


def real_totals(pods, nodes):
    pool_of = {n["metadata"]["name"]: next(k[len(ROLE):] for k in n["metadata"]["labels"] if k.startswith(ROLE)) for n in nodes}
    placed, waiting, reasons = collections.Counter(), collections.Counter(), {}
    cpu, per_node = collections.Counter(), collections.Counter({name: 0 for name in pool_of})
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if not node:
            waiting[kind_of(pod)] += 1
            reasons.setdefault(kind_of(pod), message_of(pod))
            continue
        placed[kind_of(pod), pool_of[node]] += 1
        per_node[node] += 1
        for container in pod["spec"]["containers"]:
            cpu[pool_of[node]] += millicores(container["resources"].get("requests", {}).get("cpu", "0"))
    spread = {pool: [per_node[n] for n in pool_of if pool_of[n] == pool] for pool in set(pool_of.values())}
    return placed, waiting, reasons, cpu, spread


def sim_totals(sim):
    placed, waiting, reasons = collections.Counter(), collections.Counter(), {}
    for c in sim["classes"]:
        for pool, n in c["runningInPools"].items():
            placed[c["name"].rsplit("-", 1)[0], pool] += n
        if c["leftOver"]:
            waiting[c["name"].rsplit("-", 1)[0]] += c["leftOver"]
            reasons[c["name"].rsplit("-", 1)[0]] = c["whyLeftOver"]
    cpu = {p["name"]: p["requested"]["cpuMillicores"] for p in sim["pools"]}
    spread = {p["name"]: [p["fewestPodsOnNode"], p["mostPodsOnNode"]] for p in sim["pools"]}
    return placed, waiting, reasons, cpu, spread


def compare(sim_path, pods_path, nodes_path, given_path):
    with open(sim_path) as f:
        sim = sim_totals(json.load(f))
    real = real_totals(items_of(pods_path), items_of(nodes_path))
    free = {kind_of(pod) for pod in items_of(given_path) if not pod["spec"].get("nodeSelector")}
    differences = []
    pools = sorted({pool for _, pool in real[0] | sim[0]})
    print(f"{'pool':6} {'pods':>5} {'sim':>5}  CPU requested (m)   in sim  pods on a node  in sim")
    for pool in pools:
        totals = [sum(n for (_, p), n in t[0].items() if p == pool) for t in (real, sim)]
        print(f"{pool:6} {totals[0]:5} {totals[1]:5}  {real[3][pool]:17} {sim[3][pool]:8}"
              f"  {min(real[4][pool]):6} to {max(real[4][pool]):4} {sim[4][pool][0]:4} to {sim[4][pool][1]}")
        if real[3][pool] != sim[3][pool]:
            differences.append(f"{pool}: {real[3][pool]}m CPU requested, {sim[3][pool]}m in the simulation")
    for key in sorted(real[0] | sim[0]):
        if real[0][key] == sim[0][key]:
            continue
        text = f"{key[0]} in {key[1]}: {real[0][key]} pods, {sim[0][key]} in the simulation"
        if key[0] in free:
            print(f"{text}: it selects no pool, and the best node is drawn among equals")
        else:
            differences.append(text)
    for kind in sorted(real[1] | sim[1]):
        print(f"left over: {real[1][kind]} {kind}, {sim[1][kind]} in the simulation: {real[2].get(kind)}")
        if real[1][kind] != sim[1][kind]:
            differences.append(f"{kind}: {real[1][kind]} left over, {sim[1][kind]} in the simulation")
        elif real[2][kind] != sim[2][kind]:
            differences.append(f"{kind}: the reasons differ: {real[2][kind]!r}, {sim[2][kind]!r}")
    for text in differences:
        print(f"DIFFERENT: {text}")
    return 3 if differences else 0


command, *arguments = sys.argv[1:]
if command == "split":
    split(*arguments)
elif command == "decided":
    sys.exit(0 if decided(*arguments) else 1)
else:
    sys.exit(compare(*arguments))
