#!/usr/bin/env python3
"""expect.py CONTROL-PLANE DIR: writes what the containers of every node are to have, for observe.py, from the API server's pods.

CONTROL-PLANE is a directory of tests/e2e/lib/control-plane.sh. For each node there is DIR/NODE/expect, and each container that runs has a
file there. What it is to have follows from its pod alone, not from what Pinfold says: pods that opted in are management, as is the agent;
a container of a Guaranteed pod with whole CPUs is exclusive, and ending when its pod is being deleted; all others are shared.

Once a second all pods are read and compared with the files. DIR/polls is the number of times.
"""
import http.client
import json
import os
import ssl
import sys
import time

TARGET = "target.workload.openshift.io/management"


def connect(control_plane):
    with open(os.path.join(control_plane, "port"), encoding="utf-8") as file:
        port = file.read()
    pki = os.path.join(control_plane, "pki")
    context = ssl.create_default_context(cafile=os.path.join(pki, "ca.crt"))
    context.load_cert_chain(os.path.join(pki, "admin.crt"), os.path.join(pki, "admin.key"))
    return http.client.HTTPSConnection("127.0.0.1", int(port), timeout=60, context=context)


def pods_of(connection):
    connection.request("GET", "/api/v1/pods")
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise OSError(f"status {response.status}")
    return json.loads(body)["items"]


def classify(pod, container):
    """The class of a container, and how many CPUs it is to own."""
    meta = pod["metadata"]
    if TARGET in meta.get("annotations", {}) or meta["namespace"] == "pinfold-agent":
        return "management", 0
    cpu = container.get("resources", {}).get("limits", {}).get("cpu", "")
    if pod["status"].get("qosClass") == "Guaranteed" and cpu.isdigit():
        return ("ending" if "deletionTimestamp" in meta else "exclusive"), int(cpu)
    return "shared", 0


def expectations(pods):
    """(node, name of the file) -> its text."""
    wanted = {}
    for pod in pods:
        node, meta = pod["spec"].get("nodeName"), pod["metadata"]
        specs = {container["name"]: container for container in pod["spec"]["containers"]}
        for status in pod["status"].get("containerStatuses", []):
            if node and "running" in status.get("state", {}) and status["name"] in specs:
                kind, number = classify(pod, specs[status["name"]])
                identity = status["containerID"].rpartition("/")[2]
                wanted[(node, f"{meta['namespace']}.{meta['name']}.{status['name']}")] = f"{identity} {kind} {number}\n"
    return wanted


def replace(directory, path, text):
    """Nothing reads half a file."""
    with open(os.path.join(directory, "writing"), "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(os.path.join(directory, "writing"), os.path.join(directory, path))


def write(directory, before, wanted):
    for (node, name), text in wanted.items():
        if before.get((node, name)) != text and os.path.isdir(os.path.join(directory, node)):
            replace(directory, os.path.join(node, "expect", name), text)
    for node, name in before.keys() - wanted.keys():
        if os.path.exists(os.path.join(directory, node, "expect", name)):
            os.remove(os.path.join(directory, node, "expect", name))


def main():
    control_plane, directory = sys.argv[1:]
    connection, before, polls = connect(control_plane), {}, 0
    while True:
        try:
            wanted = expectations(pods_of(connection))
        except (OSError, http.client.HTTPException) as error:
            print(f"{time.strftime('%H:%M:%S')} {error}", flush=True)
            connection.close()
        else:
            write(directory, before, wanted)
            before, polls = wanted, polls + 1
            replace(directory, "polls", f"{polls}\n")
        time.sleep(1)


if __name__ == "__main__":
    main()
