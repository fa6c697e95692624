"""`docpager bench ingest`: a whole ingest beside bare text extraction, in one run.

The bare reader is pypdfium2's text of each page in as many processes, timed inside of them, so
that it pays neither for starting them nor for passing anything on. The ingest is timed as a whole,
from the walk to the last commit, with the start of its processes.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from docpager.bench.corpus import Kind, make_corpus
from docpager.config import Config
from docpager.errors import DocumentError
from docpager.types import IngestReport
from docpager.wiring import ingest_into, worker_count

KINDS: tuple[Kind, ...] = ("dense", "sparse", "book")
SLOW_BARE = 150.0
"""Pages a second and process: where bare reading is no faster, it is what an ingest waits for."""
SHARE = 0.6
"""Of bare reading that an ingest must reach there."""
PASSAGES_PER_S = 800.0
"""What an ingest must reach where bare reading is faster."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured over one kind of PDF: medians over the rounds."""

    kind: Kind
    pages: int
    passages: int
    bare_pages_per_s: float
    """Of all processes together."""
    pages_per_s: float
    passages_per_s: float
    processes: int

    @property
    def share(self) -> float:
        """Of bare reading that the ingest reaches."""
        return self.pages_per_s / self.bare_pages_per_s

    @property
    def passed(self) -> bool:
        """Whether the ingest is as fast as it has to be."""
        if self.bare_pages_per_s / self.processes <= SLOW_BARE:
            return self.share >= SHARE
        return self.passages_per_s >= PASSAGES_PER_S


def measure(
    config: Config, *, files: int, pages: int, rounds: int, say: Callable[[str], None]
) -> tuple[Measured, ...]:
    """Measure each kind of PDF, bare reading and ingest in turn, `rounds` times.

    Args:
        config: Its workers and limits hold; archives are made in a folder of their own.
        files: PDFs of each kind.
        pages: Of each PDF.
        rounds: How often; medians are taken.
        say: Told what is being done.
    """
    measured = []
    with tempfile.TemporaryDirectory(prefix="docpager-bench-") as folder:
        for kind in KINDS:
            say(f"making {files} PDFs of {pages} pages, {kind}")
            corpus = Path(folder) / kind
            make_corpus(corpus, kind, files, pages)
            bare: list[float] = []
            reports: list[IngestReport] = []
            for at in range(rounds):
                say(f"{kind}, round {at + 1} of {rounds}")
                bare.append(_bare_rate(corpus, worker_count(config)))
                archive = Path(folder) / f"{kind}-{at}.duckdb"
                clean = replace(config, archive=archive, embedder="static", include=(), exclude=())
                reports.append(ingest_into(clean, [str(corpus)], None))
            measured.append(_measured(kind, bare, reports, worker_count(config)))
    return tuple(measured)


def _bare_rate(corpus: Path, processes: int) -> float:
    """Pages a second of all processes together, if none of them ever waited."""
    from docpager.documents.pdf.baseline import BaselineReading, read_baseline
    from docpager.documents.sandbox import Sandbox

    sandbox: Sandbox[str, BaselineReading] = Sandbox(read_baseline, processes)
    readings = []
    for reading in sandbox.map([str(path) for path in sorted(corpus.iterdir())]):
        if isinstance(reading, DocumentError):
            raise reading
        readings.append(reading)
    seconds = sum(reading.seconds for reading in readings) / processes
    return sum(reading.pages for reading in readings) / seconds


def _measured(
    kind: Kind, bare: Sequence[float], reports: Sequence[IngestReport], processes: int
) -> Measured:
    elapsed = statistics.median(report.elapsed_s for report in reports)
    return Measured(
        kind,
        reports[0].pages,
        reports[0].passages,
        statistics.median(bare),
        reports[0].pages / elapsed,
        reports[0].passages / elapsed,
        processes,
    )
