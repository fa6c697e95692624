"""Laws of `ArchivalStore` and `ArchiveWriter`, over the archive in a file and the one in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.errors import ArchiveError, DocpagerError, UserError
from docpager.protocols import ArchivalStore, ArchiveWriter
from docpager.retrieval.pages import page_slices, result_page
from docpager.retrieval.search import search
from docpager.retrieval.terms import terms
from docpager.stores.duckdb.reader import DuckDBReader
from docpager.stores.duckdb.writer import open_writer
from docpager.stores.in_memory import InMemoryStore
from docpager.testing import FrozenClock, HashEmbedder
from docpager.types import Chunk, Document, PageText, ParsedDocument

EMBEDDER = HashEmbedder()
CLOCK = FrozenClock()


class Library(Protocol):
    """Somewhere to write documents and to read them back."""

    def writing(self) -> Iterator[ArchiveWriter]: ...
    def reading(self) -> Iterator[ArchivalStore]: ...


class FileLibrary:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "a.duckdb"
        with open_writer(self.path, EMBEDDER.identity, clock=CLOCK):
            pass

    @contextmanager
    def writing(self) -> Iterator[ArchiveWriter]:
        with open_writer(self.path, EMBEDDER.identity, clock=CLOCK) as writer:
            yield writer

    @contextmanager
    def reading(self) -> Iterator[ArchivalStore]:
        with DuckDBReader.open(self.path, clock=CLOCK) as archive:
            yield archive


class MemoryLibrary:
    def __init__(self, folder: Path) -> None:
        self.archive = InMemoryStore(EMBEDDER.identity)

    @contextmanager
    def writing(self) -> Iterator[ArchiveWriter]:
        yield self.archive

    @contextmanager
    def reading(self) -> Iterator[ArchivalStore]:
        yield self.archive


@pytest.fixture(params=[FileLibrary, MemoryLibrary])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Library:
    made: Callable[[Path], Library] = request.param
    return made(tmp_path)


def cut(texts: Sequence[str], heading: str = "") -> tuple[ParsedDocument, list[Chunk]]:
    """A document of one page and one chunk for each text."""
    parsed = ParsedDocument(tuple(PageText(at, text) for at, text in enumerate(texts, 1)), True)
    chunks, start = [], 0
    for number, text in enumerate(texts, 1):
        end = start + len(text)
        if text:
            chunks.append(Chunk(text, start, end, number, number, heading, tokens=len(text) // 4))
        start = end + 1
    return parsed, chunks


def row(name: str, text: str = "", **more: object) -> Document:
    values: dict[str, object] = {"state": "ready", "size": len(text), "root": "/corpus"}
    content_hash = sha256(text.encode()).hexdigest()
    return Document(name=name, content_hash=content_hash, **(values | more))  # type: ignore[arg-type]


def put(writer: ArchiveWriter, name: str, texts: Sequence[str], heading: str = "") -> Document:
    parsed, chunks = cut(texts, heading)
    wanted = writer.missing_vectors([chunk.text_hash for chunk in chunks])
    fresh = {chunk.text_hash: chunk.indexed_text for chunk in chunks if chunk.text_hash in wanted}
    if fresh:
        writer.put_vectors(list(fresh), EMBEDDER.embed(list(fresh.values())))
    return writer.store(row(name, "\n".join(texts)), parsed, chunks)


def fill(library: Library, documents: dict[str, Sequence[str]]) -> None:
    with library.writing() as writer:
        for name, texts in documents.items():
            put(writer, name, texts)


def ids(hits: Sequence[object]) -> list[str]:
    return [hit.passage_id for hit in hits]  # type: ignore[attr-defined]


GAUSS = ["Gauss was born in Brunswick in 1777.", "He died in Göttingen in 1855."]
EULER = ["Euler was born in Basel in 1707.", "He died in Saint Petersburg in 1783."]
CHINESE = ["公司总部位于深圳市南山区。", "第三季度收入增长百分之十二。"]


# ---- the two halves of a search


def test_both_halves_find_what_was_stored_best_first(library: Library) -> None:
    fill(library, {"c/gauss.pdf": GAUSS, "c/euler.pdf": EULER})
    with library.reading() as store:
        assert store.passage_count == 4
        assert ids(store.lexical_search("born in Basel", 10))[0] == "P3"
        assert ids(store.vector_search(EMBEDDER.embed(["died in Göttingen"])[0], 10))[0] == "P2"
        for hits in (
            store.lexical_search("in", 10),
            store.vector_search(EMBEDDER.embed(["died"])[0], 10),
        ):
            order = [(-hit.score, int(hit.passage_id[1:])) for hit in hits]
            assert order == sorted(order)
            assert all(np.isfinite(hit.score) for hit in hits)


def test_chinese_queries_find_chinese_text(library: Library) -> None:
    fill(library, {"c/gauss.pdf": GAUSS, "c/报告.pdf": CHINESE})
    with library.reading() as store:
        assert ids(store.lexical_search("总部在深圳吗？", 10)) == ["P3"]
        assert ids(store.lexical_search("收入", 10)) == ["P4"]


@pytest.mark.parametrize(
    "wanted",
    ["3f2504e0-4f89-11d3-9a0c-0305e82c3301", "ABC-123_x", "1,234.56", "12:30", "v1.2.10"],
)
def test_identifiers_are_found_exactly(library: Library, wanted: str) -> None:
    near = [wanted[:-1] + letter for letter in "789"]
    fill(library, {"c/a.txt": [f"value {near[0]}", f"value {wanted}", *near[1:]]})
    with library.reading() as store:
        assert ids(store.lexical_search(wanted, 10))[0] == "P2"


def test_equal_scores_are_in_order_of_passage_number(library: Library) -> None:
    fill(library, {f"c/{at}.txt": ["the same words"] for at in range(12)})
    with library.reading() as store:
        expected = [f"P{number}" for number in range(1, 13)]
        assert ids(store.lexical_search("same", 200)) == expected
        assert ids(store.vector_search(EMBEDDER.embed(["same"])[0], 200)) == expected
        assert ids(store.lexical_search("same", 5)) == expected[:5]


def test_a_glob_limits_both_halves_and_its_star_crosses_folders(library: Library) -> None:
    fill(library, {"c/a/gauss.pdf": GAUSS, "c/b/euler.md": EULER})
    vector = EMBEDDER.embed(["born"])[0]
    with library.reading() as store:
        for glob, expected in [("*.md", {"P3", "P4"}), ("c/a*", {"P1", "P2"}), ("*.PDF", set())]:
            assert set(ids(store.lexical_search("in", 10, glob))) == expected
            assert set(ids(store.vector_search(vector, 10, glob))) == expected


@pytest.mark.parametrize("query", ["", "   ", "?!", "\ud800", "\x00", "' OR 1=1 --", "%", "zzz"])
def test_odd_queries_find_nothing_and_do_not_fail(library: Library, query: str) -> None:
    fill(library, {"c/gauss.pdf": GAUSS})
    with library.reading() as store:
        assert store.lexical_search(query, 10) == ()


def test_an_empty_archive_answers_with_nothing(library: Library) -> None:
    with library.reading() as store:
        assert store.passage_count == 0
        assert store.lexical_search("anything", 10) == ()
        assert store.vector_search(EMBEDDER.embed(["anything"])[0], 10) == ()
        assert store.documents() == ()
        assert store.passages(["P1"]) == ()
        assert store.term_statistics(["anything"]).passages == 0


def test_a_query_vector_of_another_dimension_is_refused(library: Library) -> None:
    fill(library, {"c/gauss.pdf": GAUSS})
    with library.reading() as store, pytest.raises(UserError, match="DOCPAGER_EMBEDDER"):
        store.vector_search(np.ones(3, np.float32), 10)


words = st.sampled_from(["alpha", "beta", "gamma", "delta-7", "中文字", "x1.5", "the", "Ünï"])
texts = st.lists(st.lists(words, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=4)
corpora = st.dictionaries(st.sampled_from(["c/a", "c/b", "d/a", "d/c"]), texts, max_size=4)


@settings(max_examples=8, deadline=None)
@given(first=corpora, second=corpora, gone=st.sets(st.sampled_from(["c/a", "d/c"])), query=texts)
def test_both_stores_give_the_same_rankings_whatever_was_stored_replaced_and_removed(
    first: dict[str, list[str]], second: dict[str, list[str]], gone: set[str], query: list[str]
) -> None:
    question = " ".join(query)
    vector = EMBEDDER.embed([question])[0]
    with TemporaryDirectory() as folder:
        libraries = (FileLibrary(Path(folder)), MemoryLibrary(Path(folder)))
        seen = []
        for library in libraries:
            fill(library, first)
            fill(library, second)
            with library.writing() as writer:
                writer.remove(sorted(gone))
            with library.reading() as store:
                halves = [
                    store.lexical_search(question, 200),
                    store.lexical_search(question, 2, "c/*"),
                    store.vector_search(vector, 200),
                    store.vector_search(vector, 2, "*a"),
                ]
                names = [hit.passage_id for half in halves for hit in half]
                statistics = store.term_statistics(terms(question))
                seen.append((halves, store.passages(names), statistics, store.documents()))
    (halves, *rest), (expected, *expected_rest) = seen
    assert rest == expected_rest
    for half, other in zip(halves, expected, strict=True):
        # Scores may differ in the last bit: compare them, and the order where it is decided.
        by_id = {hit.passage_id: hit.score for hit in other}
        assert [hit.score for hit in half] == pytest.approx([hit.score for hit in other], abs=1e-5)
        for hit in half:
            assert hit.score == pytest.approx(by_id.get(hit.passage_id, hit.score), abs=1e-5)


# ---- rankings and pages


@settings(max_examples=25, deadline=None)
@given(documents=corpora, size=st.integers(1, 7), query=texts)
def test_result_pages_are_disjoint_slices_that_together_are_the_ranking(
    documents: dict[str, list[str]], size: int, query: list[str]
) -> None:
    library = MemoryLibrary(Path())
    fill(library, documents)
    with library.reading() as store:
        ranking = search(store, EMBEDDER, query[0])
        first = result_page(store, ranking, 0, size)
        pages = [result_page(store, ranking, at, size) for at in range(first.page_count)]
        hits = [hit for page in pages for hit in page.hits]
        assert ids([hit.passage for hit in hits]) == ids(ranking.ordered)
        assert [hit.rank for hit in hits] == list(range(first.total))
        with pytest.raises(UserError, match=f"The last page is {first.page_count - 1}"):
            result_page(store, ranking, first.page_count, size)
        by_tokens = page_slices([hit.passage.tokens for hit in hits], 9)
        assert [hit for part in by_tokens for hit in hits[part]] == hits


# ---- writing


def test_passages_and_pages_come_back_as_they_went_in(library: Library) -> None:
    pages = (
        PageText(1, "Über\n所有", "iii", "pdfium", ("garbled", "repaired")),
        PageText(2, "", None, "pypdf"),
        PageText(3, "end \x00 'quoted'", "1", "text", (), "Head", 7),
    )
    text = "\n".join(page.text for page in pages)
    chunk = Chunk(text, 0, len(text), 1, 3, "Title > Part", 4, 9)
    with library.writing() as writer:
        writer.put_vectors([chunk.text_hash], EMBEDDER.embed([chunk.indexed_text]))
        parsed = ParsedDocument(pages, paged=False, title="Title")
        stored = writer.store(row("c/ü.pdf", text, mtime_ns=5), parsed, [chunk])
    assert (stored.pages, stored.passages, stored.title, stored.paged) == (3, 1, "Title", False)
    with library.reading() as store:
        assert store.documents() == (stored,)
        assert tuple(store.page("c/ü.pdf", at) for at in (1, 2, 3)) == pages
        (passage,) = store.passages(["P1"])
        assert store.page_passages("c/ü.pdf", 2) == (passage,)
        assert (passage.text, passage.heading, passage.line) == (text, "Title > Part", 4)
        assert (passage.start, passage.end, passage.tokens) == (0, len(text), 9)
        assert (passage.first_page, passage.last_page, passage.paged) == (1, 3, False)


def test_the_heading_is_searched_and_is_not_part_of_the_text(library: Library) -> None:
    with library.writing() as writer:
        put(writer, "c/a.md", ["net sales fell"], "Annual report > Liquidity")
    with library.reading() as store:
        (hit,) = store.lexical_search("liquidity", 5)
        assert store.passages([hit.passage_id])[0].text == "net sales fell"


def test_passages_come_in_the_order_asked_without_those_that_do_not_exist(
    library: Library,
) -> None:
    fill(library, {"c/gauss.pdf": GAUSS, "c/euler.pdf": EULER})
    with library.reading() as store:
        asked = ["P3", "P99", "N1", "P1", "P0", "P01", "nonsense", "P3", "P99999999999999"]
        assert ids(store.passages(asked)) == ["P3", "P1", "P3"]


def test_token_counts_come_in_the_order_asked_and_are_zero_for_what_is_not_there(
    library: Library,
) -> None:
    fill(library, {"c/a.pdf": ["word " * 8, "word " * 16]})
    with library.reading() as store:
        wanted = ["P2", "P9", "N1", "P0", "P1", "P2"]
        assert store.passage_tokens(wanted) == (20, 0, 0, 0, 10, 20)
        assert store.passage_tokens([]) == ()


def test_numbers_are_never_used_again(library: Library) -> None:
    fill(library, {"c/a": GAUSS, "c/b": EULER})
    with library.writing() as writer:
        assert writer.remove(["c/b", "unknown"]) == 2
        put(writer, "c/a", EULER)
    with library.reading() as store:
        assert ids(store.page_passages("c/a", 1) + store.page_passages("c/a", 2)) == ["P5", "P6"]
        assert store.passages(["P1", "P2", "P3", "P4"]) == ()
        assert store.passage_count == 2


def test_every_change_makes_the_generation_grow(library: Library) -> None:
    seen = []
    steps: list[Callable[[ArchiveWriter], object]] = [
        lambda writer: put(writer, "c/a", GAUSS),
        lambda writer: put(writer, "c/a", EULER),
        lambda writer: writer.record(row("c/bad", state="failed", reason="damaged", message="x")),
        lambda writer: writer.rename("c/a", row("c/z")),
        lambda writer: writer.remove(["c/z"]),
    ]
    for step in steps:
        with library.writing() as writer:
            step(writer)
        with library.reading() as store:
            seen.append(store.generation)
    assert seen == sorted(set(seen))


def test_statistics_are_exact_after_updates_and_removals(library: Library) -> None:
    fill(library, {"c/a": ["blue fish", "blue sky"], "c/b": ["blue"], "c/c": ["red"]})
    fill(library, {"c/a": ["green fish"]})
    with library.writing() as writer:
        writer.remove(["c/b"])
    with library.reading() as store:
        statistics = store.term_statistics(["blue", "fish", "green", "red"])
        assert statistics.passage_frequency == {"fish": 1, "green": 1, "red": 1}
        assert (statistics.passages, statistics.average_length) == (2, 1.5)
        assert store.lexical_search("blue", 10) == ()


def test_a_failed_update_takes_the_old_text_away(library: Library) -> None:
    fill(library, {"c/a": GAUSS})
    with library.writing() as writer:
        writer.record(row("c/a", state="failed", reason="damaged", message="cut off"))
    with library.reading() as store:
        assert store.passage_count == 0
        with pytest.raises(UserError, match="cut off"):
            store.document("c/a")
        assert store.documents()[0].reason == "damaged"


def test_a_new_mtime_keeps_the_text(library: Library) -> None:
    fill(library, {"c/a": GAUSS})
    with library.writing() as writer:
        writer.record(row("c/a", mtime_ns=77))
        with pytest.raises(ArchiveError, match="no stored document"):
            writer.record(row("c/never"))
    with library.reading() as store:
        assert store.document("c/a").mtime_ns == 77
        assert (store.document("c/a").pages, store.passage_count) == (2, 2)


def test_a_renamed_document_keeps_its_passages(library: Library) -> None:
    fill(library, {"c/a": GAUSS, "c/old": EULER})
    with library.writing() as writer:
        writer.record(row("c/copy", state="duplicate", duplicate_of="c/a"))
        writer.rename("c/a", row("c/old", root="/other"))
        with pytest.raises(ArchiveError, match="no stored document"):
            writer.rename("c/nowhere", row("c/z"))
    with library.reading() as store:
        assert [passage.document for passage in store.passages(["P1", "P2"])] == ["c/old"] * 2
        assert store.passage_count == 2
        assert store.document("c/copy").name == "c/old"
        assert store.document("c/old").root == "/other"


def test_a_document_read_anew_keeps_its_duplicates(library: Library) -> None:
    fill(library, {"c/a": GAUSS})
    with library.writing() as writer:
        parsed, chunks = cut(CHINESE)
        writer.put_vectors([chunk.text_hash for chunk in chunks], EMBEDDER.embed(CHINESE))
        writer.record(row("c/copy", state="duplicate", duplicate_of="c/a"))
        same = row("c/a", "\n".join(GAUSS))
        writer.store(same, parsed, chunks)
        writer.record(replace(same, reader="reader 2"))
        writer.record(same)
    with library.reading() as store:
        assert [(d.name, d.state, d.duplicate_of) for d in store.documents()] == [
            ("c/a", "ready", None),
            ("c/copy", "duplicate", "c/a"),
        ]
        assert store.passage_count == len(CHINESE)
        assert store.document("c/a").reader == "reader 2"


def test_a_duplicate_takes_over_the_text_of_what_is_removed(library: Library) -> None:
    fill(library, {"c/a": GAUSS})
    with library.writing() as writer:
        for name in ("c/copy", "c/more"):
            writer.record(row(name, state="duplicate", duplicate_of="c/a"))
        assert writer.remove(["c/a"]) == 0
    with library.reading() as store:
        assert [(d.name, d.state) for d in store.documents()] == [
            ("c/copy", "ready"),
            ("c/more", "duplicate"),
        ]
        assert store.passages(["P1"])[0].document == "c/copy"
        assert store.document("more").passages == 2
    with library.writing() as writer:
        assert writer.remove(["c/copy", "c/more"]) == 2
    with library.reading() as store:
        assert store.documents() == ()


@pytest.mark.parametrize("named", [["c/a.eml"], ["c/a.eml", "c/a.eml/x", "c/a.eml/x/y"]])
def test_a_duplicate_takes_over_what_is_attached_to_what_is_removed(
    library: Library, named: list[str]
) -> None:
    fill(library, {"c/a.eml": GAUSS, "c/a.eml/x": EULER, "c/a.eml/x/y": ["deep"], "c/a.em": ["b"]})
    failed = row("c/a.eml/bad", state="failed", reason="empty", message="Nothing in it.")
    copies = [
        row(name, state="duplicate", duplicate_of="c/a.eml", root="/new", mtime_ns=7)
        for name in ("d/copy.eml", "d/more.eml")
    ]
    with library.writing() as writer:
        for one in (failed, *copies):
            writer.record(one)
        assert writer.remove(named) == 0
    with library.reading() as store:
        assert [(one.name, one.state) for one in store.documents()] == [
            ("c/a.em", "ready"),
            ("d/copy.eml", "ready"),
            ("d/copy.eml/bad", "failed"),
            ("d/copy.eml/x", "ready"),
            ("d/copy.eml/x/y", "ready"),
            ("d/more.eml", "duplicate"),
        ]
        found = store.document("d/copy.eml/x")
        assert (found.passages, found.root, found.mtime_ns) == (len(EULER), "/new", 7)
        assert store.page("d/copy.eml/x/y", 1).text == "deep"
        everything = [one.name for one in store.documents()]
    with library.writing() as writer:
        assert writer.remove(everything) == len(GAUSS) + len(EULER) + 2


# ---- several changes in one transaction


def test_what_is_changed_together_is_one_change(library: Library) -> None:
    fill(library, {"c/a": GAUSS, "c/old": EULER})
    with library.reading() as store:
        before = store.generation
    with library.writing() as writer:
        parsed, chunks = cut(CHINESE)
        hashes = [chunk.text_hash for chunk in chunks]
        writer.put_vectors(hashes, EMBEDDER.embed(CHINESE))
        with writer.together():
            writer.record(row("c/p", state="pending"))
            writer.record(row("c/p", state="failed", reason="empty"))
            writer.store(row("c/b"), parsed, chunks)
            writer.record(row("c/b", state="failed", reason="damaged"))
            writer.store(row("c/b"), parsed, chunks)
            writer.record(row("c/copy", state="duplicate", duplicate_of="c/b"))
            writer.rename("c/old", row("c/p"))
            assert writer.remove(["c/a"]) == len(GAUSS)
            writer.rename("c/b", row("c/moved"))
    with library.reading() as store:
        assert store.generation == before + 1
        assert [(d.name, d.state, d.passages) for d in store.documents()] == [
            ("c/copy", "duplicate", 0),
            ("c/moved", "ready", len(CHINESE)),
            ("c/p", "ready", len(EULER)),
        ]
        assert store.documents()[0].duplicate_of == "c/moved"
        assert store.page("c/moved", 1).text == CHINESE[0]
        assert store.page("c/p", 1).text == EULER[0]
        assert store.passage_count == len(CHINESE) + len(EULER)
        assert len(store.vector_search(EMBEDDER.embed(["x"])[0], 99)) == store.passage_count


NAMES = st.sampled_from(["c/a", "c/b", "c/d", "c/e"])
CHANGES = st.lists(
    st.tuples(st.sampled_from(["move", "touch", "copy", "fail", "store", "forget"]), NAMES, NAMES),
    max_size=8,
)


def change(writer: ArchiveWriter, kind: str, name: str, other: str, at: int) -> None:
    """One change; what cannot be done is left."""
    states = {document.name: document.state for document in writer.documents()}
    if kind in {"move", "touch"} and states.get(name) != "ready":
        return
    if kind == "copy" and (name == other or states.get(other) != "ready"):
        return  # a plan makes copies of stored documents alone
    match kind:
        case "move":
            writer.rename(name, row(other, f"moved {at}", mtime_ns=at, reader="r"))
        case "touch":
            writer.record(row(name, f"touched {at}", mtime_ns=at))
        case "copy":
            writer.record(row(name, state="duplicate", duplicate_of=other))
        case "fail":
            writer.record(row(name, state="failed", reason="empty", message=f"{at}"))
        case "store":
            put(writer, name, GAUSS)
        case _:
            writer.remove([name])


@settings(max_examples=20, deadline=None)
@given(CHANGES)
def test_changes_of_a_file_come_to_what_they_do_in_memory(
    changes: list[tuple[str, str, str]],
) -> None:
    with TemporaryDirectory() as folder:
        ends = []
        for made in (FileLibrary, MemoryLibrary):
            library: Library = made(Path(folder))
            fill(library, {"c/a": EULER, "c/b": CHINESE})
            with library.writing() as writer:
                for at, (kind, name, other) in enumerate(changes):
                    change(writer, kind, name, other, at)
            with library.reading() as store:
                ends.append(store.documents())
        assert ends[0] == ends[1]


@settings(max_examples=20, deadline=None)
@given(st.permutations(["c/a", "c/b", "c/d"]), st.permutations(["c/a", "c/b", "c/d"]))
def test_moves_together_come_to_what_they_do_one_by_one(first: list[str], then: list[str]) -> None:
    with TemporaryDirectory() as folder:
        ends = []
        for together in (False, True):
            place = Path(folder) / str(together)
            place.mkdir()
            library = FileLibrary(place)
            fill(library, {"c/a": EULER, "c/b": CHINESE})
            moves = list(zip([*first, *then], [*then, *first], strict=True))
            with library.writing() as writer, writer.together() if together else nullcontext():
                held = {"c/a", "c/b"}
                for at, (old, new) in enumerate(moves):
                    if old in held:
                        writer.rename(old, row(new, f"moved {at}", mtime_ns=at))
                        held = (held - {old}) | {new}
            with library.reading() as store:
                ends.append(store.documents())
        assert ends[0] == ends[1]


def test_of_changes_together_none_is_kept_where_one_fails(library: Library) -> None:
    fill(library, {"c/a": GAUSS})
    with library.reading() as store:
        before = (store.generation, store.documents(), store.passages(["P1", "P2"]))
    with library.writing() as writer:
        with pytest.raises(ArchiveError, match="no stored document"), writer.together():
            put(writer, "c/b", GAUSS)
            writer.remove(["c/a"])
            writer.rename("c/nothing", row("c/c"))
        assert writer.documents() == before[1]
        put(writer, "c/b", GAUSS)
    with library.reading() as store:
        assert store.generation == before[0] + 1
        assert store.passages(["P1", "P2"]) == before[2]
        assert [p.passage_id for p in store.page_passages("c/b", 1)] == ["P3"]


def test_a_vector_outlives_its_passage_where_another_comes_in_the_same_change(
    library: Library,
) -> None:
    fill(library, {"c/a": GAUSS})
    parsed, chunks = cut(GAUSS)
    with library.writing() as writer:
        with writer.together():
            writer.remove(["c/a"])
            writer.store(row("c/b"), parsed, chunks)
        assert not writer.missing_vectors([chunk.text_hash for chunk in chunks])
        with writer.together():
            writer.remove(["c/b"])
        assert len(writer.missing_vectors([chunk.text_hash for chunk in chunks])) == len(chunks)


def test_attempts_reader_and_state_are_kept(library: Library) -> None:
    rows = (
        row("c/a", state="failed", reason="damaged", attempts=3, reader="pdfium 1; 300 s"),
        row("c/b", state="pending"),
    )
    with library.writing() as writer, writer.together():
        for each in rows:
            writer.record(each)
    with library.reading() as store:
        assert store.documents() == rows
        with pytest.raises(UserError, match="not read yet"):
            store.document("c/b")


# ---- what is refused


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_vectors_that_are_zero_or_not_finite_are_refused(library: Library, bad: float) -> None:
    vectors = EMBEDDER.embed(["a", "b"]).copy()
    vectors[1] = bad
    with library.writing() as writer:
        with pytest.raises(ArchiveError, match="embedder"):
            writer.put_vectors(["h1", "h2"], vectors)
        assert writer.missing_vectors(["h1", "h2"]) == {"h1", "h2"}


def test_vectors_of_another_dimension_or_number_are_refused(library: Library) -> None:
    with library.writing() as writer:
        with pytest.raises(ArchiveError, match="dimension"):
            writer.put_vectors(["h1"], np.ones((1, 3), np.float32))
        with pytest.raises(ArchiveError, match="1 vectors came for 2"):
            writer.put_vectors(["h1", "h2"], EMBEDDER.embed(["a"]))


def test_vectors_are_kept_before_their_document_and_put_twice_without_harm(
    library: Library,
) -> None:
    _, chunks = cut(GAUSS)
    hashes = [chunk.text_hash for chunk in chunks]
    vectors = EMBEDDER.embed(GAUSS)
    with library.writing() as writer:
        writer.put_vectors([*hashes, hashes[0]], np.vstack([vectors, vectors[:1]]))
        writer.put_vectors(hashes[:1], vectors[:1])
    with library.writing() as writer:
        assert writer.missing_vectors([*hashes, "other"]) == {"other"}
    with library.reading() as store:
        assert store.vector_search(vectors[0], 10) == ()


def test_a_document_without_all_its_vectors_is_not_stored_at_all(library: Library) -> None:
    fill(library, {"c/a": EULER})
    parsed, chunks = cut(GAUSS)
    with library.writing() as writer:
        writer.put_vectors([chunks[0].text_hash], EMBEDDER.embed(GAUSS[:1]))
        with pytest.raises(ArchiveError, match="1 passages of c/a have no vector"):
            writer.store(row("c/a"), parsed, chunks)
    with library.reading() as store:
        assert store.page("c/a", 1).text == EULER[0]


@pytest.mark.parametrize(
    "chunk",
    [
        Chunk("Gauss", 1, 6, 1, 1),
        Chunk("Gauss", 0, 5, 1, 3),
        Chunk("Gauss", 0, 5, 0, 1),
        Chunk("Gauss", 0, 5, 2, 1),
        Chunk("", 4, 4, 1, 1),
    ],
)
def test_a_chunk_that_does_not_stand_in_the_document_is_refused(
    library: Library, chunk: Chunk
) -> None:
    parsed, _ = cut(GAUSS)
    with library.writing() as writer:
        with pytest.raises(ArchiveError, match="Cut the document again"):
            writer.store(row("c/a"), parsed, [chunk])
        assert writer.documents() == ()


def test_lone_surrogates_are_mended_in_names_and_refused_in_text(library: Library) -> None:
    parsed, chunks = cut(["fine"])
    bad = ParsedDocument((PageText(1, "not \ud800 fine"),), True)
    with library.writing() as writer:
        with pytest.raises(ArchiveError, match="surrogates"):
            writer.store(row("c/a"), bad, [])
        writer.put_vectors([chunks[0].text_hash], EMBEDDER.embed(["fine"]))
        writer.store(row("c/\udce9.txt", title="\udc80"), parsed, chunks)
        writer.record(row("c/x", state="failed", reason="unreadable", message="bad \udc81"))
        writer.rename("c/\udce9.txt", row("c/\udcea.txt"))
    with library.reading() as store:
        assert [document.name for document in store.documents()] == ["c/x", "c/\ufffd.txt"]
        assert store.documents()[0].message == "bad \ufffd"


# ---- documents by name


def test_a_document_is_found_by_its_name_or_a_unique_end(library: Library) -> None:
    fill(library, {"c/a/q3.pdf": GAUSS, "c/b/q3.pdf": EULER, "c/a/Notes.md": ["x"]})
    with library.reading() as store:
        assert store.document("c/a/q3.pdf").name == "c/a/q3.pdf"
        assert store.document("b/q3.pdf").name == "c/b/q3.pdf"
        assert store.document("./notes.md").name == "c/a/Notes.md"
        with pytest.raises(UserError, match=r"several documents: c/a/q3.pdf, c/b/q3.pdf"):
            store.document("q3.pdf")
        with pytest.raises(UserError, match=r"nearest names are: c/a/Notes.md"):
            store.document("note.md")
        for name in ("3.pdf", "", "/", "zzzzzz"):
            with pytest.raises(UserError, match="no document"):
                store.document(name)


def test_a_page_past_the_end_is_an_error_that_names_the_last(library: Library) -> None:
    fill(library, {"c/gauss.pdf": GAUSS})
    with library.reading() as store:
        for number in (0, 3, -1):
            with pytest.raises(UserError, match="Its last page is 2"):
                store.page("c/gauss.pdf", number)
        with pytest.raises(DocpagerError, match="no document"):
            store.page("c/unknown", 1)
        assert store.page_passages("c/unknown", 1) == ()
