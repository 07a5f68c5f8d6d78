#!/usr/bin/env python3
"""lookup.py DIR PROGRAM...: a name server and an API server on loopback, for a client in the root directory DIR.

Runs in a network namespace of its own. The name api.example.test is known to the name server only. The API server's
certificate is signed by DIR/etc/ssl/certs/ca-certificates.crt. Runs PROGRAM until the API server has a request of it, and prints
the request's first line."""

import os
import socket
import ssl
import struct
import subprocess
import sys
import threading

NAME = b"\x03api\x07example\x04test\x00"


def serve_names(sock):
    """Answers A queries for NAME with 127.0.0.1, and everything else with no record."""
    while True:
        query, peer = sock.recvfrom(512)
        end = query.index(b"\0", 12) + 5
        known = query[12:].startswith(NAME) and query[end - 4:end - 2] == b"\0\1"
        head = query[:2] + b"\x81\x80\0\1" + struct.pack(">HHH", int(known), 0, 0)
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if known else b""
        sock.sendto(head + query[12:end] + answer, peer)


def serve_api(sock, context, requests):
    while True:
        client = sock.accept()[0]
        try:
            with context.wrap_socket(client, server_side=True) as tls:
                requests.append(tls.recv(4096).split(b"\r\n")[0].decode())
        except OSError as e:
            print("#", e, file=sys.stderr)


def main():
    directory, program = sys.argv[1], sys.argv[2:]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 53))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(directory, "server.pem"))
    context.set_alpn_protocols(["h2"])
    api = socket.create_server(("127.0.0.1", 6443))
    requests = []
    threading.Thread(target=serve_names, args=(names,), daemon=True).start()
    threading.Thread(target=serve_api, args=(api, context, requests), daemon=True).start()
    process = subprocess.Popen(program, preexec_fn=lambda: (os.chroot(directory), os.chdir("/")))
    for _ in range(300):
        if requests or process.poll() is not None:
            break
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            pass
    process.kill()
    process.wait()
    if not requests:
        sys.exit("no request arrived")
    print(requests[0])


if __name__ == "__main__":
    main()
