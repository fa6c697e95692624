"""Postings in DuckDB: the laws of packing."""

from __future__ import annotations

import math
from collections import Counter

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.stores.duckdb import postings
from docpager.stores.duckdb.postings import insert_segment, pack, read_postings

Passages = dict[int, Counter[str]]


def store(passages: Passages, segments: list[list[int]]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE passage (number INTEGER)")
    for statement in (*postings.SCHEMA, *postings.SIZES):
        connection.execute(statement)
    for segment, numbers in enumerate(segments, 1):
        connection.executemany("INSERT INTO passage VALUES (?)", [[n] for n in numbers])
        counted = [passages[number] for number in numbers]
        insert_segment(connection, segment, np.array(numbers, np.int32), counted)
    return connection


def kept(connection: duckdb.DuckDBPyConnection, wanted: list[str]) -> dict[str, dict[int, int]]:
    found = read_postings(connection, wanted)
    return {
        term: dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        for term, (numbers, counts) in found.items()
    }


@settings(max_examples=20, deadline=None)
@given(
    documents=st.lists(
        st.lists(st.lists(st.sampled_from("abcdé")), min_size=1, max_size=3), min_size=1, max_size=8
    ),
    data=st.data(),
)
def test_packing_changes_no_posting_and_drops_those_of_removed_passages(
    documents: list[list[list[str]]], data: st.DataObject
) -> None:
    passages: Passages = {}
    segments = []
    for texts in documents:
        numbers = range(len(passages) + 1, len(passages) + 1 + len(texts))
        passages |= {number: Counter(text) for number, text in zip(numbers, texts, strict=True)}
        segments.append(list(numbers))
    connection = store(passages, segments)
    alive = passages
    for _ in range(2):
        gone = data.draw(st.sets(st.sampled_from(sorted(passages))))
        alive = {number: counts for number, counts in alive.items() if number not in gone}
        connection.execute("DELETE FROM passage WHERE list_contains(?, number)", [sorted(gone)])
        live = sum(len(counts) for counts in alive.values())
        pack(connection, live, at_rest=data.draw(st.booleans()))
        expected = {
            term: {number: counts[term] for number, counts in alive.items() if term in counts}
            for term in "abcdé"
        }
        found = kept(connection, list("abcdé"))
        for term in "abcdé":
            # What is removed may stay a while, what is not must be there.
            assert {n: c for n, c in found.get(term, {}).items() if n in alive} == expected[term]
    connection.execute("DELETE FROM passage")
    pack(connection, 0, at_rest=False)
    assert kept(connection, list("abcdé")) == {}


def sizes(connection: duckdb.DuckDBPyConnection) -> tuple[int, int, int]:
    """Rows of packed postings, segments of fresh ones, and their rows."""
    (packed,) = connection.execute("SELECT count(*) FROM posting").fetchall()
    (fresh,) = connection.execute(
        "SELECT count(DISTINCT segment), count(*) FROM fresh_posting"
    ).fetchall()
    return (*packed, *fresh)


def add(connection: duckdb.DuckDBPyConnection, number: int, words: list[str]) -> None:
    """A passage of those words, in a segment of its own."""
    connection.execute("INSERT INTO passage VALUES (?)", [number])
    insert_segment(connection, number, np.array([number], np.int32), [Counter(words)])


def test_at_rest_fresh_postings_are_folded_when_they_are_a_tenth_and_merged_before() -> None:
    connection = store({1: Counter(f"w{at}" for at in range(200))}, [[1]])
    live = 200
    pack(connection, live, at_rest=True)
    assert sizes(connection) == (200, 0, 0)
    for number in range(2, 12):
        add(connection, number, ["w1", "x"])
        live += 2
        pack(connection, live, at_rest=True)
        packed, segments, _ = sizes(connection)
        assert packed == 200
        assert segments <= 1 + math.log2(live)
    assert kept(connection, ["w1"]) == {"w1": dict.fromkeys(range(1, 12), 1)}
    add(connection, 99, ["y"])
    pack(connection, live + 1, at_rest=True)
    assert sizes(connection) == (202, 0, 0)


def test_between_bursts_nothing_is_folded_that_would_be_folded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postings, "FRESH_BETWEEN", 5)
    connection = store({}, [])
    folded = []
    for number in range(1, 20):
        add(connection, number, ["a", f"w{number}"])
        pack(connection, 2 * number, at_rest=False)
        if sizes(connection)[1] == 0:
            folded.append(2 * number)
    # At first as soon as it is more than is allowed to be fresh, then whenever it has doubled.
    assert folded == [6, 14, 30]
    assert kept(connection, ["a"]) == {"a": dict.fromkeys(range(1, 20), 1)}


def test_rows_know_how_long_their_lists_are_those_of_an_older_archive_too() -> None:
    connection = duckdb.connect()
    for statement in postings.SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO posting VALUES ('a', [1, 2, 3], [1, 1, 9]), ('b', [2], [1])")
    connection.execute("INSERT INTO fresh_posting VALUES (4, 'a', [4, 5], [2, 2])")
    for statement in postings.SIZES:
        connection.execute(statement)
    connection.execute("CREATE TABLE passage AS SELECT i AS number FROM range(1, 6) r(i)")
    unequal = " UNION ALL ".join(
        f"SELECT term FROM {table} WHERE size IS DISTINCT FROM len(numbers)"
        for table in ("posting", "fresh_posting")
    )
    for number in range(6, 40):
        assert connection.execute(unequal).fetchall() == []
        add(connection, number, ["a", f"w{number}"])
        pack(connection, 6 + 2 * (number - 5), at_rest=True)
    assert kept(connection, ["a"])["a"] == {1: 1, 2: 1, 3: 9, 4: 2, 5: 2} | dict.fromkeys(
        range(6, 40), 1
    )


def test_a_query_of_a_thousand_terms_is_read() -> None:
    passages: Passages = {1: Counter(["w7"])}
    connection = store(passages, [[1]])
    assert kept(connection, [f"w{at}" for at in range(1_000)]) == {"w7": {1: 1}}
    assert kept(connection, []) == {}
