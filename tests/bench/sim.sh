#!/usr/bin/env bash
# Time and memory of `pinfold sim` with 1,000 and 5,000 nodes and 30 pods for each. Fails when 5,000 nodes and 150,000 pods take 5 s of CPU time or
# 1 GiB, or when five times as much takes more than eight times as long. CPU time, so that other work on the machine does not count.
set -euo pipefail
cd "$(dirname "$0")/../.."

exec python3 - build/pinfold <<'END'
import os, subprocess, sys, tempfile

PROFILE = """apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: du}
spec:
  cpu: {reserved: "0-3,32-35", isolated: "12-31,44-63", shared: "4-11,36-43"}
  nodeSelector: {node-role.kubernetes.io/ran: ""}
  numa: {topologyPolicy: restricted}
"""
CASES = {  # name: nodes, pods, machine, workload, churn
    "1,000 nodes": (1000, 30000, "pack:1 core:32 pu:2", "ran-site", 0),
    "5,000 nodes": (5000, 150000, "pack:1 core:32 pu:2", "ran-site", 0),
    "5,000 nodes, 2 NUMA nodes, churn": (5000, 150000, "pack:2 numa:1 core:16 pu:2", "mixed", 10000),
    "1,000 nodes, full": (1000, 150000, "pack:1 core:32 pu:2", "mixed", 10000),
}


def measure(program, profile, nodes, pods, machine, workload, churn):
    """Seconds of CPU time, and the peak of memory in MiB."""
    pid = os.posix_spawn(program, [program, "sim", "--nodes", f"ran={nodes} x {machine}", "-f", profile, "--workload", workload,
                                   "--pods", str(pods), "--churn", str(churn), "--feature-gates", "GuaranteedCPUPool=true"],
                         os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)])
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit("sim failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


with tempfile.NamedTemporaryFile("w", suffix=".yaml") as profile:
    profile.write(PROFILE)
    profile.flush()
    results = {}
    for name, case in CASES.items():
        results[name] = min(measure(sys.argv[1], profile.name, *case) for _ in range(3))
        print(f"sim: {name + ':':34} {results[name][0]:5.2f} s, {results[name][1]:4.0f} MiB")
growth = results["5,000 nodes"][0] / results["1,000 nodes"][0]
print(f"sim: five times the nodes and pods take {growth:.1f} times as long")
too_much = [name for name, (seconds, mib) in results.items() if seconds > 5 or mib > 1024]
sys.exit(f"too much: {', '.join(too_much)}" if too_much else "not linear" if growth > 8 else 0)
END
