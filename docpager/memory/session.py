"""A session's own store: recall storage, notes, inserts, summary, and what was shown.

A named session is one DuckDB file that one process writes at a time; the session of a single
question lives in memory and ends with the run. Documents are never written here, and nothing of
this is ever written to the archive.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType

import numpy as np

from docpager.errors import UserError
from docpager.memory.recall import RecallEntry, entry_of
from docpager.memory.working_context import WorkingContextVersion
from docpager.messages import Message
from docpager.protocols import ArchivalStore, Clock, Vectors
from docpager.stores.duckdb.sessions import SessionFile, SessionTable
from docpager.types import Passage, Scored
from docpager.unicode import repaired

_NAME = re.compile(r"[\w][\w.-]{0,63}")


def session_path(folder: Path, name: str) -> Path:
    """Where the session of that name is kept.

    Raises:
        UserError: the name could lead out of the folder or is no plain file name.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name!r} cannot name a session. Use letters, digits, '-', '_' and '.', at most 64."
        )
    return folder / f"{name}.duckdb"


class Session:
    """What several runs share; a context manager where it is kept in a file.

    Every change is committed before the call returns.
    """

    def __init__(self, clock: Clock, file: SessionFile | None = None) -> None:
        self._clock = clock
        self._file = file
        self._run_id = ""
        self.entries: list[RecallEntry] = []
        """Recall storage, oldest first."""
        self.inserts: list[Passage] = []
        """What the model inserted itself, `N1` first."""
        self.shown: set[str] = set()
        """Ids of the passages that were shown in this session."""
        self.versions: tuple[WorkingContextVersion, ...] = ()
        self.summary = ""
        self._vectors: list[Vectors] = []
        if file is not None:
            self._load(file)

    @classmethod
    def open(cls, path: Path, clock: Clock, wait_s: float | None) -> Session:
        """The session kept at `path`, made if it is not there.

        Raises:
            ArchiveLocked: another process has the session open.
            UserError: its folder cannot be made.
        """
        return cls(clock, SessionFile.open(path, clock, wait_s))

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def begin(self, run_id: str) -> None:
        """Messages recorded from now on belong to this run."""
        self._run_id = run_id

    def record(self, messages: Sequence[Message]) -> None:
        """Keep messages in recall storage, in order, with the time."""
        now = self._clock.now()
        first = len(self.entries) + 1
        entries = [
            entry_of(message, number, self._run_id, now)
            for number, message in enumerate(messages, first)
        ]
        self._write(
            "message",
            [
                (
                    entry.number,
                    entry.run_id,
                    entry.at.isoformat(),
                    entry.role,
                    entry.kind,
                    repaired(entry.text),
                )
                for entry in entries
            ],
        )
        self.entries += entries

    def insert(self, content: str, vector: Vectors) -> str:
        """Keep a text of the model's with its vector, shape (d,); returns its id."""
        number = len(self.inserts) + 1
        self._write(
            "insertion",
            [(number, repaired(content), [float(value) for value in vector])],
        )
        self._keep_insert(number, content, vector)
        return f"N{number}"

    def insert_similarities(self, vector: Vectors) -> tuple[Scored, ...]:
        """Cosine of every insert with `vector`, shape (d,)."""
        if not self._vectors:
            return ()
        scores = np.stack(self._vectors) @ vector
        return tuple(
            Scored(insert.passage_id, float(score))
            for insert, score in zip(self.inserts, scores, strict=True)
        )

    def mark_shown(self, passage_ids: Sequence[str]) -> None:
        """Remember that these passages were shown."""
        new = [name for name in dict.fromkeys(passage_ids) if name not in self.shown]
        self._write("shown", [(name,) for name in new])
        self.shown.update(new)

    def keep_version(self, version: WorkingContextVersion) -> None:
        """Keep a new state of the working context; the earlier ones stay."""
        row = (len(self.versions), *map(repaired, (version.persona, version.user, version.notes)))
        self._write("note_version", [row])
        self.versions = (*self.versions, version)

    def keep_summary(self, summary: str) -> None:
        """Keep the recursive summary; the last one kept counts."""
        self._write("summary", [(len(self.entries), repaired(summary))])
        self.summary = summary

    def _write(self, table: SessionTable, rows: Sequence[Sequence[object]]) -> None:
        if self._file is not None:
            self._file.append(table, rows)

    def _load(self, file: SessionFile) -> None:
        self.entries = [
            RecallEntry(number, run_id, datetime.fromisoformat(at), role, kind, text)
            for number, run_id, at, role, kind, text in file.rows("message")
        ]
        for number, content, vector in file.rows("insertion"):
            self._keep_insert(number, content, np.asarray(vector, dtype=np.float32))
        self.shown = {name for (name,) in file.rows("shown")}
        self.versions = tuple(
            WorkingContextVersion(persona, user, notes)
            for _, persona, user, notes in file.rows("note_version")
        )
        summaries = file.rows("summary")
        self.summary = summaries[-1][1] if summaries else ""

    def _keep_insert(self, number: int, content: str, vector: Vectors) -> None:
        self.inserts.append(Passage(f"N{number}", "", content, tokens=max(1, len(content) // 3)))
        self._vectors.append(vector)


@dataclass(frozen=True, slots=True)
class Memory:
    """What a run can reach beyond its prompt: archival storage, shared, and its own session."""

    store: ArchivalStore
    session: Session
