#!/usr/bin/env python3
"""Restricts what standard input has to the namespaces of a mode: adapt.py policies | webhook [PREFIX]. Input and output are JSON Lists. "nodes"
leaves the webhooks for nodes alone.
With PREFIX the policies get other names, which changes the order in which the API server evaluates them."""

import json
import sys


def selector(*modes):
    return {"matchExpressions": [{"key": "mode", "operator": "In", "values": list(modes)}]}


what, prefix = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
objects = json.load(sys.stdin)
items = []
for item in objects["items"]:
    name = item["metadata"]["name"]
    if what == "nodes":
        item["webhooks"] = [hook for hook in item["webhooks"] if hook["name"].startswith("nodes.")]
    elif what == "webhook":
        for hook in item["webhooks"]:
            if hook["name"].startswith("pods."):
                hook["namespaceSelector"]["matchExpressions"] += selector("webhook", "both")["matchExpressions"]
        item["webhooks"] = [hook for hook in item["webhooks"] if hook["name"].startswith("pods.")]
    elif name in ("pinfold-nodes", "pinfold-tainted-nodes", "pinfold-cluster-flag"):  # the test turns the flag off, too
        continue
    elif item["kind"].endswith("Binding") and name in ("pinfold-workloads", "pinfold-warnings", "pinfold-converted"):
        item["spec"]["matchResources"] = {"namespaceSelector": selector("policy", "both")}
    if prefix:
        item["metadata"]["name"] = prefix + name
        if "policyName" in item["spec"]:
            item["spec"]["policyName"] = prefix + item["spec"]["policyName"]
    items.append(item)
objects["items"] = items
json.dump(objects, sys.stdout)
