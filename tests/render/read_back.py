#!/usr/bin/env python3
"""Reads what `pinfold render` writes with other people's parsers, and applies the host bundle to a
directory that stands for a machine: install, install again, uninstall. Prints TAP.

Inputs are those of the golden cases tests/golden/render-*. The real kubelet, runtimes and Ignition
are run by tests/e2e/render-validate."""

import base64
import configparser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

import yaml

GOLDEN = pathlib.Path(os.environ["TESTS_DIR"]) / "golden"
PINFOLD = os.environ["PINFOLD"]
PREFIX = "data:text/plain;charset=utf-8;base64,"
SHELLCHECK = shutil.which("shellcheck")
MARKER = "etc/kubernetes/openshift-workload-pinning"  # readable by root only


seen = set()


def check_script(text, name):
    if text in seen:  # shellcheck takes its time
        return
    seen.add(text)
    subprocess.run(["sh", "-n"], input=text, text=True, check=True)
    if SHELLCHECK:
        subprocess.run([SHELLCHECK, "-"], input=text, text=True, check=True, stdout=sys.stderr)


def check_ini(text, name):
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",),
                                       allow_no_value=False)
    parser.optionxform = str
    parser.read_string(text)
    assert parser.sections(), name


def check_kubelet(text, name):
    conf = yaml.safe_load(text)
    assert conf["apiVersion"] == "kubelet.config.k8s.io/v1beta1", name
    assert isinstance(conf["reservedSystemCPUs"], str), name
    for value in conf.get("cpuManagerPolicyOptions", {}).values():
        assert isinstance(value, str), name
    if conf["cpuManagerPolicy"] == "none":
        assert "cpuManagerPolicyOptions" not in conf, name


def check_node_file(path, text):
    """A file as it lies on a machine, by where it lies."""
    if text.startswith("#!"):
        check_script(text, path)
    elif path.startswith("/etc/crio/") or path.startswith("/etc/containerd/") or (
            path.startswith("/etc/pinfold/workload") and path.endswith(".conf")):
        tomllib.loads(text)
    elif path.startswith("/etc/kubernetes/kubelet.conf.d/"):
        check_kubelet(text, path)
    elif path.startswith("/etc/kubernetes/openshift-") or path.endswith(".json"):
        json.loads(text)
    elif path.startswith("/etc/systemd/") or path.startswith("/etc/tuned/"):
        check_ini(text, path)


def decode(url):
    assert url.startswith(PREFIX), url
    return base64.b64decode(url[len(PREFIX):], validate=True).decode()


def check_ignition(config):
    paths = [f["path"] for f in config["storage"]["files"]]
    assert len(paths) == len(set(paths)), paths
    for file in config["storage"]["files"]:
        assert isinstance(file["mode"], int) and 0 < file["mode"] <= 0o777, file["path"]
        assert file["mode"] == 0o600 or file["path"] != "/" + MARKER, file["path"]
        assert os.path.normpath(file["path"]) == file["path"], file["path"]
        check_node_file(file["path"], decode(file["contents"]["source"]))
    for unit in config.get("systemd", {}).get("units", []):
        check_ini(unit["contents"], unit["name"])
        assert "/etc/systemd/system/" + unit["name"] not in paths
    return len(paths)


def check_objects(out):
    n = 0
    for path in sorted(out.iterdir()):
        for document in yaml.safe_load_all(path.read_text()):
            kind = document["kind"]
            if kind == "MachineConfig":
                n += check_ignition(document["spec"]["config"])
                assert len(document["metadata"]["labels"]) >= 1
            elif kind == "KubeletConfig":
                check_kubelet(yaml.safe_dump(document["spec"]["kubeletConfig"]), path.name)
            elif kind == "Tuned":
                for profile in document["spec"]["profile"]:
                    check_ini(profile["data"], profile["name"])
            n += 1
    return n


def tree(root):
    """Path -> (bytes, mode) of every file below a directory."""
    return {str(p.relative_to(root)): (p.read_bytes(), p.stat().st_mode & 0o777)
            for p in sorted(root.rglob("*")) if p.is_file()}


