#!/usr/bin/env python3
"""Writes an OCI image from scratch: the program and CA certificates, for one or more architectures.

image.py --name NAME:TAG --version VERSION --certificates FILE --layout DIR --archive FILE ARCHITECTURE=PROGRAM...

The layout and the archive, a tar file of the layout, have one index with one manifest for each architecture. The same input
gives the same bytes: entries are sorted, and every time is SOURCE_DATE_EPOCH, or 0 without it. The specification is the OCI
Image Format, version 1.1."""

import argparse
import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile

EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
MEDIA = "application/vnd.oci.image."
PROGRAM = "usr/local/bin/pinfold"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
USER = 65532  # any user that is not root; manifests of the agent say runAsUser: 0
PASSWD = f"root:x:0:0::/:/sbin/nologin\npinfold:x:{USER}:{USER}::/:/sbin/nologin\n"
GROUP = f"root:x:0:\npinfold:x:{USER}:\n"


def created():
    import datetime
    return datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def add(tar, name, mode, content=None):
    """Adds a file, or a directory when there is no content."""
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = mode, EPOCH
    if content is None:
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
    else:
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))


def layer(program, certificates):
    files = {PROGRAM: (0o755, program), CERTIFICATES: (0o644, certificates),
             "etc/passwd": (0o644, PASSWD.encode()), "etc/group": (0o644, GROUP.encode())}
    dirs = {"tmp": 0o1777}
    for name in files:
        while name := os.path.dirname(name):
            dirs[name] = 0o755
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted({*files, *dirs}):
            add(tar, name, *files[name]) if name in files else add(tar, name + "/", dirs[name])
    return out.getvalue()


class Layout:
    """The blobs of an image, by digest."""

    def __init__(self):
        self.blobs = {}

    def put(self, content, media, **more):
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return {"mediaType": MEDIA + media, "digest": "sha256:" + digest, "size": len(content), **more}

    def put_json(self, value, media, **more):
        return self.put(json_bytes(value), media, **more)

    def files(self, index):
        yield "oci-layout", json_bytes({"imageLayoutVersion": "1.0.0"})
        yield "index.json", json_bytes(index)
        for digest in sorted(self.blobs):
            yield "blobs/sha256/" + digest, self.blobs[digest]


def json_bytes(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def compress(content):
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0) as zipped:
        zipped.write(content)
    return out.getvalue()


def manifest(layout, arch, program, certificates, labels):
    plain = layer(program, certificates)
    config = {
        "architecture": arch, "os": "linux", "created": created(),
        "config": {"Entrypoint": ["/" + PROGRAM], "User": f"{USER}:{USER}", "WorkingDir": "/", "Labels": labels,
                   "Env": ["PATH=/usr/local/bin", "SSL_CERT_FILE=/" + CERTIFICATES]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
        "history": [{"created": created(), "created_by": "packaging/image.py"}],
    }
    return layout.put_json({
        "schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json",
        "config": layout.put_json(config, "config.v1+json"),
        "layers": [layout.put(compress(plain), "layer.v1.tar+gzip")],
        "annotations": labels,
    }, "manifest.v1+json", platform={"architecture": arch, "os": "linux"})


def image_index(layout, name, manifests, labels):
    """index.json of the layout: one image index. containerd reads the first annotation, others the second."""
    index = layout.put_json({"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": manifests,
                             "annotations": labels}, "index.v1+json")
    index["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rsplit(":", 1)[1]}
    return {"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": [index]}


def write_layout(path, files):
    shutil.rmtree(path, ignore_errors=True)
    for name, content in files:
        file = os.path.join(path, name)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb") as out:
            out.write(content)


def write_archive(path, files):
    with tarfile.open(path + ".new", mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in sorted(files):
            add(tar, name, 0o644, content)
    os.replace(path + ".new", path)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser(description="writes an OCI image with the program and CA certificates")
    for option in ("--name", "--version", "--certificates", "--layout", "--archive"):
        parser.add_argument(option, required=True)
    parser.add_argument("programs", nargs="+", metavar="ARCHITECTURE=PROGRAM")
    args = parser.parse_args()
    if ":" not in args.name.rsplit("/", 1)[-1]:
        parser.error(f"{args.name}: want NAME:TAG")
    labels = {"org.opencontainers.image.title": "pinfold", "org.opencontainers.image.version": args.version,
              "org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.created": created(),
              "org.opencontainers.image.description": "CPU workload partitioning for Kubernetes"}
    layout = Layout()
    manifests = []
    for each in args.programs:
        arch, equals, program = each.partition("=")
        if not equals:
            parser.error(f"{each}: want ARCHITECTURE=PROGRAM")
        manifests.append(manifest(layout, arch, read(program), read(args.certificates), labels))
    index = image_index(layout, args.name, manifests, labels)
    files = list(layout.files(index))
    write_layout(args.layout, files)
    write_archive(args.archive, files)
    print(f"{args.archive}: {args.name}, {index['manifests'][0]['digest']}")


if __name__ == "__main__":
    sys.exit(main())
