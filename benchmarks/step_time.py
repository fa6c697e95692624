"""Prints what a step costs outside of the model, in an archive of 20,000 passages.

    python benchmarks/step_time.py [--passages N] [--keep FILE]

The text is pseudo-random words whose frequencies fall like 1 / rank, as in natural text, with
vectors of random directions: sizes and costs are those of a real archive, meaning plays no part.
`--keep` makes the archive there, or uses the one that is there already.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from docpager.agent.agent import Agent
from docpager.agent.trace import MemoryTrace
from docpager.clocks import SystemClock
from docpager.config import load
from docpager.memory.session import Memory, Session
from docpager.memory.summary import ExtractiveSummarizer
from docpager.messages import AssistantMessage, ChatRequest, ModelInfo
from docpager.models.chat import OpenAIChat
from docpager.models.endpoint import Endpoint
from docpager.models.meter import Meter
from docpager.models.tokens import counter_for
from docpager.protocols import Models, TokenCounter, Vectors
from docpager.retrieval.fusion import fuse
from docpager.stores.duckdb.reader import DuckDBReader
from docpager.stores.duckdb.writer import open_writer
from docpager.testing import ScriptedChat, call
from docpager.types import Chunk, Document, EmbedderIdentity, PageText, ParsedDocument

DIMENSION = 256
IDENTITY = EmbedderIdentity("random", DIMENSION, normalised=True)
VOCABULARY = 60_000
MODEL = "gpt-4o"
"""Whose vocabulary is counted with."""
WORDS_IN_PASSAGE = 250
"""As many as a passage of natural text has; made-up words take twice the tokens."""
PASSAGES_IN_DOCUMENT = 20
REPEATS = 40


class Words:
    """Deterministic text: word number n comes 1 / n as often as the first."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._steps = np.cumsum(1 / np.arange(1, VOCABULARY + 1))

    def draw(self, count: int, *, skip: float = 0.0) -> str:
        """`count` words; `skip` leaves out the commonest, by their share of all text."""
        at = self._random.uniform(skip, 1, count) * self._steps[-1]
        return " ".join(f"w{number:x}" for number in np.searchsorted(self._steps, at))


def document(
    words: Words, number: int, counter: TokenCounter
) -> tuple[Document, ParsedDocument, list[Chunk]]:
    """A document of one passage to a page."""
    texts = [words.draw(WORDS_IN_PASSAGE) for _ in range(PASSAGES_IN_DOCUMENT)]
    pages = tuple(PageText(at, text) for at, text in enumerate(texts, 1))
    chunks, start = [], 0
    for at, text in enumerate(texts, 1):
        chunks.append(Chunk(text, start, start + len(text), at, at, tokens=counter.count(text)))
        start += len(text) + 1
    name = f"corpus/{number:04}.pdf"
    return (
        Document(name, "ready", f"{number:064x}", start, "/"),
        ParsedDocument(pages, True),
        chunks,
    )


def random_vectors(seed: int, count: int) -> Vectors:
    """Vectors of random directions."""
    return np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)


