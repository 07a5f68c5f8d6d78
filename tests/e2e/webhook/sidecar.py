#!/usr/bin/env python3
"""Another mutating webhook, called after the one under test: adds a sidecar that requests CPU to every pod
with the label inject=yes, once. sidecar.py PORT CERT KEY"""

import base64
import http.server
import json
import ssl
import sys

SIDECAR = {"name": "sidecar", "image": "localhost/sidecar:1", "resources": {"requests": {"cpu": "100m", "memory": "10Mi"}}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        pod = review["request"]["object"]
        response = {"uid": review["request"]["uid"], "allowed": True}
        if all(c["name"] != "sidecar" for c in pod["spec"]["containers"]):
            patch = json.dumps([{"op": "add", "path": "/spec/containers/-", "value": SIDECAR}])
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch.encode()).decode()}
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
