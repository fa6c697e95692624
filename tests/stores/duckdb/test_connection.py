"""DuckDB files: opened, migrated, locked, killed, damaged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pytest

from docpager.clocks import SystemClock
from docpager.errors import ArchiveError, ArchiveLocked
from docpager.stores.duckdb.connection import (
    Migration,
    connect,
    insert_rows,
    mapped_errors,
    strings,
    transaction,
)
from docpager.testing import FrozenClock

FIRST = Migration("first", ("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)"))
SECOND = Migration("second", ("ALTER TABLE t ADD COLUMN b INTEGER",))
CLOCK = FrozenClock()


def make(path: Path, *migrations: Migration) -> None:
    connect(path, migrations, clock=CLOCK).close()


@contextmanager
def another_process(path: Path, *, read_only: bool = False, work: str = "") -> Iterator[int]:
    """A process that has the file open, and has done `work` with it; killed at the end."""
    script = f"""
        import duckdb, sys, time
        connection = duckdb.connect({str(path)!r}, read_only={read_only})
        {work or "pass"}
        print("open", flush=True)
        time.sleep(60)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), "docpager-test"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"open\n"
        yield process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()


# ---- schema


def test_migrations_are_applied_once_in_order_and_recorded(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.duckdb"
    make(path, FIRST)
    make(path, FIRST, SECOND)
    with connect(path, [FIRST, SECOND], clock=CLOCK, read_only=True) as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == [(1, None)]
        rows = connection.execute("SELECT number, name FROM migration ORDER BY 1").fetchall()
        assert rows == [(1, "first"), (2, "second")]
    assert sorted(file.name for file in path.parent.iterdir()) == ["a.duckdb"]


def test_a_migration_that_fails_leaves_the_schema_before_it(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    make(path, FIRST)
    broken = Migration("second", ("ALTER TABLE t ADD COLUMN b INTEGER", "SELECT nonsense"))
    with pytest.raises(ArchiveError, match="nonsense"):
        make(path, FIRST, broken)
    with connect(path, [FIRST], clock=CLOCK) as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_a_file_that_cannot_be_made_whole_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with pytest.raises(ArchiveError, match="nonsense"):
        make(path, FIRST, Migration("second", ("SELECT nonsense",)))
    assert list(tmp_path.iterdir()) == []


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "a.duckdb", FIRST, SECOND)
    for read_only in (True, False):
        with pytest.raises(ArchiveError, match=r"too new.*Upgrade docpager"):
            connect(tmp_path / "a.duckdb", [FIRST], clock=CLOCK, read_only=read_only)


def test_an_older_schema_is_refused_read_only(tmp_path: Path) -> None:
    make(tmp_path / "a.duckdb", FIRST)
    with pytest.raises(ArchiveError, match=r"older docpager.*docpager ingest"):
        connect(tmp_path / "a.duckdb", [FIRST, SECOND], clock=CLOCK, read_only=True)


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    foreign, other_kind = tmp_path / "foreign.duckdb", tmp_path / "session.duckdb"
    with duckdb.connect(str(foreign)) as connection:
        connection.execute("CREATE TABLE theirs (x INTEGER)")
    make(other_kind, Migration("session", ("CREATE TABLE s (x INTEGER)",)))
    for path in (foreign, other_kind):
        before = path.read_bytes()
        for read_only in (True, False):
            with pytest.raises(ArchiveError, match="no archive of docpager"):
                connect(path, [FIRST], clock=CLOCK, read_only=read_only)
        assert path.read_bytes() == before


def test_a_private_database_needs_no_file() -> None:
    with connect(None, [FIRST, SECOND], clock=CLOCK) as connection:
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_nothing_is_fetched_or_loaded_at_run_time(tmp_path: Path) -> None:
    with connect(tmp_path / "a.duckdb", [FIRST], clock=CLOCK) as connection:
        rows = connection.execute(
            "SELECT value FROM duckdb_settings() WHERE name IN"
            " ('autoinstall_known_extensions', 'autoload_known_extensions')"
        ).fetchall()
    assert rows == [("false",), ("false",)]


# ---- what is not a sound file


def test_a_missing_file_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="docpager ingest"):
        connect(tmp_path / "a.duckdb", [FIRST], clock=CLOCK, read_only=True)
    with pytest.raises(ArchiveError, match="There is no session"):
        connect(tmp_path / "s", [FIRST], clock=CLOCK, read_only=True, kind="session")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "header", "middle"])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_damaged_file_is_an_error_that_says_what_to_do(
    tmp_path: Path, damage: str, read_only: bool
) -> None:
    path = tmp_path / "a.duckdb"
    make(path, FIRST)
    sound = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "text": b"These are my notes.\n" * 500,
            "cut": sound[: len(sound) // 3],
            "header": sound[:6000],
            "middle": sound[:4200] + b"\xff" * 300 + sound[4500:],
        }[damage]
    )
    with pytest.raises(ArchiveError, match=r"damaged.*(restore|delete)"):
        connect(path, [FIRST], clock=CLOCK, read_only=read_only)


