"""The archive in its file: what outlives the process, locks, the embedder's identity, orphans."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pytest

from docpager.errors import ArchiveError, ArchiveLocked, UserError
from docpager.retrieval.vectors import (
    check_identity,
    check_probe,
    identity_from_json,
    identity_to_json,
)
from docpager.stores.duckdb import postings
from docpager.stores.duckdb import reader as archive_module
from docpager.stores.duckdb.connection import connect
from docpager.stores.duckdb.reader import DuckDBReader
from docpager.stores.duckdb.schema import MIGRATIONS
from docpager.stores.duckdb.writer import DuckDBWriter, open_writer
from docpager.testing import FrozenClock, HashEmbedder
from docpager.types import Chunk, Document, EmbedderIdentity, PageText, ParsedDocument

EMBEDDER = HashEmbedder()
CLOCK = FrozenClock()


def put(writer: DuckDBWriter, name: str, texts: Sequence[str]) -> None:
    parsed = ParsedDocument(tuple(PageText(at, text) for at, text in enumerate(texts, 1)), True)
    chunks, start = [], 0
    for number, text in enumerate(texts, 1):
        chunks.append(Chunk(text, start, start + len(text), number, number))
        start += len(text) + 1
    writer.put_vectors([chunk.text_hash for chunk in chunks], EMBEDDER.embed(texts))
    content_hash = sha256("".join(texts).encode()).hexdigest()
    writer.store(Document(name, "ready", content_hash, start, "/"), parsed, chunks)


def fill(path: Path, **documents: Sequence[str]) -> None:
    with open_writer(path, EMBEDDER.identity, clock=CLOCK) as writer:
        for name, texts in documents.items():
            put(writer, f"c/{name}", texts)
        writer.compact()


def opened(
    path: Path, identity: EmbedderIdentity | None = None
) -> AbstractContextManager[DuckDBWriter]:
    return open_writer(path, identity, clock=FrozenClock(), wait_s=1)


def rows(path: Path, table: str) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        ((count,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(count)


def test_nothing_is_left_of_what_was_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    fill(path, a=["one fish", "two fish"], b=["two fish", "red"])
    fill(path, a=["blue fish"])
    assert rows(path, "vector") == 3, "the one that b shares is kept"
    assert (rows(path, "passage"), rows(path, "page")) == (3, 3)
    with open_writer(path, clock=CLOCK) as writer:
        assert writer.remove(["c/a", "c/b"]) == 3
    for table in ("document", "page", "passage", "vector", "posting", "fresh_posting"):
        assert rows(path, table) == 0, table


def test_writing_in_many_bursts_is_as_good_as_in_one(tmp_path: Path) -> None:
    texts = {f"d{at}": [f"word{at} common", f"word{at % 3} rare{at}"] for at in range(12)}
    one, many = tmp_path / "one.duckdb", tmp_path / "many.duckdb"
    fill(one, **texts)
    for name, passages in texts.items():
        fill(many, **{name: passages})
    found = []
    for path in (one, many):
        with DuckDBReader.open(path, clock=CLOCK) as archive:
            found.append(
                [archive.lexical_search(query, 20) for query in ("common", "word1", "rare7 word1")]
            )
            assert archive.status().passages == 24
    assert found[0] == found[1]


def test_postings_are_folded_in_as_many_steps_as_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {f"d{at}": [f"word{at} common", f"word{at % 3} rare{at}"] for at in range(12)}
    found = []
    for at_once in (1_000_000, 7):
        monkeypatch.setattr(postings, "FOLDED_AT_ONCE", at_once)
        path = tmp_path / f"{at_once}.duckdb"
        for name, passages in texts.items():
            fill(path, **{name: passages})
        with DuckDBReader.open(path, clock=CLOCK) as archive:
            found.append([archive.lexical_search(q, 20) for q in ("common", "word1", "rare7")])
    assert found[0] == found[1] and all(found[0])


def test_status_counts_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    fill(path, a=["one", "two"], b=["three"])
    failed = Document(
        "c/x", "failed", "0", 1, "/", reason="encrypted", message="Remove the password."
    )
    with open_writer(path, clock=CLOCK) as writer:
        writer.record(failed)
        writer.record(Document("c/y", "duplicate", "0", 1, "/", duplicate_of="c/a"))
    with DuckDBReader.open(path, clock=CLOCK) as archive:
        status = archive.status()
        assert (status.ready, status.duplicates, status.failed) == (2, 1, (failed,))
        assert (status.passages, status.pages, status.generation) == (3, 3, 4)
        assert status.bytes == path.stat().st_size
        assert status.embedder == EMBEDDER.identity


def test_the_content_hash_follows_what_can_be_found(tmp_path: Path) -> None:
    hashes = []
    path = tmp_path / "a.duckdb"

    def note() -> None:
        with DuckDBReader.open(path, clock=CLOCK) as archive:
            hashes.append(archive.content_hash())

    fill(path, a=["one"])
    note()
    with open_writer(path, clock=CLOCK) as writer:
        writer.record(Document("c/x", "failed", "0", 1, "/", reason="damaged"))
    note()
    fill(path, b=["two"])
    note()
    with open_writer(path, clock=CLOCK) as writer:
        writer.remove(["c/b"])
    note()
    assert hashes[0] == hashes[1] == hashes[3] != hashes[2]


def test_vectors_too_large_for_memory_are_scanned_with_the_same_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.duckdb"
    fill(path, a=[f"words {at} and {at % 7}" for at in range(40)], b=["words 3 and 3"])
    vector = EMBEDDER.embed(["words 3"])[0]
    found = []
    for limit in (archive_module.RESIDENT_BYTES, 0):
        monkeypatch.setattr(archive_module, "RESIDENT_BYTES", limit)
        with DuckDBReader.open(path, clock=CLOCK) as archive:
            found.append([archive.vector_search(vector, 50, glob) for glob in (None, "*b")])
    for held, scanned in zip(*found, strict=True):
        assert {hit.passage_id for hit in held} == {hit.passage_id for hit in scanned}
        assert [hit.score for hit in held] == pytest.approx([h.score for h in scanned], abs=1e-5)


def test_a_query_vector_of_zeros_is_near_to_nothing_and_nan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    fill(path, a=["one"])
    with DuckDBReader.open(path, clock=CLOCK) as archive:
        zeros = np.zeros(EMBEDDER.identity.dimension, np.float32)
        assert [hit.score for hit in archive.vector_search(zeros, 5)] == [0.0]
        with pytest.raises(ArchiveError, match="not finite"):
            archive.vector_search(zeros + np.nan, 5)


def test_an_archive_of_the_first_schema_is_brought_to_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with connect(path, MIGRATIONS[:1], clock=CLOCK) as connection:
        connection.execute(
            "INSERT INTO document VALUES (1, 'c/x', 'failed', '0', 1, '/', 2, true, 0, 0, NULL,"
            " 'damaged', 'Get it anew.', NULL)"
        )
    with pytest.raises(ArchiveError, match="older docpager"):
        DuckDBReader.open(path, clock=CLOCK)
    fill(path, a=["one"])
    with DuckDBReader.open(path, clock=CLOCK) as archive:
        (failed,) = archive.status().failed
        assert (failed.attempts, failed.reader, failed.mtime_ns) == (0, "", 2)


def test_vectors_of_an_archive_that_had_an_index_of_them_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    fill(path, a=["one fish", "two fish"])
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE keyed AS FROM vector")
        connection.execute("ALTER TABLE keyed ADD PRIMARY KEY (text_hash)")
        connection.execute("DROP TABLE vector")
        connection.execute("ALTER TABLE keyed RENAME TO vector")
        connection.execute("DELETE FROM migration WHERE name = 'vectors without an index'")
    fill(path, b=["two fish", "red"])
    assert rows(path, "vector") == 3
    with DuckDBReader.open(path, clock=CLOCK) as archive:
        (best, *_) = archive.vector_search(EMBEDDER.embed(["two fish"])[0], 1)
        assert best.score == pytest.approx(1.0)
    with duckdb.connect(str(path), read_only=True) as connection:
        keys = "SELECT * FROM duckdb_constraints() WHERE table_name = 'vector'"
        assert "PRIMARY KEY" not in str(connection.execute(keys).fetchall())


# ---- the embedder's identity


def test_another_embedder_is_refused_and_told_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    fill(path, a=["one"])
    for other in (HashEmbedder(name="other"), HashEmbedder(dimension=8)):
        advice = "Set the embedder to hash .DOCPAGER_EMBEDDER.*, or ingest into a new archive"
        with pytest.raises(UserError, match=advice), opened(path, other.identity):
            pass
    with DuckDBReader.open(path, clock=CLOCK) as archive:
        assert archive.embedder_identity() == EMBEDDER.identity


def test_a_changed_model_of_the_same_name_is_noticed_by_its_probe() -> None:
    stored = EMBEDDER.identity
    noise = np.array(stored.probe) + 1e-4
    check_probe(stored, stored)
    check_probe(stored, replace(stored, probe=tuple(noise.tolist())))
    check_probe(stored, replace(stored, probe=()))
    for changed in (tuple(reversed(stored.probe)), stored.probe[:-1], (float("nan"),) * 32):
        with pytest.raises(UserError, match="its model has changed"):
            check_probe(stored, replace(stored, probe=changed))
    check_identity(stored, replace(stored, probe=()))


def test_an_identity_is_kept_exactly() -> None:
    identity = EmbedderIdentity("openai:名", 3, False, (0.1, -1e-9, 1 / 3))
    assert identity_from_json(identity_to_json(identity)) == identity


def test_only_an_archive_that_exists_is_opened_without_an_embedder(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with pytest.raises(ArchiveError, match="docpager ingest"), opened(path):
        pass
    fill(path)
    with DuckDBReader.open(path, clock=CLOCK) as archive:
        assert archive.embedder_identity() == EMBEDDER.identity


# ---- several at once


def test_four_readers_search_at_once_while_a_writer_is_told_who_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    fill(path, a=[f"fish {at}" for at in range(30)])
    script = f"""
        import sys
        from pathlib import Path
        from docpager.stores.duckdb.reader import DuckDBReader
        from docpager.testing import FrozenClock
        with DuckDBReader.open(Path({str(path)!r}), clock=FrozenClock()) as archive:
            print(archive.lexical_search("fish 7", 1)[0].passage_id, flush=True)
            sys.stdin.read()
    """
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    try:
        said = [reader.stdout.readline() for reader in readers if reader.stdout]
        assert said == ["P8\n"] * 4
        with pytest.raises(ArchiveLocked) as caught, opened(path, EMBEDDER.identity):
            pass
        assert caught.value.pid in {reader.pid for reader in readers}
        assert f"process {caught.value.pid}" in str(caught.value)
    finally:
        for reader in readers:
            reader.communicate("")
    fill(path, b=["written when they are gone"])


def test_threads_may_each_open_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    fill(path, a=[f"fish {at}" for at in range(30)])
    found: list[str] = []

    def ask(number: int) -> None:
        with DuckDBReader.open(path, clock=FrozenClock()) as archive:
            found.extend(hit.passage_id for hit in archive.lexical_search(f"{number}", 1))

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(f"P{at + 1}" for at in range(8))


WRITER = """
    import sys
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    from test_reader import CLOCK, EMBEDDER, open_writer, put
    for at in range({first}, {last}):
        with open_writer(Path({path!r}), EMBEDDER.identity, clock=CLOCK) as writer:
            put(writer, f"c/{{at}}", [f"doc{{at}} page{{n}} common" for n in range(6)])
            put(writer, "c/again", [f"version{{at}}"])
        print(at, flush=True)
