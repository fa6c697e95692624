"""`Archive` where others interfere: threads, processes, callbacks, kills, replaced files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import docpager
from docpager.agent.runs import list_runs

ROOT = Path(__file__).parent.parent
LETTERS, MINUTES = ROOT / "sample_docs" / "letters", ROOT / "sample_docs" / "minutes"
QUERIES = ["harbour", "speed limit", "lamp", "carrow", "tide"] * 8
INGEST = "import sys, docpager; docpager.Archive(sys.argv[1]).ingest(sys.argv[2:])"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "a.duckdb"
    docpager.Archive(made).ingest([LETTERS])
    return made


def test_threads_find_what_one_thread_finds(path: Path) -> None:
    with docpager.Archive(path) as archive:
        expected = {query: archive.search(query) for query in QUERIES}
        archive.close()
        with ThreadPoolExecutor(16) as pool:
            assert [*pool.map(archive.search, QUERIES)] == [expected[query] for query in QUERIES]
            calls: list[Callable[[], object]] = [
                archive.status,
                archive.close,
                archive.documents,
                archive.vectors,
                lambda: list(archive.passages()),
                lambda: archive.read("carrow-letters.txt"),
            ]
            for done in [pool.submit(call) for call in calls * 10]:
                done.result()


def test_threads_wait_for_an_ingest(path: Path) -> None:
    with docpager.Archive(path) as archive, ThreadPoolExecutor(2) as pool:
        ingest = pool.submit(archive.ingest, [LETTERS])
        assert archive.search("lamp").total == pool.submit(archive.search, "lamp").result().total
        assert ingest.result().unchanged == 1


def test_a_callback_of_an_ingest_that_asks_the_same_archive_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from docpager.wiring import resources

    monkeypatch.setattr(resources, "LOCK_WAIT_S", 0.1)
    with docpager.Archive(path, wait=True) as archive:
        with pytest.raises(docpager.ArchiveLocked, match="Wait until `ingest` or `remove`"):
            archive.ingest([MINUTES], on_progress=lambda _: print(archive.status()))
        assert archive.ingest([MINUTES]).failed == 0
        assert archive.status().ready == 2


def test_passages_go_on_after_a_close(path: Path) -> None:
    archive = docpager.Archive(path)
    passages = archive.passages()
    first = next(passages)
    archive.close()
    assert [first, *passages] == [*archive.passages()]
    archive.close()


def test_nested_blocks_close_once_and_open_again(path: Path) -> None:
    with docpager.Archive(path) as archive:
        with archive:
            found = archive.search("lamp")
        assert archive.search("lamp") == found
    assert archive.search("lamp") == found
    archive.close()


def test_a_file_that_was_replaced_is_read(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.duckdb"
    docpager.Archive(other).ingest([MINUTES])
    with docpager.Archive(path) as archive:
        assert archive.search("carrow").total
        other.replace(path)
        [document] = archive.documents()
        assert document.name.startswith("minutes/")
        assert archive.search("harbour").hits[0].passage.document == document.name
        path.unlink()
        with pytest.raises(docpager.ArchiveError, match="There is no archive"):
            archive.search("harbour")


def test_an_archive_that_is_open_elsewhere_in_this_process_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from docpager.wiring import stores

    monkeypatch.setattr(stores, "LOCK_WAIT_S", 0.1)
    with docpager.Archive(path) as reading:
        reading.status()
        with pytest.raises(docpager.ArchiveLocked, match="which is this one"):
            docpager.Archive(path).ingest([MINUTES])


def test_two_processes_that_ingest_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "two.duckdb"
    ingests = [
        subprocess.Popen([sys.executable, "-c", INGEST, str(path), str(folder)])
        for folder in (LETTERS, MINUTES)
    ]
    assert [ingest.wait(timeout=120) for ingest in ingests] == [0, 0]
    with docpager.Archive(path) as archive:
        assert [document.state for document in archive.documents()] == ["ready", "ready"]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("bytes_seen", [1, 1_500_000])
def test_a_killed_ingest_leaves_an_archive_that_goes_on(tmp_path: Path, bytes_seen: int) -> None:
    path = tmp_path / "killed.duckdb"
    folder = ROOT / "sample_docs"
    arguments = [sys.executable, "-c", INGEST, str(path), str(folder)]
    ingest = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while ingest.poll() is None and not (path.exists() and path.stat().st_size >= bytes_seen):
        time.sleep(0.01)
    ingest.send_signal(signal.SIGKILL)
    ingest.wait()
    with docpager.Archive(path) as archive:
        assert archive.status().failed == ()
        before = archive.status().ready
        report = archive.ingest([folder])
        assert report.failed == 0
        assert archive.status().ready >= before
        assert archive.status().pending == 0
        assert archive.search("harbour").total


def test_a_folder_that_may_not_be_entered_is_an_archive_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions do not stop root, so the refusal is that of `stat` and `glob`."""
    path = tmp_path / "closed" / "a.duckdb"
    really = Path.stat

    def stat(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if "closed" in self.parts:
            raise PermissionError(13, "Permission denied", str(self))
        return really(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", stat)
    archive = docpager.Archive(path)
    for refused in (archive.status, lambda: archive.ingest([LETTERS])):
        with pytest.raises(docpager.ArchiveError, match="cannot be reached: Permission denied"):
            refused()
    (tmp_path / "q.jsonl").write_text('{"question": "When?"}', encoding="utf-8")
    with pytest.raises(docpager.UserError, match="cannot be written"):
        docpager.Archive(tmp_path / "b.duckdb", model="m", base_url="http://127.0.0.1:9/v1").batch(
            tmp_path / "q.jsonl", tmp_path / "closed" / "r.jsonl"
        )


def test_runs_that_vanish_or_may_not_be_read_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("closed", "open"):
        (tmp_path / name).mkdir()
    (tmp_path / "open" / "kept.jsonl").touch()
    (tmp_path / "open" / "renamed.jsonl.1-2").symlink_to(tmp_path / "gone")
    really = Path.glob

    def glob(self: Path, pattern: str) -> object:
        if self.name == "closed":
            raise PermissionError(13, "Permission denied", str(self))
        return really(self, pattern)

    monkeypatch.setattr(Path, "glob", glob)
    runs = list_runs([tmp_path / "closed", tmp_path / "open", tmp_path / "missing"])
    assert [run.run_id for run in runs] == ["kept"]
