"""Progress of what takes more than two seconds."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from docpager.render.terminal import printable, say
from docpager.types import (
    IngestCounts,
)

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


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
