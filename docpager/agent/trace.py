"""The trace: what happened in a run, one JSON object a line, written as it happens.

While a run goes on its trace is `RUN.jsonl.PID-THREAD`; at its end it is renamed to `RUN.jsonl`, so
that several may ask the same question at once and a killed one leaves what it had.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol

from docpager.errors import UserError
from docpager.unicode import repaired


class Trace(Protocol):
    """Where the agent records what it does."""

    def event(self, name: str, /, **fields: object) -> None:
        """Keep one event; `fields` are JSON values."""


class MemoryTrace:
    """Events in a list: for tests, and where no run store is wanted."""

    def __init__(self) -> None:
        self.events: list[dict[str, object]] = []

    def event(self, name: str, /, **fields: object) -> None:
        """Keep one event."""
        self.events.append({"event": name, **fields})


class TraceFile:
    """A run's trace in a folder that many processes share; a context manager.

    Without `keep_runs` no earlier trace is deleted.
    """

    def __init__(self, folder: Path, run_id: str, keep_runs: int | None) -> None:
        self._final = folder / f"{run_id}.jsonl"
        self._partial = folder / f"{run_id}.jsonl.{os.getpid()}-{threading.get_native_id()}"
        self._keep_runs = keep_runs
        self._file: IO[str] | None = None

    def __enter__(self) -> TraceFile:
        try:
            self._partial.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._partial.open("w", encoding="utf-8", newline="\n")
        except OSError as error:
            raise UserError(
                f"The trace cannot be written to {self._partial.parent} ({error.strerror}). "
                "Make the folder writable."
            ) from error
        return self

    def event(self, name: str, /, **fields: object) -> None:
        """Write one line and hand it to the system at once."""
        if self._file is None:
            raise RuntimeError("a TraceFile is used as a context manager")
        self._file.write(trace_line({"event": name, **fields}))
        self._file.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            if error is not None:
                why = " ".join(f"{type(error).__name__} {error}".split())
                self.event("stopped", status="stopped", error=why)
            self._file.close()
            self._partial.replace(self._final)
            if self._keep_runs is not None:
                drop_old_runs(self._final.parent, self._keep_runs)


def drop_old_runs(folder: Path, keep_runs: int) -> None:
    """Delete all but the newest traces."""
    runs = sorted(folder.glob("*.jsonl"), key=_modified, reverse=True)
    for run in runs[keep_runs:]:
        run.unlink(missing_ok=True)


class ForkedTrace:
    """Records every event in several traces."""

    def __init__(self, *traces: Trace) -> None:
        self._traces = traces

    def event(self, name: str, /, **fields: object) -> None:
        """Keep one event in each."""
        for trace in self._traces:
            trace.event(name, **fields)


def _modified(run: Path) -> float:
    """When a run ended; another process may have deleted it meanwhile."""
    try:
        return run.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def trace_line(event: Mapping[str, object]) -> str:
    """One event as a line of UTF-8 JSON; lone surrogates are repaired."""
    return repaired(json.dumps(event, ensure_ascii=False, separators=(", ", ": "))) + "\n"
