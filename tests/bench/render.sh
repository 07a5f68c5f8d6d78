#!/usr/bin/env bash
# Renders 10, 100 and 1000 machine config pools, each with its own profile, for OpenShift and for hosts: CPU time
# (wall-clock time depends on other load) and the largest resident memory. Files are written to /dev/shm if possible,
# so that the disk is not measured. Fails when 100 pools for OpenShift take 100 ms or more, or when memory grows faster
# than the number of pools.
set -euo pipefail
cd "$(dirname "$0")/../.."

exec python3 - "$PWD/build/pinfold" <<'END'
import os, pathlib, shutil, subprocess, sys, tempfile

pinfold, work = sys.argv[1], pathlib.Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))

POOL = """apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {{name: pool-{0}, labels: {{machineconfiguration.openshift.io/role: pool-{0}}}}}
spec:
  machineConfigSelector: {{matchLabels: {{machineconfiguration.openshift.io/role: pool-{0}}}}}
  nodeSelector: {{matchLabels: {{node-role.kubernetes.io/pool-{0}: ""}}}}
---
apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {{name: profile-{0}}}
spec:
  cpu: {{reserved: "0-3,{1}", shared: "4-15", isolated: "16-51"}}
  machineConfigPoolSelector: {{machineconfiguration.openshift.io/role: pool-{0}}}
  nodeSelector: {{node-role.kubernetes.io/pool-{0}: ""}}
---
"""
INFRASTRUCTURE = """apiVersion: config.openshift.io/v1
kind: Infrastructure
metadata: {name: cluster}
status: {controlPlaneTopology: HighlyAvailable, infrastructureTopology: HighlyAvailable, cpuPartitioning: AllNodes}
"""


def render(n, target):
    source, out = work / f"in-{n}", work / f"out-{n}-{target}"
    if not source.exists():
        source.mkdir()
        (source / "pools.yaml").write_text("".join(POOL.format(i, 52 + i % 12) for i in range(n)) + INFRASTRUCTURE)
    # ru_maxrss of a child includes the time before exec: time(1) is smaller than Python.
    arguments = ["/usr/bin/time", "-q", "-f", "%M", "-o", work / "kib",
                 pinfold, "render", "--target", target, "--asset-input-dir", source, "--asset-output-dir", out]
    with open(work / "log", "w") as log:
        child = subprocess.Popen(arguments, stdout=log, stderr=log)
        _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"render failed: {(work / 'log').read_text()[:2000]}")
    files = sum(len(names) for _, _, names in os.walk(out))
    size = sum(p.stat().st_size for p in out.rglob("*") if p.is_file())
    shutil.rmtree(out)
    rss = int((work / "kib").read_text()) / 1024
    return (used.ru_utime + used.ru_stime) * 1000, used.ru_utime * 1000, rss, files, size / 1e6


try:
    for target in ("openshift", "host"):
        seen = {}
        for n in (10, 100, 1000):
            runs = sorted(render(n, target) for _ in range(5 if n < 1000 else 2))
            seen[n] = runs[0]
            ms, user, rss, files, size = runs[0]
            print(f"render: {n:4} pools, {target:9} {ms:7.1f} ms CPU ({user:.1f} ms of it in user mode), "
                  f"{rss:6.1f} MiB, {files} files, {size:.2f} MB")
        if target == "openshift" and seen[100][0] >= 100:
            sys.exit(f"100 pools took {seen[100][0]:.0f} ms, wanted less than 100")
        if seen[1000][2] > 11 * seen[100][2]:
            sys.exit("memory grows faster than the number of pools")
finally:
    shutil.rmtree(work)
END
