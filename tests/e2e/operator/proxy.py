#!/usr/bin/env python3
"""A proxy in front of an API server that fails on purpose. Clients speak HTTP/2 over TLS.

proxy.py PORT SERVER_PORT PKI DIR

DIR/faults holds a probability (0.3) and optionally the faults to choose from (403 409 410 429 500 503 lost unanswered cut
closed); with "leases" among them, requests for Leases succeed. It is read with every request. DIR/kill holds "N PID": the process is killed at the Nth request from now, which is
executed or not, in turn; "0 0" kills none. DIR/slow holds the seconds that each request waits. DIR/requests.log gets one line for each request: time, method, path, what was done."""

import asyncio
import json
import os
import random
import signal
import ssl
import sys
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions

port, server_port, pki, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
ALL = "403 409 410 429 500 503 lost unanswered cut closed".split()
log = open(f"{directory}/requests.log", "a", encoding="utf-8", buffering=1)
to_server = ssl.create_default_context(cafile=f"{pki}/ca.crt")
used = {}
killing = {"left": 0, "pid": 0, "forward": False}


def read(name):
    try:
        with open(f"{directory}/{name}", encoding="utf-8") as f:
            return f.read().split()
    except OSError:
        return []


def applies(fault, method, path):
    if fault == "410":
        return method == "GET"
    if fault == "409":
        return method != "GET"
    return fault != "cut" or "watch=1" in path


def choose_fault(method, path):
    words = read("faults")
    if not words or random.random() >= float(words[0]) or ("leases" in words and "/leases" in path):
        return None
    faults = [word for word in words[1:] if word != "leases"] or ALL
    possible = [fault for fault in faults if applies(fault, method, path)] or ["503"]
    fault = min(possible, key=lambda f: (used.get(f, 0), random.random()))  # each of them, sooner or later
    used[fault] = used.get(fault, 0) + 1
    return fault


def must_kill():
    words = read("kill")
    if words:
        os.unlink(f"{directory}/kill")
        killing.update(left=int(words[0]), pid=int(words[1]), forward=not killing["forward"])
    if killing["left"] == 0:
        return False
    killing["left"] -= 1
    return killing["left"] == 0


class Client:
    """One connection; each of its streams is a request to the server on a connection of its own."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.requests, self.tasks, self.moved = {}, {}, asyncio.Event()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.writer.write(data)

    async def run(self):
        self.h2.initiate_connection()
        self.flush()
        try:
            while data := await self.reader.read(65536):
                for event in self.h2.receive_data(data):
                    self.handle(event)
                self.flush()
        except (OSError, h2.exceptions.ProtocolError):
            pass
        for task in self.tasks.values():
            task.cancel()
        self.writer.close()

    def handle(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.requests[event.stream_id] = [dict(event.headers), b""]
        elif isinstance(event, h2.events.DataReceived):
            self.requests[event.stream_id][1] += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            if event.stream_id in self.tasks:
                self.tasks.pop(event.stream_id).cancel()
        elif isinstance(event, h2.events.WindowUpdated):
            self.moved.set()
        if getattr(event, "stream_ended", None):
            self.begin(event.stream_id)

    def begin(self, stream):
        headers, body = self.requests.pop(stream)
        self.tasks[stream] = asyncio.create_task(self.serve(stream, headers, body))

    async def send(self, stream, data, end):
        while True:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if data and room <= 0:
                self.moved.clear()
                await self.moved.wait()
                continue
            piece, data = data[:room], data[room:]
            self.h2.send_data(stream, piece, end_stream=end and not data)
            self.flush()
            if not data:
                return

    async def refuse(self, stream, status):
        reason = {"403": "Forbidden", "409": "Conflict", "410": "Expired", "429": "TooManyRequests"}.get(status, "InternalError")
        body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": int(status), "reason": reason,
                           "message": f"injected {status}"}).encode()
        self.h2.send_headers(stream, [(":status", status), ("content-type", "application/json")])
        await self.send(stream, body, True)

    async def forward(self, stream, headers, body, fault):
        reader, writer = await asyncio.open_connection("127.0.0.1", server_port, ssl=to_server)
        try:
            kept = "".join(f"{k}: {v}\r\n" for k, v in headers.items() if not k.startswith(":"))
            writer.write(f"{headers[':method']} {headers[':path']} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         f"Content-Length: {len(body)}\r\n{kept}\r\n".encode() + body)
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            status, fields = head.split(" ")[1], head.lower()
            if fault == "unanswered":
                await reader.read()  # executed, but the client does not know
                self.h2.reset_stream(stream)
                self.flush()
                return
            self.h2.send_headers(stream, [(":status", status), ("content-type", "application/json")])
            self.flush()
            ends = time.monotonic() + random.uniform(0, 2) if fault == "cut" else None
            await self.copy(stream, reader, "transfer-encoding: chunked" in fields, ends)
        finally:
            writer.close()

    async def copy(self, stream, reader, is_chunked, ends):
        while True:
            wait = None if ends is None else max(0, ends - time.monotonic())
            try:
                if is_chunked:
                    size = int(await asyncio.wait_for(reader.readline(), wait) or b"0", 16)
                    data = (await reader.readexactly(size + 2))[:-2]
                else:
                    data = await asyncio.wait_for(reader.read(65536), wait)
            except asyncio.TimeoutError:
                data = b""
            if not data:
                await self.send(stream, b"", True)
                return
            await self.send(stream, data, False)

    async def serve(self, stream, headers, body):
        method, path = headers[":method"], headers[":path"]
        fault = choose_fault(method, path)
        if must_kill():
            os.kill(killing["pid"], signal.SIGKILL)
            fault = "unanswered" if killing["forward"] else "lost"
        print(f"{time.time():.3f}", method, path, fault or "-", file=log)
        try:
            await asyncio.sleep(float((read("slow") or ["0"])[0]))
            if fault and fault.isdigit():
                await self.refuse(stream, fault)
            elif fault == "lost":
                self.h2.reset_stream(stream)
                self.flush()
            elif fault == "closed":
                self.writer.close()
            else:
                await self.forward(stream, headers, body, fault)
        except (OSError, asyncio.IncompleteReadError, h2.exceptions.ProtocolError, KeyError, ValueError):
            pass
        finally:
            self.tasks.pop(stream, None)


async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{pki}/apiserver.crt", f"{pki}/apiserver.key")
    context.set_alpn_protocols(["h2"])
    server = await asyncio.start_server(lambda r, w: Client(r, w).run(), "127.0.0.1", port, ssl=context)
    async with server:
        await server.serve_forever()


asyncio.run(main())
