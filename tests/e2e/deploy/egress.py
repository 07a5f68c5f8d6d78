#!/usr/bin/env python3
"""egress.py SOCKET COMMAND...: the API server's way to pods and kubelets, as konnectivity has it.

The API server connects to the Unix socket and sends CONNECT HOST:PORT. COMMAND, with HOST:PORT as its last argument, then
has the connection as its standard input and output: an `ssh -W` into the guest, for example.
"""
import os
import socket
import subprocess
import sys
import threading


def serve(connection, command):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)  # one at a time: what follows the head belongs to COMMAND
        if not byte:
            return
        head += byte
    target = head.split()[1].decode()
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    with connection:
        subprocess.run(command + [target], stdin=connection, stdout=connection, check=False)


path, command = sys.argv[1], sys.argv[2:]
if os.path.exists(path):
    os.unlink(path)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(64)
while True:
    accepted, _ = listener.accept()
    threading.Thread(target=serve, args=(accepted, command), daemon=True).start()
