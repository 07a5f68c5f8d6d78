#!/usr/bin/env python3
"""Creates namespaces, of which one in twenty allows the workload type management: namespaces.py PORT PKI COUNT."""

import http.client
import json
import ssl
import sys
import threading

port, pki, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
THREADS = 4


def work(first):
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=120)
    for i in range(first, count + 1, THREADS):
        annotations = {"workload.openshift.io/allowed": "management"} if i % 20 == 0 else {}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"tenant-{i}", "annotations": annotations,
                "labels": {"team": f"team-{i % 97}", "environment": "production"}}}
        connection.request("POST", "/api/v1/namespaces", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        if response.status != 201:
            sys.exit(f"{response.status} {text!r}")


threads = [threading.Thread(target=work, args=(i + 1,)) for i in range(THREADS)]
for t in threads:
    t.start()
for t in threads:
    t.join()
