"""DuckDB files: opened, migrated, and their errors mapped. The one seam to that library.

A file is made whole: it is built beside its place and then linked into it, so that a process
killed at any moment leaves either no file or a sound one. What a killed writer had committed is
in the log beside the file, which DuckDB replays at the next open, read-only ones too.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident

import duckdb
import numpy as np
import numpy.typing as npt

from docpager.errors import ArchiveError, ArchiveLocked
from docpager.protocols import Clock
from docpager.unicode import shortened

WAIT_S = 5.0
"""How long a lock held by another process is waited for unless told otherwise, in seconds."""

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    # Nothing is fetched or loaded at run time.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
_WRITER_BYTES = 128 << 20
"""What DuckDB may take to write: beyond it, what is sorted and grouped goes to disk meanwhile."""
_WRITER_SHARE = 64
"""Of large archives, one part in so many: the indices that grow with them have to fit."""
_MIGRATIONS_TABLE = "CREATE TABLE migration (number INTEGER, name VARCHAR)"
_LOCK_HOLDER = re.compile(r"\(PID (\d+)\)")
_INTERRUPTED = "Query interrupted"
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5
_LEFTOVER_AGE_S = 3600.0


@dataclass(frozen=True, slots=True)
class Migration:
    """A named step of a schema: its statements are applied once, in one transaction."""

    name: str
    statements: tuple[str, ...]


def connect(
    path: Path | None,
    migrations: Sequence[Migration],
    *,
    clock: Clock,
    read_only: bool = False,
    wait_s: float | None = WAIT_S,
    kind: str = "archive",
) -> duckdb.DuckDBPyConnection:
    """A connection to the DuckDB file at `path`, with all of `migrations` applied.

    Args:
        path: None for a private database in memory.
        migrations: All steps of this kind of file, oldest first.
        clock: Its `monotonic` and `sleep` are used while a lock is waited for.
        read_only: Any number of processes may open a file so, while none writes.
        wait_s: How long to wait for a lock that another process holds; None is for ever.
        kind: What the file is called in messages.

    Raises:
        ArchiveLocked: another process still holds the file after `wait_s`.
        ArchiveError: the file is missing (when read-only), damaged, not of this kind, or its
            schema is newer than `migrations` (or older, when read-only).
    """
    if path is None:
        connection = duckdb.connect(":memory:", config=_SETTINGS)
        _migrate(connection, migrations)
        return connection
    if not exists(path, kind):
        if read_only:
            raise ArchiveError(missing_message(path, kind))
        _create(path, migrations, kind)
    connection = _open(path, clock=clock, read_only=read_only, wait_s=wait_s, kind=kind)
    try:
        with mapped_errors(path, kind):
            _check_schema(connection, migrations, path, kind, read_only)
            if not read_only:
                _migrate(connection, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


def exists(path: Path, kind: str = "archive") -> bool:
    """Whether there is a file or folder at `path`.

    Raises:
        ArchiveError: one of its folders may not be entered.
    """
    try:
        return path.exists()
    except OSError as error:
        raise ArchiveError(
            f"The {kind} {path} cannot be reached: {error.strerror}. Change the permissions of "
            "its folder, or name another file."
        ) from error


@contextmanager
def mapped_errors(path: Path | None, kind: str = "archive") -> Iterator[None]:
    """Within it, what DuckDB raises about the file at `path` is an `ArchiveError`.

    Ctrl-C during a query stays a `KeyboardInterrupt`: DuckDB reports it as an interrupted query,
    or as a bare `RuntimeError` that has no other mark than its text.
    """
    where = path or "in memory"
    try:
        yield
    except duckdb.InterruptException as error:
        raise KeyboardInterrupt from error
    except RuntimeError as error:
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from error
        raise
    except duckdb.Error as error:
        first_line = str(error).strip().split("\n", 1)[0]
        raise ArchiveError(
            f"The {kind} {where} cannot be read or written: {first_line}. Check the disk and the "
            f"file's permissions; if the file is damaged, restore a copy or make it anew."
        ) from error


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All that is executed within it is committed together, or not at all."""
    connection.execute("BEGIN TRANSACTION")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A failed COMMIT has ended the transaction already; the first error is the one to tell.
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise


def _open(
    path: Path, *, clock: Clock, read_only: bool, wait_s: float | None, kind: str
) -> duckdb.DuckDBPyConnection:
    began = clock.monotonic()
    pause = _FIRST_PAUSE_S
    settings = _SETTINGS if read_only else _SETTINGS | {"memory_limit": _writer_limit(path)}
    while True:
        try:
            return duckdb.connect(str(path), read_only=read_only, config=settings)
        except duckdb.Error as error:
            if not _is_lock(error):
                raise ArchiveError(_unopened(path, kind, error, read_only)) from error
            left = None if wait_s is None else began + wait_s - clock.monotonic()
            if left is not None and left <= 0:
                raise _locked(path, kind, error) from error
            clock.sleep(pause if left is None else min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE_S)


def _writer_limit(path: Path) -> str:
    size = path.stat().st_size if path.exists() else 0
    return f"{max(_WRITER_BYTES, size // _WRITER_SHARE) >> 20}MiB"


def _is_lock(error: duckdb.Error) -> bool:
    # DuckDB has no type or code for either: a lock of another process, and a file which this
    # process has open in the other mode.
    text = str(error)
    if isinstance(error, duckdb.ConnectionException):
        return "different configuration" in text
    return isinstance(error, duckdb.IOException) and "Could not set lock on file" in text


