"""Where the postings of BM25 are kept: tables, segments, and how they are merged.

Postings are packed: one row of table `posting` has a term and all its passages, and is found by
an index. As rows cannot be taken out of such an index cheaply, a stored document's postings go to
`fresh_posting` first, a *segment* of their own, which is scanned. Segments are merged so that each
is larger than twice all the smaller ones, hence few; when they are together a tenth of `posting`,
all is folded into a new `posting`. Both wait for the end of an ingest, unless that is a long one.
What is removed stays where it is, is passed over by every reader, and goes at a later merge or
fold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from docpager.stores.duckdb.connection import new_rows, transaction

if TYPE_CHECKING:
    import duckdb


Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Postings: TypeAlias = dict[str, tuple[Integers, Integers]]
"""For a term: the numbers of the passages that hold it, and how often each does."""


# ---- kept in DuckDB --------------------------------------------------------------------------

SCHEMA = (
    "CREATE TABLE posting (term VARCHAR NOT NULL, numbers INTEGER[] NOT NULL,"
    " counts INTEGER[] NOT NULL)",
    "CREATE INDEX posting_term ON posting (term)",
    "CREATE TABLE fresh_posting (segment INTEGER NOT NULL, term VARCHAR NOT NULL,"
    " numbers INTEGER[] NOT NULL, counts INTEGER[] NOT NULL)",
)
SIZES = (
    "CREATE TABLE sized_posting AS SELECT *, len(numbers)::INTEGER AS size FROM posting",
    "DROP TABLE posting",
    "ALTER TABLE sized_posting RENAME TO posting",
    "CREATE INDEX posting_term ON posting (term)",
    "CREATE TABLE sized_fresh_posting AS SELECT *, len(numbers)::INTEGER AS size"
    " FROM fresh_posting",
    "DROP TABLE fresh_posting",
    "ALTER TABLE sized_fresh_posting RENAME TO fresh_posting",
)
"""A migration: each row has the length of its lists, which would have to be read to be told."""
FRESH_SHARE = 10
"""At rest, fresh postings are folded when they are more than 1 / FRESH_SHARE of the packed ones."""
FRESH_BETWEEN = 2_000_000
"""Between bursts they are folded when they are more than this, and more than the packed ones."""
DEAD_SHARE = 4
"""All is folded when more than 1 / DEAD_SHARE of all postings are of removed passages."""
FOLDED_AT_ONCE = 500_000
"""Postings that are folded in one step, which takes some 30 MB of memory."""


def insert_segment(
    connection: duckdb.DuckDBPyConnection,
    segment: int,
    numbers: npt.NDArray[np.int32],
    counted: Sequence[Counter[str]],
) -> None:
    """Keep the postings of new passages, whose terms are counted in `counted`, as a segment.

    Args:
        connection: Within a transaction.
        segment: The document's number, which no other segment has.
        numbers: The passages' numbers.
        counted: For each passage how often it holds each of its terms.
    """
    rows = {
        "term": np.array([term for counts in counted for term in counts], dtype=object),
        "number": np.repeat(numbers, [len(counts) for counts in counted]),
        "n": np.array([n for counts in counted for n in counts.values()], dtype=np.int32),
    }
    if not len(rows["term"]):
        return
    with new_rows(connection, rows):
        connection.execute(
            "INSERT INTO fresh_posting SELECT ?, term, list(number ORDER BY number),"
            " list(n ORDER BY number), count(*) FROM new_rows GROUP BY term ORDER BY term",
            [segment],
        )


def has_fresh(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether there are fresh postings, which every reading scans."""
    return bool(connection.execute("SELECT 1 FROM fresh_posting LIMIT 1").fetchall())


def read_postings(
    connection: duckdb.DuckDBPyConnection, wanted: Sequence[str], *, fresh: bool = True
) -> Postings:
    """The postings of `wanted`; those of removed passages are among them.

    Args:
        fresh: Whether to look at fresh ones too; for a reader that knows that there are none.
    """
    if not wanted:
        return {}
    marks = ", ".join("?" * len(wanted))
    tables = ("posting", "fresh_posting") if fresh else ("posting",)
    rows = connection.execute(
        " UNION ALL ".join(
            f"SELECT term, numbers, counts FROM {table} WHERE term IN ({marks})" for table in tables
        ),
        [*wanted] * len(tables),
    ).fetchnumpy()
    pieces: dict[str, list[tuple[Integers, Integers]]] = {}
    for term, numbers, counts in zip(rows["term"], rows["numbers"], rows["counts"], strict=True):
        pieces.setdefault(term, []).append((np.asarray(numbers), np.asarray(counts)))
    return {
        term: (np.concatenate([n for n, _ in found]), np.concatenate([c for _, c in found]))
        for term, found in pieces.items()
    }


