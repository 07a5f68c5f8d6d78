#!/usr/bin/env python3
"""Hostile clients on the webhook's port: port_attacks.py PORT PID [REVIEWS]. Fails when the server stops
serving or its memory grows."""

import os
import random
import socket
import ssl
import sys
import time

port, pid = int(sys.argv[1]), int(sys.argv[2])
reviews = int(sys.argv[3]) if len(sys.argv) > 3 else 100000
random.seed(1)
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE


def rss_kib():
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    sys.exit("the webhook has exited")


def plain():
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def tls():
    return context.wrap_socket(plain(), server_hostname="localhost")


def serves():
    with tls() as s:
        s.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        response = b""
        while data := s.recv(4096):
            response += data
    assert b" 200 OK" in response and response.endswith(b"ok\n"), response


def done(what):
    serves()
    print(f"ok - {what} ({rss_kib()} KiB)", flush=True)


def garbage():
    for _ in range(300):
        s = plain()
        s.sendall(random.randbytes(random.randrange(1, 3000)))
        s.close()


def no_tls():
    s = plain()
    s.sendall(b"POST /mutate/pods HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
    response = s.recv(4096)
    assert response.startswith(b"HTTP/1.0 400"), response
    s.close()


def garbage_in_tls():
    for _ in range(100):
        with tls() as s:
            s.sendall(random.randbytes(random.randrange(1, 20000)))


def slowloris():
    """Many connections that send a request byte by byte, and others that send nothing; other clients are
    served in the meantime."""
    slow = [tls() for _ in range(60)] + [plain() for _ in range(200)]
    request = b"POST /mutate/pods HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"x" * 1000
    end = time.time() + 15
    dead, i = set(), 0
    while time.time() < end and len(dead) < 60:
        for s in slow[:60]:
            try:
                s.sendall(request[i : i + 1])
            except OSError:
                dead.add(s)
        serves()
        i += 1
        time.sleep(0.2)
    assert len(dead) == 60, f"{60 - len(dead)} slow connections are still open"
    for s in slow:
        s.close()


def malformed():
    """Malformed reviews, pipelined; each gets a response."""
    kinds = [b"", b"{", b"null", b"[]", b'{"request":{}}', b'{"request":{"uid":1}}', b"[" * 500, b"\xff\xfe",
             b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"x"}}',
             b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"x","operation":'
             b'"CREATE","resource":{"resource":"pods"},"object":{"spec":{"containers":[{"resources":7}]}}}}']
    paths = [b"/mutate/pods", b"/validate/pods", b"/validate/nodes", b"/validate/infrastructures",
             b"/validate/performanceprofiles"]
    sent = 0
    first = None
    while sent < reviews:
        with tls() as s:
            for _ in range(20):
                batch = b""
                for _ in range(50):
                    body = random.choice(kinds)
                    batch += b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (
                        random.choice(paths), len(body), body)
                s.sendall(batch)
                responses = b""
                while responses.count(b"HTTP/1.1 ") < 50:
                    data = s.recv(65536)
                    assert data, "closed in the middle"
                    responses += data
                sent += 50
        if sent == 10000:
            first = rss_kib()
    grown = rss_kib() - (first or rss_kib())
    assert grown < 1024, f"memory grew by {grown} KiB"
    return sent


before = rss_kib()
garbage()
done("300 connections with garbage")
no_tls()
done("a client without TLS gets a response in plain HTTP")
garbage_in_tls()
done("100 connections with garbage inside TLS")
slowloris()
done("60 slow and 200 silent connections, closed in time while others are served")
count = malformed()
done(f"{count} malformed reviews, memory flat")
assert rss_kib() - before < 16384, f"{before} KiB became {rss_kib()} KiB"