def _locked(path: Path, kind: str, error: duckdb.Error) -> ArchiveLocked:
    if isinstance(error, duckdb.ConnectionException):
        return ArchiveLocked(
            f"The {kind} {path} is in use by process {os.getpid()}, which is this one. Close it "
            "where else it is open.",
            os.getpid(),
        )
    found = _LOCK_HOLDER.search(str(error))
    pid = int(found[1]) if found else None
    command = _command_of(pid)
    holder = f"process {pid}" if pid is not None else "another process"
    holder += f" ({command})" if command else ""
    return ArchiveLocked(
        f"The {kind} {path} is in use by {holder}. Wait for it with --wait, or stop that process.",
        pid,
    )


def _command_of(pid: int | None) -> str:
    """The command line of a process, shortened; empty where the system does not tell."""
    if pid is None:
        return ""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    words = [word.decode("utf-8", "replace") for word in raw.split(b"\0") if word]
    command = " ".join([*(Path(word).name for word in words[:2]), *words[2:]])
    command = "".join(letter if letter.isprintable() else " " for letter in command)
    return shortened(command, 80)


def _unopened(path: Path, kind: str, error: duckdb.Error, read_only: bool) -> str:
    first_line = str(error).strip().split("\n", 1)[0]
    if path.is_dir():
        return f"{path} is a folder. Name the {kind} file itself."
    if not os.access(path, os.R_OK):
        return f"The {kind} {path} cannot be read: permission denied. Change its permissions."
    if not read_only and not os.access(path, os.W_OK):
        return (
            f"The {kind} {path} cannot be written: its permissions or a read-only file system "
            f"forbid it. It can be searched where it is; copy it elsewhere to change it."
        )
    return (
        f"{path} is damaged or is no {kind} of docpager: {first_line}. "
        f"Name another file, restore a copy, or delete it and make it anew."
    )


def missing_message(path: Path, kind: str) -> str:
    """What to say of a file that is not there."""
    if kind == "archive":
        return (
            f"There is no archive at {path}. Run `docpager ingest FOLDER` to make it, or name "
            f"another one with --archive."
        )
    return f"There is no {kind} at {path}. Check its name."


def _create(path: Path, migrations: Sequence[Migration], kind: str) -> None:
    """Make a whole new file at `path`; the file of a process that was faster is kept."""
    _remove_leftovers(path)
    partial = path.with_name(f"{path.name}.new-{os.getpid()}-{get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        with mapped_errors(path, kind), duckdb.connect(str(partial), config=_SETTINGS) as made:
            _migrate(made, migrations)
        with suppress(FileExistsError):
            os.link(partial, path)
    except OSError as error:
        raise ArchiveError(
            f"The {kind} {path} cannot be made: {error.strerror or error}. "
            f"Choose a place that can be written."
        ) from error
    finally:
        for leftover in (partial, partial.with_name(f"{partial.name}.wal")):
            with suppress(OSError):
                leftover.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Delete what a process that was killed while it made the file left long ago."""
    oldest = time.time() - _LEFTOVER_AGE_S
    for leftover in path.parent.glob(f"{path.name}.new-*"):
        with suppress(OSError):
            if leftover.stat().st_mtime < oldest:
                leftover.unlink()


def _applied(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute("SELECT name FROM migration ORDER BY number").fetchall()
    return [name for (name,) in rows]


def _tables(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    rows = connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal")
    return frozenset(name for (name,) in rows.fetchall())


def _check_schema(
    connection: duckdb.DuckDBPyConnection,
    migrations: Sequence[Migration],
    path: Path,
    kind: str,
    read_only: bool,
) -> None:
    tables = _tables(connection)
    if "migration" not in tables:
        if tables or read_only:
            raise ArchiveError(
                f"{path} is a DuckDB file but no {kind} of docpager. Name another file."
            )
        return
    applied = _applied(connection)
    known = [migration.name for migration in migrations]
    if applied[:1] != known[:1]:
        raise ArchiveError(f"{path} is no {kind} of docpager. Name another file.")
    if applied != known[: len(applied)]:
        raise ArchiveError(
            f"The {kind} {path} is too new: its schema has {len(applied)} steps and this docpager "
            f"knows {len(known)}. Upgrade docpager."
        )
    if read_only and len(applied) < len(known):
        raise ArchiveError(
            f"The {kind} {path} was made by an older docpager. Run `docpager ingest` on its "
            f"folders once to upgrade it."
        )


def _migrate(connection: duckdb.DuckDBPyConnection, migrations: Sequence[Migration]) -> None:
    if "migration" not in _tables(connection):
        connection.execute(_MIGRATIONS_TABLE)
    done = len(_applied(connection))
    for number, migration in enumerate(migrations[done:], start=done + 1):
        with transaction(connection):
            for statement in migration.statements:
                connection.execute(statement)
            connection.execute("INSERT INTO migration VALUES (?, ?)", [number, migration.name])


@contextmanager
def new_rows(
    connection: duckdb.DuckDBPyConnection, columns: Mapping[str, npt.NDArray[np.generic]]
) -> Iterator[None]:
    """Within it, queries see a table `new_rows` of equally long columns by name.

    Strings are in arrays of objects (`strings`).
    """
    connection.register("new_rows", columns)
    try:
        yield
    finally:
        connection.unregister("new_rows")


def insert_rows(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: Mapping[str, npt.NDArray[np.generic]],
) -> int:
    """Append rows, as `new_rows` takes them; returns how many were taken."""
    with new_rows(connection, columns):
        ((taken,),) = connection.execute(
            f"INSERT INTO {table} BY NAME SELECT * FROM new_rows"
        ).fetchall()
    return int(taken)


def strings(values: Iterable[str | None]) -> npt.NDArray[np.object_]:
    """A column of strings for `new_rows`; None is NULL."""
    return np.array(list(values), dtype=object)