def test_a_folder_is_no_archive(tmp_path: Path) -> None:
    for read_only in (True, False):
        with pytest.raises(ArchiveError, match="is a folder"):
            connect(tmp_path, [FIRST], clock=CLOCK, read_only=read_only)


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ArchiveError, match="cannot be made"):
        connect(tmp_path / "file" / "a.duckdb", [FIRST], clock=CLOCK)


def test_what_a_killed_maker_left_long_ago_is_removed(tmp_path: Path) -> None:
    old, recent = tmp_path / "a.duckdb.new-1", tmp_path / "a.duckdb.new-2"
    for leftover in (old, recent):
        leftover.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    make(tmp_path / "a.duckdb", FIRST)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.duckdb", "a.duckdb.new-2"]


def test_two_who_make_one_file_at_once_share_it(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    slow = Migration("first", (*FIRST.statements, "SELECT sum(i) FROM range(1000000) r(i)"))
    threads = [threading.Thread(target=make, args=(path, slow)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with connect(path, [slow], clock=CLOCK) as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == [(1,)]


# ---- locks


def test_a_lock_is_waited_for_and_then_named_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    make(path, FIRST)
    with another_process(path) as pid:
        for read_only in (True, False):
            clock = FrozenClock()
            with pytest.raises(ArchiveLocked) as caught:
                connect(path, [FIRST], clock=clock, read_only=read_only, wait_s=2.0)
            assert caught.value.pid == pid
            assert sum(clock.slept) == pytest.approx(2.0)
            assert len(clock.slept) < 15
            for words in (f"process {pid}", "python", "--wait", str(path)):
                assert words in str(caught.value)


def test_a_lock_that_is_let_go_in_time_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    make(path, FIRST)
    with another_process(path) as pid:
        threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
        with connect(path, [FIRST], clock=SystemClock(), wait_s=None) as connection:
            assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_readers_share_a_file_and_shut_a_writer_out(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    make(path, FIRST)
    with another_process(path, read_only=True) as pid:
        connect(path, [FIRST], clock=CLOCK, read_only=True).close()
        with pytest.raises(ArchiveLocked, match=f"process {pid}"):
            connect(path, [FIRST], clock=CLOCK, wait_s=0)


def test_a_file_that_this_process_has_open_in_the_other_mode_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    make(path, FIRST)
    with (
        connect(path, [FIRST], clock=CLOCK, read_only=True),
        pytest.raises(ArchiveLocked) as caught,
    ):
        connect(path, [FIRST], clock=CLOCK, wait_s=0)
    assert caught.value.pid == os.getpid()


# ---- kill -9


@pytest.mark.parametrize("log", ["whole", "torn"])
def test_what_a_killed_writer_committed_is_there_and_the_rest_is_not(
    tmp_path: Path, log: str
) -> None:
    path = tmp_path / "a.duckdb"
    make(path, FIRST)
    work = (
        "connection.execute('INSERT INTO t VALUES (2)');"
        "connection.execute('BEGIN');"
        "connection.execute('INSERT INTO t SELECT i FROM range(50000) r(i)')"
    )
    with another_process(path, work=work):
        pass
    wal = path.with_name("a.duckdb.wal")
    assert wal.exists()
    expected = [(1,), (2,)]
    if log == "torn":
        wal.write_bytes(wal.read_bytes()[:-7])
        expected = [(1,)]
    for _ in range(2):
        with connect(path, [FIRST], clock=CLOCK, read_only=True) as connection:
            assert connection.execute("SELECT a FROM t ORDER BY a").fetchall() == expected
    with connect(path, [FIRST], clock=CLOCK) as connection:
        connection.execute("INSERT INTO t VALUES (3)")
    assert not wal.exists()
    with connect(path, [FIRST], clock=CLOCK, read_only=True) as connection:
        assert connection.execute("SELECT a FROM t ORDER BY a").fetchall() == [*expected, (3,)]


# ---- small parts


def test_a_transaction_is_whole_or_nothing() -> None:
    with connect(None, [FIRST], clock=CLOCK) as connection:
        with pytest.raises(KeyError), transaction(connection):
            connection.execute("INSERT INTO t VALUES (2)")
            raise KeyError
        with pytest.raises(duckdb.Error), transaction(connection):
            connection.execute("INSERT INTO t VALUES (3)")
            connection.execute("SELECT nonsense")
        with transaction(connection):
            connection.execute("INSERT INTO t VALUES (4)")
        assert connection.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (4,)]


def test_rows_are_appended_by_column_name() -> None:
    with connect(None, [], clock=CLOCK) as connection:
        connection.execute("CREATE TABLE u (name VARCHAR, number INTEGER)")
        columns = {"number": np.arange(3), "name": strings(["ä", "\x00", ""])}
        assert insert_rows(connection, "u", columns) == 3
        assert connection.execute("SELECT * FROM u").fetchall() == [("ä", 0), ("\x00", 1), ("", 2)]


def test_errors_of_duckdb_name_the_file_and_what_to_do() -> None:
    said = r"archive x\.duckdb .*boom\. Check the disk"
    with pytest.raises(ArchiveError, match=said), mapped_errors(Path("x.duckdb")):
        raise duckdb.IOException("boom\nmore")
