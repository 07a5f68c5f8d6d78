#!/usr/bin/env python3
"""Restricts what standard input has to the namespaces of a mode: adapt.py policies [PREFIX] | webhook [FILE] | nodes. Input and output are JSON
Lists. With PREFIX the policies get other names, which changes the order in which the API server evaluates them. FILE is the mutating
configuration of mode both: its conditions apply in the namespaces of that mode. "nodes" leaves the webhooks for nodes alone."""

import copy
import json
import pathlib
import sys


def selector(*modes):
    return {"matchExpressions": [{"key": "mode", "operator": "In", "values": list(modes)}]}


def in_modes(hook, *modes):
    hook = copy.deepcopy(hook)
    hook["namespaceSelector"]["matchExpressions"] += selector(*modes)["matchExpressions"]
    return hook


def pod_webhooks(item, shipped):
    """Those of a configuration, once for all modes, or once more with the conditions of mode both."""
    hooks = [hook for hook in item["webhooks"] if hook["name"].startswith("pods.")]
    if item["kind"] != "MutatingWebhookConfiguration" or not shipped:
        return [in_modes(hook, "webhook", "both") for hook in hooks]
    own = [c for hook in shipped["webhooks"] if hook["name"].startswith("pods.") for c in hook["matchConditions"]
           if c["name"] == "not-converted-by-policies"]
    assert len(own) == 1, "mode both has a condition of its own"
    return [in_modes(hook, "webhook") for hook in hooks] + \
        [in_modes({**hook, "name": "both." + hook["name"], "matchConditions": hook["matchConditions"] + own}, "both") for hook in hooks]


what, argument = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
prefix = argument if what == "policies" else ""
both = json.loads(pathlib.Path(argument).read_text()) if what == "webhook" and argument else None
objects = json.load(sys.stdin)
items = []
for item in objects["items"]:
    name = item["metadata"]["name"]
    if what == "nodes":
        item["webhooks"] = [hook for hook in item["webhooks"] if hook["name"].startswith("nodes.")]
    elif what == "webhook":
        item["webhooks"] = pod_webhooks(item, both)
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
