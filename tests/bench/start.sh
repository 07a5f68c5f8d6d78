#!/usr/bin/env bash
# Size and start of the program: build/pinfold, and the static one where `make static` has made it. Size is that of the stripped file, time is
# from fork to exit, the least and the median of 200 runs. Fails when the least is 50 ms or more.
set -euo pipefail
cd "$(dirname "$0")/../.."

exec python3 - build/pinfold "build-static-$(dpkg --print-architecture)/root/usr/bin/pinfold" <<'END'
import os, statistics, subprocess, sys, tempfile, time

RUNS = 200
CASES = {"--version": ["--version"], "topology": ["topology", "--from", "tests/machines/virtual-2-cpus.xml"]}


def stripped_size(program):
    with tempfile.NamedTemporaryFile() as copy:
        subprocess.run(["strip", "-o", copy.name, program], check=True)
        return os.path.getsize(copy.name)


def measure(command):
    """Milliseconds from fork to exit."""
    actions = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return (time.perf_counter() - start) * 1000


slow = False
for program in (p for p in sys.argv[1:] if os.access(p, os.X_OK)):
    print(f"start: {program}, {stripped_size(program) / 1e6:.2f} MB")
    for name, arguments in CASES.items():
        times = [measure([program, *arguments]) for _ in range(RUNS)]
        print(f"start:   {name:10} {min(times):5.1f} ms least, {statistics.median(times):5.1f} ms median")
        slow |= min(times) >= 50
sys.exit("the program starts in 50 ms or more" if slow else 0)
END