def check_bundle(bundle):
    """The tree, the Ignition file and the cloud-config say the same."""
    files = {"/" + path: data.decode() for path, (data, _) in tree(bundle / "rootfs").items()}
    for path, text in files.items():
        check_node_file(path, text)
    check_script((bundle / "install.sh").read_text(), "install.sh")
    ignition = json.loads((bundle / "ignition.json").read_text())
    check_ignition(ignition)
    same = {f["path"]: decode(f["contents"]["source"]) for f in ignition["storage"]["files"]}
    same |= {"/etc/systemd/system/" + u["name"]: u["contents"]
             for u in ignition["systemd"]["units"]}
    assert same == files
    text = (bundle / "cloud-config.yaml").read_text()
    assert text.startswith("#cloud-config\n")
    cloud = yaml.safe_load(text)
    assert {f["path"]: f["content"] for f in cloud["write_files"]} == files
    assert all(f["permissions"] == "0600" for f in cloud["write_files"] if f["path"] == "/" + MARKER)
    for patch in bundle.glob("kubeadm/*.yaml"):
        assert re.fullmatch(r"kubeletconfiguration\d*\+merge\.yaml", patch.name)
        check_kubelet(patch.read_text(), patch.name)
    return len(files)


def install(bundle, root, *options):
    return subprocess.run([bundle / "install.sh", "--root", root, *options], check=True,
                          capture_output=True, text=True).stdout


def machine(root, boot):
    """A machine that already has some of the files, and a boot loader."""
    theirs = boot | {
        "etc/crio/crio.conf.d/50-pinfold.conf": "# theirs\n",
        "etc/systemd/system.conf.d/50-pinfold.conf": "[Manager]\n",
        "var/lib/kubelet/config.yaml": "kind: KubeletConfiguration\n",
    }
    for path, text in theirs.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o600)


def check_install(bundle, boot, look):
    with tempfile.TemporaryDirectory() as tmp:
        root = pathlib.Path(tmp)
        machine(root, boot)
        before = tree(root)
        state = root / "var/lib/kubelet/cpu_manager_state"
        state.write_text("{}")
        wanted = {path: data for path, (data, _) in tree(bundle / "rootfs").items()}
        for _ in range(2):  # the second time over the first
            install(bundle, root)
            now = tree(root)
            for path, data in wanted.items():
                assert now[path][0] == data, path
            assert now[MARKER][1] == 0o600, oct(now[MARKER][1])
            assert not state.exists(), "the kubelet would not start"
            look(root, (bundle / "boot/systemd-boot/cmdline").read_text().strip())
        install(bundle, root, "--uninstall")
        assert tree(root) == before, set(tree(root)) ^ set(before)
        again = subprocess.run([bundle / "install.sh", "--root", root, "--uninstall"],
                               capture_output=True)
        assert again.returncode == 1
    return len(wanted)


def check_failed_install(bundle):
    """A failure is the last word: never "done", and a status that scripts see."""
    with tempfile.TemporaryDirectory() as tmp:
        broken, root = pathlib.Path(tmp) / "bundle", pathlib.Path(tmp) / "root"
        shutil.copytree(bundle, broken)
        root.mkdir()
        (broken / "rootfs/usr/local/sbin/pinfold-kernel-args").write_text("#!/bin/sh\nexit 1\n")
        failed = subprocess.run([broken / "install.sh", "--root", root], capture_output=True, text=True)
        assert failed.returncode == 1, failed
        assert "done" not in failed.stdout, failed.stdout
        assert "a command failed" in failed.stderr, failed.stderr
        (root / "etc").rename(root / "was-etc")
        (root / "etc").write_text("not a directory")
        stopped = subprocess.run([broken / "install.sh", "--root", root], capture_output=True, text=True)
        assert stopped.returncode != 0 and "done" not in stopped.stdout, stopped
        assert "stopped before the end" in stopped.stderr, stopped.stderr


