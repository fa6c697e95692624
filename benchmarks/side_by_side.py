"""Prints what a command takes in this checkout beside another one, by turns in one run.

    git worktree add ../before COMMIT
    python benchmarks/side_by_side.py ../before [--rounds N]

Measured are `docpager --help`, an ingest of one PDF of 300 pages, `docpager search`, 200 searches
by the Python API over 1,000 passages, and a step of the agent (benchmarks/step_time.py of each
checkout, over one archive). The other checkout runs in this environment, with its dependencies.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from docpager.bench.corpus import make_corpus

HERE = Path(__file__).resolve().parents[1]
SEARCHES = """
import time, docpager
docpager.search("warmed up", archive={archive!r})
began = time.perf_counter()
for at in range(200):
    docpager.search(f"word {{at}} and another", archive={archive!r})
print(1000 * (time.perf_counter() - began) / 200)
"""


def run(tree: Path, *arguments: str) -> str:
    """Run Python with the code of one checkout; its standard output."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def wall(tree: Path, *arguments: str) -> float:
    """Milliseconds that a command takes from its start to its end."""
    began = time.perf_counter()
    run(tree, *arguments)
    return 1000 * (time.perf_counter() - began)


def ingested(tree: Path, folder: Path, corpus: Path) -> float:
    """Milliseconds of an ingest into a new archive."""
    archive = folder / "new.duckdb"
    for leftover in folder.glob("new.duckdb*"):
        leftover.unlink() if leftover.is_file() else None
    return wall(tree, "-m", "docpager", "ingest", str(corpus), "-a", str(archive), "-q")


def step(tree: Path, archive: Path) -> float:
    """Milliseconds of a step, the median of one run of the checkout's own benchmark."""
    printed = run(tree, str(tree / "benchmarks" / "step_time.py"), "--keep", str(archive))
    found = re.search(r"agent step.*?median +([\d.]+) ms", printed)
    if found is None:
        raise SystemExit(f"{tree}: benchmarks/step_time.py printed no median")
    return float(found.group(1))


def main() -> None:
    """Measure each of both by turns."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("other", type=Path)
    options.add_argument("--rounds", type=int, default=7)
    chosen = options.parse_args()
    trees = {"other": chosen.other.resolve(), "this": HERE}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = folder / "corpus"
        corpus.mkdir()
        make_corpus(corpus, "dense", 1, 300)
        archive, steps = folder / "kept.duckdb", folder / "steps.duckdb"
        run(HERE, "-m", "docpager", "ingest", str(corpus), "-a", str(archive), "-q")
        run(HERE, str(HERE / "benchmarks" / "step_time.py"), "--keep", str(steps))
        searching = SEARCHES.format(archive=str(archive))
        measures: dict[str, Callable[[Path], float]] = {
            "docpager --help": lambda tree: wall(tree, "-m", "docpager", "--help"),
            "ingest of 300 pages": lambda tree: ingested(tree, folder, corpus),
            "docpager search": lambda tree: wall(
                tree, "-m", "docpager", "search", "word and another", "-a", str(archive)
            ),
            "docpager.search()": lambda tree: float(run(tree, "-c", searching)),
            "step of the agent": lambda tree: step(tree, steps),
        }
        for label, measure in measures.items():
            spent: dict[str, list[float]] = {which: [] for which in trees}
            for at in range(chosen.rounds):
                # Who goes first changes, so that neither always has the warmer cache.
                for which in [*trees] if at % 2 else [*reversed(trees)]:
                    spent[which].append(measure(trees[which]))
            before, now = (statistics.median(spent[which]) for which in trees)
            print(
                f"{label:<20} other {before:8.1f} ms   this {now:8.1f} ms"
                f"   ratio {now / before:5.2f}   n {chosen.rounds}",
                flush=True,
            )


if __name__ == "__main__":
    main()
