#!/usr/bin/env python3
"""A TCP load balancer in place of a Service: forwards each connection on PORT to one of the ready replicas,
and probes /readyz of each replica five times a second. balancer.py PORT REPLICA_PORT..."""

import asyncio
import random
import ssl
import sys

port, replicas = int(sys.argv[1]), [int(p) for p in sys.argv[2:]]
ready = set()
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE


async def is_ready(replica):
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", replica, ssl=context)
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        status = await reader.readline()
        writer.close()
        return b" 200 " in status
    except OSError:
        return False


async def probe(replica):
    while True:
        try:
            good = await asyncio.wait_for(is_ready(replica), 5)
        except asyncio.TimeoutError:
            good = False
        (ready.add if good else ready.discard)(replica)
        await asyncio.sleep(0.2)


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def serve(reader, writer):
    for _ in range(100):
        if ready:
            break
        await asyncio.sleep(0.05)
    try:
        backend = await asyncio.open_connection("127.0.0.1", random.choice(sorted(ready)))
    except (OSError, IndexError):
        writer.close()
        return
    await asyncio.gather(copy(reader, backend[1]), copy(backend[0], writer))
    writer.close()
    backend[1].close()


async def main():
    probes = [asyncio.create_task(probe(r)) for r in replicas]
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    async with server:
        await asyncio.gather(server.serve_forever(), *probes)


asyncio.run(main())
