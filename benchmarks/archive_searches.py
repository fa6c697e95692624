"""Prints what 100 searches cost through one `Archive`, beside 100 calls of `docpager.search`.

    python benchmarks/archive_searches.py [--searches N]

The archive holds `sample_docs`, and each function call opens it anew. The two take turns of ten, so
that other work on the machine disturbs them alike; opening the Archive counts in its first turn.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import docpager
from docpager.types import ResultPage

CORPUS = Path(__file__).parent.parent / "sample_docs"
QUERIES = ("speed limit in the harbour", "who signed the contract", "pump", "1987", "水库")
TURN = 10


def main() -> None:
    """Time both in turns, and check that they find the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=100, metavar="N")
    count = parser.parse_args().searches
    queries = [QUERIES[number % len(QUERIES)] for number in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        config = docpager.load({"archive": str(Path(folder) / "sample.duckdb")})
        docpager.ingest_paths([CORPUS], config=config)
        docpager.search("loads what both need", config=config)
        spent: dict[str, list[float]] = {"one Archive": [], "docpager.search": []}
        with docpager.Archive(config=config) as archive:
            for first in range(0, count, TURN):
                turn = queries[first : first + TURN]
                held = _timed(spent["one Archive"], archive.search, turn)
                called = _timed(
                    spent["docpager.search"],
                    lambda query: docpager.search(query, config=config),
                    turn,
                )
                assert held == called
    for name, times in spent.items():
        print(
            f"{name:<16} {sum(times):6.2f} s for {len(times)} searches, "
            f"median {1000 * statistics.median(times):6.1f} ms, first {1000 * times[0]:6.1f} ms"
        )


def _timed(
    spent: list[float], search: Callable[[str], ResultPage], queries: list[str]
) -> list[ResultPage]:
    pages = []
    for query in queries:
        began = time.perf_counter()
        pages.append(search(query))
        spent.append(time.perf_counter() - began)
    return pages


if __name__ == "__main__":
    main()
