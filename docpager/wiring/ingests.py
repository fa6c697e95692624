"""What an ingest needs: workers, embedder and writer, made from the settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from docpager.clocks import SystemClock
from docpager.config import Config
from docpager.errors import FailureReason, UserError
from docpager.types import Document, EmbedderIdentity, IngestCounts, IngestReport
from docpager.wiring.embedders import calls_endpoint, probed_identity
from docpager.wiring.endpoints import make_counter
from docpager.wiring.given import GivenModels
from docpager.wiring.stores import lock_wait

if TYPE_CHECKING:
    from docpager.documents.loaders import ParsedFile
    from docpager.documents.sandbox import Sandbox
    from docpager.ingest.committing import Writing
    from docpager.ingest.plan import Retries

CHUNK_MODEL = "gpt-4o"
"""Whose tokens passages are measured in: one measure for an archive, whoever is asked later."""
_M_ARENA_MAX = -8
"""Of glibc's `mallopt`."""
IngestProgress = Callable[[IngestCounts], None]
"""Told how far an ingest is, from another thread than the one that ingests."""
RecognitionProgress = Callable[[str, int, int], None]
"""Told the path of a file, and which page of how many is about to be recognised."""


def ingest_into(
    config: Config,
    paths: Sequence[str],
    progress: IngestProgress | None,
    on_recognition: RecognitionProgress | None = None,
    *,
    prune: bool = False,
    retry_failed: bool = False,
    given: GivenModels | None = None,
) -> IngestReport:
    """Bring the archive up to date with files and folders; see `Archive.ingest`."""
    from docpager.documents.pdf import ocr
    from docpager.ingest.committing import silent
    from docpager.ingest.ignore import PathFilter
    from docpager.ingest.run import Options, ingest

    if config.ocr and not ocr.is_installed():
        raise UserError(
            'Character recognition is not installed. Get it with `pip install "docpager[ocr]"`, '
            "or leave --ocr out."
        )
    _use_one_arena()
    identity, known, lacking = _kept(config, ocr.MENDS if config.ocr else ())
    sandbox = _sandbox(config, on_recognition)
    return ingest(
        paths,
        known=known,
        writing=_writing(config, identity, given or GivenModels()),
        parse=lambda paths: sandbox.map(paths, _file_size),
        clock=SystemClock(),
        progress=progress or silent,
        options=Options(
            PathFilter(config.include, config.exclude),
            prune,
            _retries(config, lacking, every=retry_failed),
        ),
    )


def _writing(config: Config, kept: EmbedderIdentity | None, given: GivenModels) -> Writing:
    """Where documents are written; the identity of a new embedder is asked for when it is kept."""
    from docpager.ingest.committing import Writing
    from docpager.stores.duckdb.writer import open_writer

    clock, wait_s = SystemClock(), lock_wait(config)
    embedder = given.matching_embedder(config, kept)

    @cache
    def identity() -> EmbedderIdentity:
        # A probe may cost a call: it is asked for where it will be kept.
        return embedder.identity if kept else probed_identity(embedder)

    return Writing(
        lambda: open_writer(config.archive, identity(), clock=clock, wait_s=wait_s),
        embedder,
        paid_embeddings=given.embedder is not None or calls_endpoint(config, kept),
    )


def _sandbox(
    config: Config, on_recognition: RecognitionProgress | None
) -> Sandbox[str, ParsedFile]:
    """The worker processes that read files, and the limits that they are held to."""
    from docpager.documents.loaders import ParseTask, SizeLimits
    from docpager.documents.pdf.options import PdfOptions
    from docpager.documents.sandbox import Limits, Sandbox

    sizes = SizeLimits(
        config.max_file_size << 20, config.max_page_characters, config.max_unpacked_size << 20
    )
    limits = Limits(config.file_timeout, config.page_timeout, config.worker_memory << 20)
    pdf = PdfOptions(passwords=config.passwords, ocr=config.ocr)
    task = ParseTask(make_counter(config, CHUNK_MODEL), limits=sizes, pdf=pdf)
    return Sandbox(task, worker_count(config), limits, on_recognition)


def _retries(config: Config, lacking: frozenset[str], *, every: bool) -> Retries:
    from docpager.documents.versions import reader_versions, recogniser_versions
    from docpager.ingest.plan import Retries

    return Retries(
        reader=f"{reader_versions()}; {_limits_text(config)}",
        recogniser=recogniser_versions() if config.ocr else "",
        lacking=lacking,
        every=every,
        reasons=_overcome(config),
    )


def _overcome(config: Config) -> frozenset[FailureReason]:
    """Reasons of earlier failures that this ingest has something against."""
    return frozenset({"encrypted"}) if config.passwords else frozenset()


def worker_count(config: Config) -> int:
    """Parsing processes: as many as were asked for, else one for each core this process may use."""
    if config.workers is not None:
        return config.workers
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _limits_text(config: Config) -> str:
    return (
        f"{config.file_timeout:g} s a file, {config.page_timeout:g} s a page, "
        f"{config.worker_memory} MB of memory, files of {config.max_file_size} MB, "
        f"{config.max_unpacked_size} MB unpacked, "
        f"pages of {config.max_page_characters} characters"
    )


def _file_size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0  # reading it will say so


def _kept(
    config: Config, flags: Sequence[str]
) -> tuple[EmbedderIdentity | None, tuple[Document, ...], frozenset[str]]:
    """Which embedder made the archive, its documents, and the names of those with a page that has
    one of the flags; it gets the newest schema on the way."""
    from docpager.stores.duckdb.connection import exists
    from docpager.stores.duckdb.writer import open_writer

    if not exists(config.archive):
        return None, (), frozenset()
    clock, wait_s = SystemClock(), lock_wait(config)
    with open_writer(config.archive, clock=clock, wait_s=wait_s) as writer:
        flagged = writer.documents_with(flags) if flags else frozenset()
        return writer.embedder_identity(), writer.documents(), flagged


def _use_one_arena() -> None:
    """Let all threads allocate from one arena of glibc; elsewhere nothing is done.

    Each thread has one of its own otherwise, and what DuckDB frees in one is of no use to others:
    an ingest of 370,000 passages grew from 200 to 430 MB between its bursts within 18 minutes.
    """
    if sys.platform == "linux":
        import ctypes

        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):
            library.mallopt(_M_ARENA_MAX, 1)
