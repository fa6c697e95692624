"""Prints how long `docpager --help` takes beside a bare `import click`, interleaved in one run.

python benchmarks/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

REPEATS = 15
COMMANDS = {"import click": ("-c", "import click"), "docpager --help": ("-m", "docpager", "--help")}


def main() -> None:
    """Time both, turn by turn, so that other work on the machine disturbs them alike."""
    spent: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(REPEATS):
        for name, arguments in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            spent[name].append(1000 * (time.perf_counter() - began))
    for name, times in spent.items():
        print(f"{name:<16} median {statistics.median(times):6.1f} ms   n {len(times)}")


if __name__ == "__main__":
    main()
