"""The file of a named session: one DuckDB file, which one process writes at a time.

Rows go in and come out; what they mean is known in `memory/session`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import duckdb

from docpager.errors import UserError
from docpager.protocols import Clock
from docpager.stores.duckdb.connection import Migration, connect, mapped_errors, transaction

SessionTable = Literal["message", "note_version", "insertion", "shown", "summary"]

MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "recall, notes, inserts, summary",
        (
            "CREATE TABLE message (number BIGINT, run_id VARCHAR, said_at VARCHAR, role VARCHAR,"
            " kind VARCHAR, text VARCHAR)",
            "CREATE TABLE note_version (number BIGINT, persona VARCHAR, user_facts VARCHAR,"
            " notes VARCHAR)",
            "CREATE TABLE insertion (number BIGINT, content VARCHAR, vector FLOAT[])",
            "CREATE TABLE shown (passage_id VARCHAR)",
            "CREATE TABLE summary (number BIGINT, text VARCHAR)",
        ),
    ),
)


class SessionFile:
    """The rows of one session; each `append` is one transaction."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: Path, clock: Clock, wait_s: float | None) -> Self:
        """The file at `path`, made if it is not there.

        Raises:
            ArchiveLocked: another process has the session open.
            UserError: its folder cannot be made.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"The folder {path.parent} cannot be made ({error.strerror}). "
                "Make it writable, or leave --session out."
            ) from error
        return cls(connect(path, MIGRATIONS, clock=clock, wait_s=wait_s, kind="session"))

    def append(self, table: SessionTable, rows: Sequence[Sequence[object]]) -> None:
        """Add rows, all of them or none; a row has the table's columns in their order."""
        if not rows:
            return
        marks = ", ".join("?" * len(rows[0]))
        with mapped_errors(None, "session"), transaction(self._connection):
            for row in rows:
                self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)

    def rows(self, table: SessionTable) -> list[tuple[Any, ...]]:
        """All rows of a table in the order in which they were added."""
        with mapped_errors(None, "session"):
            return self._connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()

    def close(self) -> None:
        """Let another process in."""
        self._connection.close()
