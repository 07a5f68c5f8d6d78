#!/usr/bin/env python3
"""Inputs for both webhooks of the benchmark: generate.py DIR writes
state-small.json and state-large.json (Infrastructure; 1 namespace, 1 node / 10,000 and 5,000),
review.json (a pod creation of 9 KB, as an API server sends it) and review.lua for wrk."""

import json
import pathlib
import sys

out = pathlib.Path(sys.argv[1])
MANAGEMENT = '{"effect":"PreferredDuringScheduling"}'
CORES = "management.workload.openshift.io/cores"


def namespace(i):
    return {
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": f"tenant-{i:05}", "uid": f"00000000-0000-0000-0001-{i:012}",
            "resourceVersion": str(1000 + i), "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"kubernetes.io/metadata.name": f"tenant-{i:05}", "team": f"team-{i % 97}"},
            "annotations": {"workload.openshift.io/allowed": "management"} if i % 4 == 0 else
                           {"openshift.io/description": f"namespace number {i}"},
        },
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    }


def node(i):
    amounts = {"cpu": "64", "memory": "263856524Ki", "pods": "250", "ephemeral-storage": "468315972Ki",
               "hugepages-1Gi": "0", "hugepages-2Mi": "0", CORES: "64000"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": f"worker-{i:04}.example.com", "uid": f"00000000-0000-0000-0002-{i:012}",
            "resourceVersion": str(90000 + i), "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
                       "kubernetes.io/hostname": f"worker-{i:04}.example.com",
                       "node-role.kubernetes.io/worker": "",
                       "topology.kubernetes.io/zone": f"zone-{i % 3}"},
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"podCIDR": f"10.{i // 256}.{i % 256}.0/24", "providerID": f"metal://{i}"},
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": t, "status": "True" if t == "Ready" else "False",
                            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                            "lastTransitionTime": "2026-01-01T00:00:00Z",
                            "reason": f"Kubelet{t}", "message": "as it should be"}
                           for t in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")],
            "addresses": [{"type": "InternalIP", "address": f"192.0.2.{i % 256}"},
                          {"type": "Hostname", "address": f"worker-{i:04}.example.com"}],
            "nodeInfo": {"kernelVersion": "6.12.0", "osImage": "Linux",
                         "containerRuntimeVersion": "containerd://2.1.0", "kubeletVersion": "v1.37.0",
                         "architecture": "amd64", "operatingSystem": "linux", "bootID": "b",
                         "machineID": "m", "systemUUID": "s", "kubeProxyVersion": ""},
        },
    }


def infrastructure():
    return {"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
            "metadata": {"name": "cluster"},
            "status": {"controlPlaneTopology": "HighlyAvailable",
                       "infrastructureTopology": "HighlyAvailable", "cpuPartitioning": "AllNodes"}}


def state(namespaces, nodes):
    return {"apiVersion": "v1", "kind": "List",
            "items": [infrastructure(), *map(namespace, range(namespaces)), *map(node, range(nodes))]}


def container(i):
    return {
        "name": f"component-{i}", "image": f"registry.example/platform/component-{i}:v1.2.3",
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/component", "--config=/etc/component/config.yaml", f"--index={i}"],
        "env": [{"name": f"SETTING_{k}", "value": f"value number {k} of container {i}"} for k in range(8)]
        + [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
        "ports": [{"name": "metrics", "containerPort": 8080 + i, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": f"{20 + 10 * i}m", "memory": "100Mi"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080 + i, "scheme": "HTTP"},
                          "initialDelaySeconds": 10, "timeoutSeconds": 1, "periodSeconds": 10,
                          "successThreshold": 1, "failureThreshold": 3},
        "volumeMounts": [{"name": f"config-{i}", "mountPath": "/etc/component"},
                         {"name": "token", "readOnly": True,
                          "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                            "readOnlyRootFilesystem": True, "runAsNonRoot": True},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    }


def review():
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    fields = {f"f:spec.f:containers.k:component-{i}": {".": {}, "f:env": {".": {}}, "f:image": {},
                                                       "f:resources": {"f:requests": {"f:cpu": {}, "f:memory": {}}}}
              for i in range(4)}
    pod = {
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": "platform-7d9c5b6f4-x2x7k", "generateName": "platform-7d9c5b6f4-",
            "namespace": "tenant-00000", "labels": {"app": "platform", "pod-template-hash": "7d9c5b6f4"},
            "annotations": {"target.workload.openshift.io/management": MANAGEMENT},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "platform-7d9c5b6f4",
                                 "uid": "11111111-2222-3333-4444-555555555555", "controller": True,
                                 "blockOwnerDeletion": True}],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
                               "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}],
        },
        "spec": {
            "volumes": [{"name": f"config-{i}", "configMap": {"name": f"config-{i}", "defaultMode": 420}}
                        for i in range(4)] +
                       [{"name": "token", "projected": {"defaultMode": 420, "sources": [
                           {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}],
            "containers": [container(i) for i in range(4)],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "serviceAccount": "default", "securityContext": {},
            "schedulerName": "default-scheduler", "priority": 2000000000, "enableServiceLinks": True,
            "priorityClassName": "system-cluster-critical", "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [{"key": k, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                            for k in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")],
        },
        "status": {},
    }
    return {
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": kind, "resource": resource,
            "requestKind": kind, "requestResource": resource, "name": "platform-7d9c5b6f4-x2x7k",
            "namespace": "tenant-00000", "operation": "CREATE",
            "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller",
                         "uid": "aaaa", "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system",
                                                   "system:authenticated"]},
            "object": pod, "oldObject": None, "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }


def write(name, value):
    (out / name).write_text(json.dumps(value, separators=(",", ":")))


out.mkdir(parents=True, exist_ok=True)
write("state-small.json", state(1, 1))
write("state-large.json", state(10000, 5000))
write("review.json", review())
(out / "review.lua").write_text(f"""
local f = io.open("{out}/review.json", "rb")
wrk.method = "POST"
wrk.body = f:read("*a")
wrk.headers["Content-Type"] = "application/json"
f:close()
""")
