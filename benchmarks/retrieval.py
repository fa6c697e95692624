"""Recall of the gold paragraphs among the first five, per half and for values of fusion's k.

python benchmarks/retrieval.py            # reads $DOCPAGER_SHARED/data
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from docpager.clocks import SystemClock
from docpager.models.embedders import StaticEmbedder
from docpager.retrieval.fusion import DEPTH, fuse
from docpager.stores.duckdb.reader import DuckDBReader
from docpager.stores.duckdb.writer import open_writer
from docpager.types import Chunk, Document, PageText, ParsedDocument

SHARED = Path(os.environ.get("DOCPAGER_SHARED", Path(__file__).parents[2] / "shared"))
FIRST = 5
CONSTANTS = (1, 5, 10, 20, 60)


def read_lines(path: Path) -> list[dict[str, object]]:
    """The objects of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def build(path: Path, rows: Sequence[dict[str, object]], embedder: StaticEmbedder) -> list[str]:
    """An archive with one paragraph a page; the rows' ids, in order of passage number."""
    chunks, pages, start = [], [], 0
    for number, row in enumerate(rows, 1):
        text = str(row["text"])
        chunks.append(Chunk(text, start, start + len(text), number, number, str(row["title"])))
        pages.append(PageText(number, text))
        start += len(text) + 1
    unique = {chunk.text_hash: chunk.indexed_text for chunk in chunks}
    document = Document("data/corpus.jsonl", "ready", "0" * 64, start, "/data")
    with open_writer(path, embedder.identity, clock=SystemClock()) as writer:
        writer.put_vectors(list(unique), embedder.embed(list(unique.values())))
        writer.store(document, ParsedDocument(tuple(pages), paged=True), chunks)
    return [str(row["id"]) for row in rows]


def measure(name: str) -> None:
    """Print one line a ranking for one set."""
    folder = SHARED / "data" / f"multihop_{name}"
    questions = read_lines(folder / "questions.jsonl")
    embedder = StaticEmbedder()
    vectors = embedder.embed([str(question["question"]) for question in questions])
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "set.duckdb"
        ids = build(path, read_lines(folder / "corpus.jsonl"), embedder)
        with DuckDBReader.open(path, clock=SystemClock()) as archive:
            for question, vector in zip(questions, vectors, strict=True):
                lexical = archive.lexical_search(str(question["question"]), DEPTH)
                semantic = archive.vector_search(vector, DEPTH)
                rankings = {"lexical": lexical, "vector": semantic}
                for k in CONSTANTS:
                    rankings[f"fused, k={k}"] = fuse(lexical, semantic, k=k)
                gold = set(question["gold_ids"])  # type: ignore[call-overload]
                for label, ranking in rankings.items():
                    first = {ids[int(hit.passage_id[1:]) - 1] for hit in ranking[:FIRST]}
                    found.setdefault(label, []).append(len(first & gold) / len(gold))
    for label, shares in found.items():
        print(
            f"{name:9} {label:12} recall@{FIRST} {100 * sum(shares) / len(shares):5.1f}  "
            f"n {len(shares)}"
        )


if __name__ == "__main__":
    for chosen in ("musique", "hotpotqa"):
        measure(chosen)