"""


def test_kill_9_leaves_whole_documents_only_and_a_further_run_completes(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    chance = random.Random(5)
    fill(path)
    done = 0
    for _ in range(3):
        script = WRITER.format(
            tests=str(Path(__file__).parent), first=done, last=99, path=str(path)
        )
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        with DuckDBReader.open(path, clock=CLOCK) as archive:
            names = [document.name for document in archive.documents()]
            numbered = [name for name in names if name != "c/again"]
            done = len(numbered)
            assert set(numbered) == {f"c/{at}" for at in range(done)}
            assert archive.passage_count == 6 * done + ("c/again" in names)
            assert len(archive.lexical_search("common", 999)) == 6 * done
            hits = archive.vector_search(EMBEDDER.embed(["common"])[0], 999)
            assert len(hits) == archive.passage_count
            statistics = archive.term_statistics([f"doc{done - 1}", "common"])
            assert statistics.passage_frequency == {f"doc{done - 1}": 6, "common": 6 * done}
    with DuckDBReader.open(path, clock=CLOCK) as archive:
        # Numbers follow the order of commits, and what was killed took none.
        first = [archive.page_passages(f"c/{at}", 1)[0].passage_id for at in range(done)]
    numbers = [int(passage_id[1:]) for passage_id in first]
    assert numbers[0] == 1
    assert all(after - before in (6, 7) for before, after in pairwise(numbers))


def test_threads_beside_each_other_find_what_one_alone_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.duckdb"
    fill(path, **{f"d{at}": [f"word{at} common", f"word{at % 3} rare{at}"] for at in range(12)})
    # As little as can be kept, so that each often takes away what the others have read.
    monkeypatch.setattr(archive_module, "KEPT_POSTINGS", 1)
    monkeypatch.setattr(archive_module, "MOST_KEPT", 1)
    queries = [f"word{at} common rare{at}" for at in range(12)]

    def found(archive: DuckDBReader) -> list[tuple[object, ...]]:
        hits = [archive.lexical_search(query, 5) for query in queries]
        return [(hit, archive.passages([one.passage_id for one in hit])) for hit in hits]

    def often(archive: DuckDBReader) -> list[list[tuple[object, ...]]]:
        with archive:
            return [found(archive) for _ in range(20)]

    with DuckDBReader.open(path, clock=CLOCK) as archive, ThreadPoolExecutor(8) as pool:
        expected = found(archive)
        for results in pool.map(often, [archive.for_thread() for _ in range(8)]):
            assert all(result == expected for result in results)
