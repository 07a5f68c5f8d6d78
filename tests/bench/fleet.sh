#!/usr/bin/env bash
# Time and memory of `pinfold fleet` over 700 and 3,500 single-node clusters, each a directory with what kubectl prints for its Node, NodePartition, profile
# and cluster flag. Fails when 3,500 take 10 s of CPU time or 100 MiB, or when five times as many take more than eight times as long.
set -euo pipefail
cd "$(dirname "$0")/../.."

exec python3 - build/pinfold <<'END'
import json, os, subprocess, sys, tempfile

PROFILE = """apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {{name: du, generation: 3}}
spec:
  cpu: {{reserved: "0-3,32-35", isolated: "{isolated}", shared: "4-11,36-43"}}
  nodeSelector: {{node-role.kubernetes.io/master: ""}}
  numa: {{topologyPolicy: restricted}}
"""


def node(name, i):
    """As large as a Node of a real cluster, which lists its images."""
    images = "".join(f"""
  - names:
    - registry.example.com/team/image-{k}@sha256:{'0' * 64}
    sizeBytes: {1000000 + k}""" for k in range(30))
    return f"""apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{node-role.kubernetes.io/master: "", kubernetes.io/hostname: {name}}}
status:
  capacity: {{cpu: "64", memory: 256Gi, pods: "250", management.workload.openshift.io/cores: "64000"}}
  allocatable: {{cpu: "56", memory: 250Gi, pods: "250", management.workload.openshift.io/cores: "64000"}}
  conditions:
  - {{type: Ready, status: "True", reason: KubeletReady, message: kubelet is ready, lastHeartbeatTime: "2026-11-17T10:00:00Z"}}
  - {{type: PartitioningReady, status: "True", reason: Pinning, message: "cri-o: management CPUs 0-3,32-35", lastHeartbeatTime: "2026-11-17T10:00:00Z"}}
  nodeInfo:
    kubeletVersion: {'v1.35.4' if i % 1000 == 7 else 'v1.36.4'}
    kernelVersion: 6.12.0-{i % 3}
    osImage: Debian GNU/Linux 13
    containerRuntimeVersion: cri-o://1.36.3
  images:{images}
"""


def partition(name, i):
    return f"""apiVersion: pinfold.io/v1alpha1
kind: NodePartition
metadata: {{name: {name}}}
status:
  agentVersion: {'0.1.0' if i % 1200 == 5 else '0.2.0'}
  source: Profile
  profile: {{name: du, generation: 3}}
  cpus: {{management: "0-3,32-35", shared: "4-11,36-43", guaranteed: "12-31,44-63", online: "0-63"}}
  numaNodes: [{{id: 0, cpus: "0-31"}}, {{id: 1, cpus: "32-63"}}]
  counters: {{driftCorrected: 0, driftFailed: {i % 900 == 11 and 2 or 0}, refused: 0}}
  conditions:
  - {{type: Ready, status: "True", reason: Partitioned, message: as the profile says, lastTransitionTime: "2026-11-01T00:00:00Z"}}
  - {{type: HostConfigured, status: "True", reason: AsConfigured, message: "", lastTransitionTime: "2026-11-01T00:00:00Z"}}
"""


def write(directory, count):
    for i in range(count):
        name = f"site-{i:04}"
        os.makedirs(f"{directory}/{name}")
        for file, text in {"node": node(name, i), "partition": partition(name, i), "profile": PROFILE.format(isolated="12-31,44-63"),
                           "flag": "apiVersion: config.openshift.io/v1\nkind: Infrastructure\nmetadata: {name: cluster}\nstatus: {cpuPartitioning: AllNodes}\n"}.items():
            with open(f"{directory}/{name}/{file}.yaml", "w") as f:
                f.write(text)


def measure(program, directory, plan):
    with tempfile.TemporaryFile() as out:
        pid = os.posix_spawn(program, [program, "fleet", directory, "--plan", plan, "-o", "json"], os.environ,
                             file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
        _, status, usage = os.wait4(pid, 0)
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            sys.exit("fleet failed")
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, json.load(out)


results = {}
for count in (700, 3500):
    with tempfile.TemporaryDirectory() as directory, tempfile.NamedTemporaryFile("w", suffix=".yaml") as plan:
        plan.write(PROFILE.format(isolated="13-31,45-63").replace('"4-11,36-43"', '"4-12,36-44"'))
        plan.flush()
        write(directory, count)
        seconds, mib, report = min((measure(sys.argv[1], directory, plan.name) for _ in range(3)), key=lambda r: r[:2])
        results[count] = seconds, mib
        print(f"fleet: {count:5} clusters: {seconds:5.2f} s, {mib:4.0f} MiB; {report['planned']['reboot']} reboots, {len(report['outliers'])} outliers, "
              f"{report['findings']} findings")
        if report["nodes"] != count or report["planned"]["reboot"] != count:
            sys.exit("not every node is counted")
growth = results[3500][0] / results[700][0]
print(f"fleet: five times the clusters take {growth:.1f} times as long")
if results[3500][0] > 10 or results[3500][1] > 100:
    sys.exit("3,500 clusters take too much")
sys.exit("not linear" if growth > 8 else 0)
END
