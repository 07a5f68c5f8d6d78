#!/usr/bin/env python3
"""The chart renders the objects of the kustomizations. compare.py HELM KUBECTL [--set NAME=VALUE]: without --set every pair of
CASES is compared; with it, only the default one, with that value (a test of this test). Prints the first differences."""

import pathlib
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
KEEP = "helm.sh/resource-policy"  # the only thing that the chart adds

# The overlays are of the webhook alone.
WEBHOOK_ONLY = {"agent": {"enabled": False}, "operator": {"enabled": False}}
PUBLISH_TOPOLOGY = [{"target": {"kind": "DaemonSet", "name": "pinfold-agent"}, "patch": yaml.dump(
    [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--publish-topology"}])}]

# Name, values, directories of deploy/, patches of theirs.
CASES = [
    ("defaults", {}, ["."], []),
    ("overlays/fail", {**WEBHOOK_ONLY, "webhook": {"failurePolicy": "Fail"}}, ["overlays/fail"], []),
    ("overlays/pools", {**WEBHOOK_ONLY, "webhook": {"pools": True}}, ["overlays/pools"], []),
    ("overlays/refuse", {**WEBHOOK_ONLY, "webhook": {"admissionMode": "refuse"}}, ["overlays/refuse"], []),
    ("overlays/network-policy", {**WEBHOOK_ONLY, "networkPolicy": {"nodeCIDRs": ["192.0.2.0/24"]}}, ["overlays/network-policy"], []),
    *((f"overlays/{d}", {"distribution": d}, [f"overlays/{d}"], []) for d in
      ("k3s", "rke2", "microk8s", "talos", "microshift", "openshift")),
    ("overlays/managed", {"agent": {"hostConfiguration": "managed"}}, ["overlays/managed"], []),
    *((f"overlays/{m}", {"admission": {"mode": m}}, [f"overlays/{m}"], []) for m in ("policy", "both")),
    ("distribution kind", {"distribution": "kind"}, ["."], []),
    ("monitoring", {"monitoring": {"enabled": True}}, [".", "monitoring"], []),
    ("dashboard", {"dashboard": {"enabled": True}}, [".", "dashboard"], []),
    ("overlays/dashboard-users", {"dashboard": {"enabled": True, "userTokens": True}}, [".", "overlays/dashboard-users"], []),
    ("topology", {"topology": {"enabled": True}}, [".", "topology"], PUBLISH_TOPOLOGY),
]


def unused() -> list:
    """Overlays that no case covers."""
    known = {d for *_, directories, _ in CASES for d in directories}
    return [f"overlays/{d.name}: no case" for d in (DEPLOY / "overlays").iterdir() if f"overlays/{d.name}" not in known]


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def sort_volumes(value):
    """Their order has no meaning, and kustomize changes it."""
    for v in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        sort_volumes(v)
    if isinstance(value, dict):
        for key in {"volumes", "volumeMounts"} & {*value}:
            value[key].sort(key=lambda v: (v["name"], v.get("mountPath", "")))


def objects(text: str) -> dict:
    found = {}
    for o in yaml.safe_load_all(text):
        if not o:
            continue
        meta = o["metadata"]
        if KEEP in meta.get("annotations", {}):
            del meta["annotations"][KEEP]
            if not meta["annotations"]:
                del meta["annotations"]
        sort_volumes(o)
        key = (o["apiVersion"], o["kind"], meta.get("namespace"), meta["name"])
        if key in found:
            sys.exit(f"two objects {key}")
        found[key] = o
    return found


def kustomized(kubectl: str, directories: list, patches: list) -> dict:
    # In the repository, because kustomize wants relative paths, and not in deploy/, which must not contain what refers to it.
    with tempfile.TemporaryDirectory(dir=ROOT / "tests", prefix=".compare-") as work:
        kustomization = {"resources": [f"../../deploy/{d}" for d in directories], "patches": patches}
        pathlib.Path(work, "kustomization.yaml").write_text(yaml.dump(kustomization), encoding="utf-8")
        return objects(run(kubectl, "kustomize", work))


def rendered(helm: str, values: dict, *more: str) -> dict:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.dump(values, file)
        file.flush()
        return objects(run(helm, "template", "pinfold", str(DEPLOY / "chart"), "-f", file.name, *more))


def differences(a, b, path: str = "") -> list:
    if isinstance(a, dict) and isinstance(b, dict):
        return [d for k in sorted({*a, *b}, key=str) for d in
                ([f"{path}.{k}: only in the {'chart' if k in a else 'kustomization'}"] if (k in a) != (k in b)
                 else differences(a[k], b[k], f"{path}.{k}"))]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [d for i, (x, y) in enumerate(zip(a, b)) for d in differences(x, y, f"{path}[{i}]")]
    return [] if a == b and type(a) is type(b) else [f"{path}: chart {a!r}, kustomization {b!r}"]


def main() -> int:
    helm, kubectl, *more = sys.argv[1:]
    problems = unused()
    cases = CASES[:1] if more else CASES
    for name, values, directories, patches in cases:
        chart = {" ".join(filter(None, k)): v for k, v in rendered(helm, values, *more).items()}
        manifests = {" ".join(filter(None, k)): v for k, v in kustomized(kubectl, directories, patches).items()}
        if not manifests:
            problems.append(f"{name}: no objects")
        problems += [f"{name}: {d}" for d in differences(chart, manifests)]
        print(f"{name}: {len(manifests)} objects")
    print(*problems[:20], sep="\n")
    return 1 if problems else 0


sys.exit(main())
