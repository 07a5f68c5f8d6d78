#!/usr/bin/env python3
"""A proxy in front of an NRI socket that records one plugin's connection: tee.py LISTEN RUNTIME OUT. Each frame of
the NRI multiplexer is a line of OUT: "R>P" (runtime to plugin) or "P>R", the frame's header (connection, length)
and its bytes in hexadecimal, and for a request a comment with its ttrpc method."""

import re
import socket
import sys
import threading

listen, runtime, out = sys.argv[1:]
lock = threading.Lock()
record = open(out, "w")


def frames(source):
    """Whole frames of the multiplexer: 4 bytes connection, 4 bytes length, the bytes."""
    data = b""
    while more := source.recv(65536):
        data += more
        while len(data) >= 8 and len(data) >= 8 + (n := int.from_bytes(data[4:8], "big")):
            yield data[:8], data[8 : 8 + n]
            data = data[8 + n :]


def method(payload):
    """The method of a ttrpc request (message type 1), which is field 2 of its header."""
    named = re.search(rb"nri\.pkg\.api\.v1alpha1\.(?:Plugin|Runtime)\x12.(\w+)", payload[:80], re.DOTALL)
    return " # " + named[1].decode() if named else ""


def forward(source, target, mark):
    for header, payload in frames(source):
        with lock:
            record.write(f"{mark} {header.hex()} {payload.hex()}{method(payload)}\n")
            record.flush()
        target.sendall(header + payload)
    target.shutdown(socket.SHUT_WR)


server = socket.socket(socket.AF_UNIX)
server.bind(listen)
server.listen(1)
plugin, _ = server.accept()
upstream = socket.socket(socket.AF_UNIX)
upstream.connect(runtime)
threads = [threading.Thread(target=forward, args=a) for a in ((plugin, upstream, "P>R"), (upstream, plugin, "R>P"))]
for t in threads:
    t.start()
for t in threads:
    t.join()
