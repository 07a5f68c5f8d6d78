#!/usr/bin/env python3
"""Creates pods as fast as the API server accepts them, from several threads with persistent connections:
COUNT of them, and then more until the file UNTIL exists. create_pods.py PORT PKI NAMESPACE PREFIX COUNT UNTIL
[retry]: without "retry" every failure counts; with it, a request is repeated when its connection breaks (the
API server restarts). Prints the number of pods, then the failures."""

import http.client
import itertools
import json
import pathlib
import ssl
import sys
import threading
import time

port, pki, namespace, prefix, count = int(sys.argv[1]), *sys.argv[2:5], int(sys.argv[5])
until, retry = pathlib.Path(sys.argv[6]), "retry" in sys.argv[7:]
context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
numbers = itertools.takewhile(lambda n: n < count or not until.exists(), itertools.count())
created = 0
lock = threading.Lock()
failures = []


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"batch": prefix}, "annotations": {
        "target.workload.openshift.io/management": '{"effect":"PreferredDuringScheduling"}'}},
        "spec": {"automountServiceAccountToken": False, "containers": [{
            "name": "main", "image": "localhost/none:1",
            "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}}}]}}


def create(connection, name):
    connection.request("POST", f"/api/v1/namespaces/{namespace}/pods", json.dumps(pod(name)),
                       {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read().decode()


def work():
    global created
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
    while True:
        with lock:
            number = next(numbers, None)
        if number is None:
            return
        while True:
            try:
                status, body = create(connection, f"{prefix}-{number}")
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                status, body = 0, str(error)
            if retry and status in (0, 429, 500, 503):  # the API server is down or starting
                time.sleep(0.5)
                continue
            break
        with lock:
            created += 1
            if status != 201 and not (retry and status == 409):  # created before the connection broke
                failures.append(f"{prefix}-{number}: {status} {body[:300]}")


threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(created, *failures[:10], sep="\n")
sys.exit(1 if failures else 0)
