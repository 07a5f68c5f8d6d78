#!/usr/bin/env python3
"""systemd.py ROOT: in place of systemd where it does not run. Serves ROOT/run/systemd/private, and does for a start or restart
of a unit what the agent can see of it: another invocation ID, and what the units of kernel arguments run. Every call is a line of
ROOT/calls. While ROOT/hold exists, jobs are accepted and do nothing, as on a machine that is busy."""

import os
import pathlib
import socket
import struct
import sys
import threading

root = pathlib.Path(sys.argv[1])
lock = threading.Lock()


def align(n, to):
    return (n + to - 1) // to * to


def header(data):
    """(size of the message, serial, member, signature, offset of the body); None while it is not complete."""
    if len(data) < 16:
        return None
    body, serial, fields = struct.unpack_from("<III", data, 4)
    start = align(16 + fields, 8)
    if len(data) < start + body:
        return None
    member, signature, at = "", "", 16
    while at < 16 + fields:
        at = align(at, 8)
        code, kind = data[at], data[at + 2:at + 3]
        at += 4
        if kind == b"g":
            text, at = data[at + 1:at + 1 + data[at]].decode(), at + data[at] + 2
        elif kind == b"u":
            text, at = "", align(at, 4) + 4
        else:
            at = align(at, 4)
            n, = struct.unpack_from("<I", data, at)
            text, at = data[at + 4:at + 4 + n].decode(), at + n + 5
        member = text if code == 3 else member
        signature = text if code == 8 else signature
    return start + body, serial, member, signature, start


def job(unit):
    link = root / "run/systemd/units" / f"invocation:{unit}"
    if link.is_symlink():
        new = link.with_name("new")
        new.symlink_to(os.urandom(16).hex())
        new.rename(link)
    applied = root / "etc/pinfold/kernel-args.applied"
    if unit == "pinfold-kernel-args@update.service":
        applied.write_bytes((root / "etc/pinfold/kernel-args").read_bytes())
    elif unit == "pinfold-kernel-args@undo.service":
        applied.unlink()


def call(member, signature, body):
    first = ""
    if signature in ("ss", "asbb", "asb"):
        at = 0 if signature == "ss" else 4
        n, = struct.unpack_from("<I", body, at)
        first = body[at + 4:at + 4 + n].decode()
    with lock:
        with open(root / "calls", "a") as calls:
            calls.write(f"{member} {first}".rstrip() + "\n")
        if signature == "ss" and not (root / "hold").exists():
            job(first)


def reply(serial):
    fields = struct.pack("<BBBBI", 5, 1, ord("u"), 0, serial)
    return struct.pack("<BBBBIII", ord("l"), 2, 1, 1, 0, 99, len(fields)) + fields


def serve(client):
    data = b""
    while b"BEGIN\r\n" not in data:
        got = client.recv(65536)
        if not got:
            return
        data += got
    client.sendall(b"OK 0123\r\n")
    data = data.split(b"BEGIN\r\n", 1)[1]
    while True:
        while (found := header(data)) is not None:
            size, serial, member, signature, start = found
            call(member, signature, data[start:size])
            client.sendall(reply(serial))
            data = data[size:]
        got = client.recv(65536)
        if not got:
            return
        data += got


listener = socket.socket(socket.AF_UNIX)
listener.bind(str(root / "run/systemd/private"))
listener.listen(5)
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