def build(path: Path, passages: int) -> None:
    """Ingest made-up documents, and print how fast they are committed."""
    words = Words(1)
    counter = counter_for(MODEL, load().cache_dir / "vocabularies")
    documents = [document(words, at, counter) for at in range(passages // PASSAGES_IN_DOCUMENT)]
    began = time.perf_counter()
    with open_writer(path, IDENTITY, clock=SystemClock()) as writer:
        for at, (row, parsed, chunks) in enumerate(documents):
            hashes = [chunk.text_hash for chunk in chunks]
            writer.put_vectors(hashes, random_vectors(at, len(chunks)))
            writer.store(row, parsed, chunks)
        stored = time.perf_counter()
    done = time.perf_counter()
    print(
        f"commit {passages / (done - began):,.0f} passages/s ({stored - began:.1f} s, "
        f"then {done - stored:.1f} s to merge and close), {path.stat().st_size >> 20} MB"
    )


def timed(name: str, work: Callable[[int], object]) -> None:
    """Print the first, the median and the 95th percentile of `work`, in milliseconds."""
    spent = []
    for at in range(REPEATS + 1):
        began = time.perf_counter()
        work(at)
        spent.append(1000 * (time.perf_counter() - began))
    first, warm = spent[0], sorted(spent[1:])
    median, slow = warm[len(warm) // 2], warm[int(0.95 * len(warm))]
    print(f"{name:<24} first {first:6.1f} ms   median {median:6.1f} ms   95% {slow:6.1f} ms")


def measure(path: Path) -> None:
    """Open the archive and search it."""
    words = Words(2)
    # Twelve terms as in a question: some of the commonest, most of them not.
    queries = [f"{words.draw(5)} {words.draw(7, skip=0.4)}" for _ in range(REPEATS + 1)]
    vectors = random_vectors(7, REPEATS + 1)
    began = time.perf_counter()
    with DuckDBReader.open(path, clock=SystemClock()) as archive:
        print(f"open {time.perf_counter() - began:.3f} s, {archive.passage_count:,} passages")

        def search(at: int) -> Sequence[str]:
            lexical = archive.lexical_search(queries[at], 200)
            fused = fuse(lexical, archive.vector_search(vectors[at], 200))
            return [hit.passage_id for hit in fused]

        timed("lexical", lambda at: archive.lexical_search(queries[at], 200))
        timed("vector", lambda at: archive.vector_search(vectors[at], 200))
        timed("both, fused", search)
        timed("both, fused, 8 fetched", lambda at: archive.passages(search(at)[:8]))
        timed("both, fused, all fetched", lambda at: archive.passages(search(at)))


class Directions:
    """An embedder of random directions, so that only the search itself is timed."""

    identity = IDENTITY
    batch_size = 64

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of random directions."""
        rows = random_vectors(len(texts[0]), len(texts))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def measure_steps(path: Path) -> None:
    """Run the agent with a scripted model that searches anew each step, and time between calls."""
    words = Words(3)
    moments: list[float] = []

    def reply(_request: ChatRequest) -> AssistantMessage:
        moments.append(time.perf_counter())
        return call("archival_memory_search", query=f"{words.draw(5)} {words.draw(7, skip=0.4)}")

    clock = SystemClock()
    counter = counter_for(MODEL, load().cache_dir / "vocabularies")
    endpoint = Endpoint("http://127.0.0.1:9/v1", None, clock=clock)
    wire = OpenAIChat(MODEL, endpoint, counter)
    chat = ScriptedChat(reply, counter=counter)
    chat.prompt_tokens = wire.prompt_tokens  # type: ignore[method-assign]  # the real counting
    with DuckDBReader.open(path, clock=clock) as archive:
        agent = Agent(
            Models(
                chat=chat,
                info=ModelInfo("scripted", "none", "tools", 8192),
                meter=Meter(chat, clock),
                counter=counter,
                summarizer=ExtractiveSummarizer(counter),
                embedder=Directions(),
            ),
            Memory(archive, Session(clock)),
            max_steps=REPEATS,
            clock=clock,
            trace=MemoryTrace(),
            run_id="bench",
        )
        agent.run(f"Which {words.draw(8)}?")
    spent = sorted(1000 * (after - before) for before, after in itertools.pairwise(moments))
    print(
        f"agent step, flushes included   median {spent[len(spent) // 2]:6.1f} ms   "
        f"95% {spent[int(0.95 * len(spent))]:6.1f} ms   n {len(spent)}"
    )


def main() -> None:
    """Build the archive and measure it."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--passages", type=int, default=20_000)
    options.add_argument("--keep", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.keep or Path(folder) / "bench.duckdb"
        if not path.exists():
            build(path, chosen.passages)
        measure(path)
        measure_steps(path)


if __name__ == "__main__":
    main()
