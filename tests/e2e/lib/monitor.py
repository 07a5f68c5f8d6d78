#!/usr/bin/env python3
"""monitor.py SOCKET save FILE: stops the guest of qemu's monitor at SOCKET, writes its memory and devices to FILE, ends qemu.
monitor.py SOCKET resume: waits until qemu has read such a file (-incoming), and lets the guest continue.
monitor.py SOCKET reset: starts the guest's boot again.
"""
import json
import shlex
import socket
import sys
import time


class Monitor:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile("r")
        self.lines.readline()  # the greeting
        self.call("qmp_capabilities")

    def call(self, command, **arguments):
        request = {"execute": command, "arguments": arguments}
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        for line in self.lines:
            reply = json.loads(line)
            if "error" in reply:
                sys.exit(f"monitor.py: {command}: {reply['error']['desc']}")
            if "return" in reply:  # others are events
                return reply["return"]
        sys.exit(f"monitor.py: {command}: qemu has ended")

    def save(self, path):
        self.call("stop")
        self.call("migrate-set-parameters", **{"max-bandwidth": 1 << 34})
        self.call("migrate", uri=f"exec:cat >{shlex.quote(path)}")
        while True:
            status = self.call("query-migrate")
            if status.get("status") == "completed":
                return
            if status.get("status") in ("failed", "cancelled"):
                sys.exit(f"monitor.py: the state was not saved: {status.get('error-desc', status['status'])}")
            time.sleep(0.2)

    def resume(self):
        while self.call("query-status")["status"] == "inmigrate":
            time.sleep(0.1)
        self.call("cont")

    def reset(self):
        self.call("system_reset")
        self.call("cont")  # it may have been stopped


monitor = Monitor(sys.argv[1])
if sys.argv[2] == "save":
    monitor.save(sys.argv[3])
    monitor.socket.sendall(b'{"execute": "quit"}\n')
elif sys.argv[2] == "reset":
    monitor.reset()
else:
    monitor.resume()