def pack(connection: duckdb.DuckDBPyConnection, live_postings: int, *, at_rest: bool) -> None:
    """Fold fresh postings into the packed ones when it is time, else merge small segments.

    Args:
        connection: Outside of a transaction.
        live_postings: How many postings there would be without those of removed passages.
        at_rest: Whether no more are about to come. Else little is done: it would be done again.
    """
    (packed,) = _row(connection, "SELECT coalesce(sum(size), 0) FROM posting")
    sizes = connection.execute(
        "SELECT segment, sum(size) AS total FROM fresh_posting"
        " GROUP BY segment ORDER BY total, segment"
    ).fetchall()
    fresh = sum(size for _, size in sizes)
    dead = packed + fresh - live_postings
    most = packed / FRESH_SHARE if at_rest else max(packed, FRESH_BETWEEN)
    with transaction(connection):
        if fresh > most or DEAD_SHARE * dead > packed + fresh:
            _fold(connection, sift=dead > 0)
        elif at_rest and (chosen := smallest_run(sizes)):
            _merge(connection, chosen, sift=dead > 0)


def _fold(connection: duckdb.DuckDBPyConnection, *, sift: bool) -> None:
    connection.execute("CREATE TABLE folded_posting AS FROM posting LIMIT 0")
    for first, end in _term_ranges(connection):
        # A share of the terms at a time, so that memory does not grow with the archive.
        share = "WHERE term >= ?" if end is None else "WHERE term >= ? AND term < ?"
        both = (
            f"SELECT term, numbers, counts FROM posting {share} UNION ALL"
            f" SELECT term, numbers, counts FROM fresh_posting {share}"
        )
        bounds = [first] if end is None else [first, end]
        connection.execute(
            f"INSERT INTO folded_posting SELECT *, len(numbers) FROM ({_grouped(both, sift=sift)})"
            " ORDER BY term",
            bounds * 2,
        )
    connection.execute("DROP TABLE posting")
    connection.execute("ALTER TABLE folded_posting RENAME TO posting")
    connection.execute("CREATE INDEX posting_term ON posting (term)")
    connection.execute("DELETE FROM fresh_posting")


def _term_ranges(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str | None]]:
    """Ranges `first <= term < end` of about as many postings each; None is no end."""
    rows = connection.execute(
        "SELECT min(term) FROM ("
        f" SELECT term, (sum(size) OVER (ORDER BY term) - size) // {FOLDED_AT_ONCE} AS part FROM ("
        "  SELECT term, sum(size) AS size FROM ("
        "   SELECT term, size FROM posting UNION ALL SELECT term, size FROM fresh_posting"
        "  ) GROUP BY term)) GROUP BY part ORDER BY part"
    ).fetchall()
    starts = [term for (term,) in rows]
    return zip(starts, [*starts[1:], None], strict=True)


def _merge(connection: duckdb.DuckDBPyConnection, segments: Sequence[int], *, sift: bool) -> None:
    marks = ", ".join(str(segment) for segment in segments)
    chosen = f"SELECT term, numbers, counts FROM fresh_posting WHERE segment IN ({marks})"
    connection.execute(f"CREATE TEMP TABLE merged_posting AS {_grouped(chosen, sift=sift)}")
    connection.execute(f"DELETE FROM fresh_posting WHERE segment IN ({marks})")
    connection.execute(
        f"INSERT INTO fresh_posting SELECT {max(segments)}, term, numbers, counts, len(numbers)"
        " FROM merged_posting"
    )
    connection.execute("DROP TABLE merged_posting")


def _grouped(rows: str, *, sift: bool) -> str:
    """A query for one row a term out of `rows`; sifted, without what is of removed passages.

    To sift looks at each posting, which takes five times as long as to join lists.
    """
    if not sift:
        return (
            "SELECT term, flatten(list_transform(lists, lambda x: x.n)) AS numbers,"
            " flatten(list_transform(lists, lambda x: x.c)) AS counts FROM ("
            f"SELECT term, list({{n: numbers, c: counts}}) AS lists FROM ({rows}) GROUP BY term)"
        )
    return (
        "SELECT term, list(number ORDER BY number) AS numbers, list(n ORDER BY number) AS counts"
        f" FROM (SELECT term, unnest(numbers) AS number, unnest(counts) AS n FROM ({rows}))"
        " WHERE number IN (SELECT number FROM passage) GROUP BY term"
    )


def smallest_run(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """Which segments to merge, of (segment, size) from the smallest up; none, or at least two.

    >>> smallest_run([(3, 10), (2, 15), (1, 1000)])
    [3, 2]
    >>> smallest_run([(2, 10), (1, 1000)])
    []
    """
    chosen: list[int] = []
    total = 0
    for segment, size in sizes:
        if chosen and size > 2 * total:
            break
        chosen.append(segment)
        total += size
    return chosen if len(chosen) > 1 else []


def _row(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[int, ...]:
    (row,) = connection.execute(query).fetchall()
    return tuple(int(value) for value in row)