def check_ovs_script():
    """The CPUs of Open vSwitch's poll threads, in a tree of plain files."""
    script = GOLDEN.parent.parent / "src/render/node/ovs-dpdk-cpus-configure.sh"
    with tempfile.TemporaryDirectory() as tmp:
        root = pathlib.Path(tmp)
        service = root / "ovs.slice/ovs-vswitchd.service"

        def configure():
            return subprocess.run(["sh", script], capture_output=True, text=True, env=os.environ | {
                "CGROUP_ROOT": tmp, "OVS_DPDK_CPUS": "4-5", "OVS_DPDK_PARTITION": "isolated"})

        assert configure().returncode == 0, "cgroup v1 is left alone"
        assert not any(root.iterdir())
        (root / "cgroup.controllers").touch()
        assert configure().returncode == 1, "ovs-vswitchd does not run in ovs.slice"
        service.mkdir(parents=True)
        threads = service / "ovsdpdk.slice"
        threads.mkdir()
        for group in (root / "ovs.slice", service, threads):
            (group / "cpuset.cpus.exclusive").touch()
        done = configure()
        assert done.returncode == 0, done.stderr
        for group in (root / "ovs.slice", service, threads):
            assert (group / "cpuset.cpus.exclusive").read_text() == "4-5\n", group
        assert (threads / "cgroup.type").read_text() == "threaded\n"
        assert (threads / "cpuset.cpus").read_text() == "4-5\n"
        assert (threads / "cpuset.cpus.partition").read_text() == "isolated\n"
        (threads / "cpuset.cpus.partition").unlink()
        (threads / "cpuset.cpus.partition").symlink_to("/dev/null")  # the kernel does not accept it
        assert configure().returncode == 1


def look_grub(root, args):
    script = ". " + str(root / "etc/default/grub.d/50-pinfold.cfg")
    line = subprocess.run(["sh", "-c", f'GRUB_CMDLINE_LINUX=quiet; {script}; printf "%s" "$GRUB_CMDLINE_LINUX"'],
                          check=True, capture_output=True, text=True).stdout
    assert line == "quiet " + args, line


def look_cmdline(root, args):
    assert (root / "etc/kernel/cmdline").read_text() == "root=/dev/sda1 quiet " + args + "\n"


BOOT_LOADERS = [
    ({"etc/default/grub.d/10-theirs.cfg": "A=1\n"}, look_grub),
    ({"etc/kernel/cmdline": "root=/dev/sda1 quiet\n"}, look_cmdline),
]


def render(case, target, out):
    topology = re.search(r"--topology '([^']*)'", (case / "cmd").read_text())
    options = ["--topology", topology[1]] if topology else []
    subprocess.run([PINFOLD, "render", "--asset-input-dir", case / "input", "--asset-output-dir",
                    out, "--target", target, *options], check=True, capture_output=True)


def run_case(case, target):
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp) / "out"
        render(case, target, out)
        if target == "openshift":
            return check_objects(out)
        n = 0
        for bundle in sorted(out.iterdir()):
            n += check_bundle(bundle)
            if (bundle / "boot").exists() and case.name.startswith("render-host"):
                n += sum(check_install(bundle, boot, look) for boot, look in BOOT_LOADERS)
                check_failed_install(bundle)
        return n


def main():
    cases = [(case, target) for case in sorted(GOLDEN.glob("render-*"))
             if any((case / "input").glob("*")) for target in ("openshift", "host")
             if not (target == "openshift" and "--target host" in (case / "cmd").read_text())]
    print(f"1..{len(cases)}")
    failed = 0
    check_ovs_script()
    for i, (case, target) in enumerate(cases, 1):
        try:
            print(f"ok {i} - {case.name} {target}: {run_case(case, target)} files read back")
        except Exception as e:  # every case is to be seen
            failed += 1
            output = getattr(e, "stderr", b"") or b""
            print(f"not ok {i} - {case.name} {target}")
            print(f"{case.name} {target}: {type(e).__name__}: {e} {output!r}", file=sys.stderr)
    return 1 if failed else 0


sys.exit(main())
