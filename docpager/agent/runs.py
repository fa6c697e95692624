"""The run store as a person reads it: one trace a run, listed, found by a prefix, read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from docpager.errors import UserError
from docpager.types import JSONValue

Event = dict[str, JSONValue]


@dataclass(frozen=True, slots=True)
class Run:
    """A run whose trace is kept."""

    run_id: str
    path: Path
    at: datetime
    """When its last event was written, in UTC."""
    finished: bool
    """False while it runs, and for one that was killed."""

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened, in order; a last line torn by a kill is left out.

        Raises:
            UserError: the trace cannot be read.
        """
        try:
            return _read(self.path)
        except OSError as error:
            raise UserError(
                f"The trace of run {self.run_id} cannot be read ({error.strerror}). Ask again."
            ) from error


def list_runs(folders: Sequence[Path]) -> tuple[Run, ...]:
    """The runs kept in any of `folders`, the newest first; a missing folder holds none.

    Nor does one that may not be read: its runs are those of another user.
    """
    runs = [run for folder in folders for run in _runs_in(folder)]
    return tuple(sorted(runs, key=lambda run: (run.at, run.run_id), reverse=True))


def find_run(folders: Sequence[Path], prefix: str) -> Run:
    """The run whose id is `prefix`, or the only one whose id begins with it.

    Raises:
        UserError: there is none, or there are several.
    """
    runs = list_runs(folders)
    named = [run for run in runs if run.run_id == prefix]
    found = named or [run for run in runs if run.run_id.startswith(prefix)]
    ids = sorted({run.run_id for run in found})
    if not ids:
        raise UserError(f"No run begins with {prefix!r}. `docpager trace` lists the runs kept.")
    if len(ids) > 1:
        raise UserError(
            f"{len(ids)} runs begin with {prefix!r}: {', '.join(ids[:5])}. Give more of the id."
        )
    # The same run may have been made again, or be running now: what is whole and newest is shown.
    return next((run for run in found if run.finished), found[0])


def events_of(folder: Path, run_id: str) -> tuple[Event, ...]:
    """The events of a finished run by its whole id; none where its trace is gone."""
    try:
        return _read(folder / f"{run_id}.jsonl")
    except OSError:
        return ()


def _read(path: Path) -> tuple[Event, ...]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    events = [_event(line) for line in lines]
    return tuple(event for event in events if event is not None)


def _runs_in(folder: Path) -> Iterator[Run]:
    try:
        paths = [*folder.glob("*.jsonl*")]
    except PermissionError:
        return
    for path in paths:
        # A run that ends is renamed, and an old one deleted, by whoever asks at the same time.
        with suppress(FileNotFoundError):
            yield _run(path)


def _run(path: Path) -> Run:
    run_id, _, rest = path.name.partition(".jsonl")
    return Run(run_id, path, datetime.fromtimestamp(path.stat().st_mtime, UTC), not rest)


def _event(line: str) -> Event | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
