"""Prints what 100 searches take through one Archive, and by 100 calls of docpager.search.

    python benchmarks/archive_searches.py [--archive FILE]

Without an archive, one is made of sample_docs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import docpager

ROOT = Path(__file__).parents[1]
SEARCHES = 100


def main() -> None:
    """Time both ways over the same queries, by turns in blocks of ten."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--archive", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.archive or Path(folder) / "sample.duckdb"
        if not path.exists():
            docpager.ingest_paths([ROOT / "sample_docs"], archive=path)
        queries = [f"lighthouse keeper {number} of the harbour" for number in range(SEARCHES)]
        held = called = 0.0
        docpager.search("warm", archive=path)
        for first in range(0, SEARCHES, 10):
            block = queries[first : first + 10]
            began = time.perf_counter()
            for query in block:
                docpager.search(query, archive=path)
            called += time.perf_counter() - began
            began = time.perf_counter()
            if first == 0:
                archive = docpager.Archive(path)
            for query in block:
                archive.search(query)
            held += time.perf_counter() - began
        archive.close()
    print(f"one Archive, {SEARCHES} searches             {1000 * held:8.1f} ms")
    print(f"docpager.search, {SEARCHES} calls            {1000 * called:8.1f} ms")


if __name__ == "__main__":
    main()
