#!/usr/bin/env python3
"""The commands of a page. blocks.py PAGE DIR [WORD...]: writes each fenced block to be run to DIR/NN.sh, with DIR/NN.where (the
words after "bash") and, when a block "text" follows, DIR/NN.out. Fences:

	```bash              run where kubectl works, in the repository
	```bash node         run on a node, as root
	```bash ... WORD     only when WORD is among the arguments (a runtime)
	```text              what the block before prints

Other blocks, and commands that are indented, are not run."""

import pathlib
import re
import sys

KNOWN = {"node", "containerd", "crio"}


def main() -> int:
    page, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    words = set(sys.argv[3:])
    out.mkdir(parents=True, exist_ok=True)
    number, last = 0, None
    for info, body in re.findall(r"^```([^\n]*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        kind, *tags = info.split() or [""]
        if kind == "text" and last is not None:
            (out / f"{last:02}.out").write_text(body, encoding="utf-8")
        last = None
        if kind != "bash":
            continue
        if set(tags) - KNOWN:
            sys.exit(f"{page}: unknown word in '{info}'")
        if set(tags) - {"node"} - words:
            continue
        number += 1
        last = number
        (out / f"{number:02}.sh").write_text(body, encoding="utf-8")
        (out / f"{number:02}.where").write_text("node" if "node" in tags else "here", encoding="utf-8")
    print(number)
    return 0 if number else 1


def printed(want: str, got: str) -> list:
    """Lines of `want` that `got` does not have in this order; "..." stands for anything, blanks are alike."""
    lines = [" ".join(line.split()) for line in got.splitlines()]
    for line in filter(None, (" ".join(w.split()) for w in want.splitlines())):
        if line == "...":
            continue
        pattern = ".*".join(re.escape(part) for part in line.split("..."))
        at = next((i for i, have in enumerate(lines) if re.fullmatch(pattern, have)), None)
        if at is None:
            return [line]
        lines = lines[at + 1:]
    return []


if sys.argv[1] == "--printed":  # blocks.py --printed WANT GOT
    missing = printed(*(pathlib.Path(p).read_text(encoding="utf-8") for p in sys.argv[2:4]))
    sys.exit("\n".join(f"not printed: {line}" for line in missing) or 0)
sys.exit(main())
