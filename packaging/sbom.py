#!/usr/bin/env python3
"""Prints the software bill of materials of a static program, SPDX 2.3 in JSON.

sbom.py --version VERSION --architecture ARCHITECTURE --program FILE --map FILE --sysroot DIR

The linker's map says which archives are in the program, DIR/packages (packaging/sysroot.sh) and dpkg what they come from. An
archive of unknown origin is an error. The same input gives the same bytes: the time is SOURCE_DATE_EPOCH."""

import argparse
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys

# Archive: package in DIR/packages, licence.
ORIGINS = {
    "ssl": ("libssl-dev", "Apache-2.0"), "crypto": ("libssl-dev", "Apache-2.0"), "uv_a": ("libuv1-dev", "MIT"),
    "yaml": ("libyaml-dev", "MIT"), "nghttp2": ("libnghttp2-dev", "MIT"), "seccomp": ("libseccomp-dev", "LGPL-2.1-only"),
    "hwloc": ("hwloc", "BSD-3-Clause"), "yyjson": ("yyjson", "MIT"), "c": ("libc6-dev", "LGPL-2.1-or-later"),
    "m": ("libc6-dev", "LGPL-2.1-or-later"), "pthread": ("libc6-dev", "LGPL-2.1-or-later"),
}
COMPILER_LICENSE = "GPL-3.0-or-later WITH GCC-exception-3.1"
OWN = re.compile(r"(?:^|/)src/")


def archives(map_text):
    """Paths of the archives that the linker took members from."""
    included = map_text.split("Discarded input sections")[0].split("Memory Configuration")[0]
    found = sorted(set(re.findall(r"^(\S+\.a)\(", included, re.M)))
    return found or sys.exit("sbom: the linker's map has no archives")


def read_packages(sysroot):
    packages = {}
    with open(os.path.join(sysroot, "packages"), encoding="utf-8") as file:
        for line in file:
            name, version, kind, digest, _ = line.split()
            packages[name] = {"name": name, "version": version, "kind": kind, "sha256": digest}
    return packages


def compiler_package(path):
    """The package of the compiler that a file of it belongs to."""
    name = subprocess.run(["dpkg-query", "-S", os.path.realpath(path)], check=True, capture_output=True, text=True).stdout.split(": ")[0]
    version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], check=True, capture_output=True, text=True).stdout
    return {"name": name.split(":")[0], "version": version, "kind": "binary", "sha256": None}


def origin(path, packages):
    """The package and the licence of an archive; None for the project's own."""
    stem = re.sub(r"-2\.\d+$", "", os.path.basename(path)[3:-2])
    if OWN.search(path):
        return None
    if stem in ("gcc", "gcc_eh"):
        return compiler_package(path), COMPILER_LICENSE
    if stem not in ORIGINS:
        sys.exit(f"sbom: {path}: origin unknown; add it to ORIGINS")
    name, license_id = ORIGINS[stem]
    return packages[name], license_id


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package_entry(package, license_id, arch):
    where = f"pkg:deb/debian/{package['name']}@{package['version'].replace('+', '%2B').replace('~', '%7E')}"
    arch = "source" if package["kind"] == "source" else arch
    entry = {
        "SPDXID": spdx_id(package["name"]), "name": package["name"], "versionInfo": package["version"],
        "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": license_id, "licenseDeclared": license_id, "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"{where}?arch={arch}"}],
    }
    if package["sha256"]:
        entry["checksums"] = [{"algorithm": "SHA256", "checksumValue": package["sha256"]}]
    return entry


def document(args, program, linked, data):
    digest = hashlib.sha256(program).hexdigest()
    created = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    own = {
        "SPDXID": "SPDXRef-pinfold", "name": "pinfold", "versionInfo": args.version, "supplier": "Organization: Pinfold maintainers",
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:generic/pinfold@{args.version}?arch={args.architecture}"}],
    }
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])]
    relations += [(own["SPDXID"], "STATIC_LINK", entry["SPDXID"]) for entry in linked]
    relations += [(entry["SPDXID"], "DATA_FILE_OF", own["SPDXID"]) for entry in data]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"pinfold-{args.version}-linux-{args.architecture}",
        "documentNamespace": f"https://pinfold.io/spdx/pinfold-{args.version}-linux-{args.architecture}-{digest}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: packaging/sbom.py"]},
        "packages": [own, *linked, *data],
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations],
    }


def main():
    parser = argparse.ArgumentParser(description="prints the SBOM of a static program")
    for option in ("--version", "--architecture", "--program", "--map", "--sysroot"):
        parser.add_argument(option, required=True)
    args = parser.parse_args()
    packages = read_packages(args.sysroot)
    with open(args.map, encoding="utf-8") as file:
        origins = [o for o in (origin(path, packages) for path in archives(file.read())) if o]
    linked = {p["name"]: package_entry(p, license_id, args.architecture) for p, license_id in origins}
    data = [package_entry(packages["ca-certificates"], "MPL-2.0 AND GPL-2.0-or-later", "all")]
    with open(args.program, "rb") as file:
        json.dump(document(args, file.read(), [linked[n] for n in sorted(linked)], data), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
