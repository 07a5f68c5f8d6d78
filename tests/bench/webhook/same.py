#!/usr/bin/env python3
"""same.py REVIEW RESPONSE RESPONSE: both patches must turn the review's object into the same one."""

import base64
import copy
import json
import sys


def walk(value, path):
    for token in path:
        value = value[int(token)] if isinstance(value, list) else value[token]
    return value


def patched(original, answer):
    value = copy.deepcopy(original)
    response = json.load(open(answer))["response"]
    assert response["allowed"], response
    for op in json.loads(base64.b64decode(response["patch"])):
        *path, last = [t.replace("~1", "/").replace("~0", "~") for t in op["path"].split("/")[1:]]
        parent = walk(value, path)
        if op["op"] == "remove":
            del parent[last]
        else:
            parent[last] = op["value"]
    return value


original = json.load(open(sys.argv[1]))["request"]["object"]
a, b = (patched(original, answer) for answer in sys.argv[2:4])
for pod in (a, b):  # what Go adds when it writes any pod
    pod.pop("status", None)
    pod["metadata"].pop("creationTimestamp", None)
    for c in pod["spec"]["containers"]:
        for key in ("requests", "limits"):
            c["resources"][key] = {k: str(v) for k, v in c["resources"][key].items()}
if a != b or a == original:
    for path in ("metadata", "spec"):
        print(json.dumps(a[path], sort_keys=True), json.dumps(b[path], sort_keys=True), sep="\n")
    sys.exit("the two webhooks produce different pods")
