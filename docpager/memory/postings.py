"""BM25: how text becomes terms, how terms become a score, and where postings are kept.

The score of a passage for a query is the sum over the query's distinct terms of

    idf * n * (K1 + 1) / (n + K1 * (1 - B + B * length / average_length))
    idf = ln(1 + (N - df + 0.5) / (df + 0.5))

where n is how often the term stands in the passage, length the passage's number of terms, N the
number of passages, and df how many of them hold the term.

Postings are packed: one row of table `posting` has a term and all its passages, and is found by
an index. As rows cannot be taken out of such an index cheaply, a stored document's postings go to
`fresh_posting` first, a *segment* of their own, which is scanned. Segments are merged so that each
is larger than twice all the smaller ones, hence few; when they are together a tenth of `posting`,
all is folded into a new `posting`. Both wait for the end of an ingest, unless that is a long one.
What is removed stays where it is, is passed over by every reader, and goes at a later merge or
fold.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from docpager.memory.db import new_rows, transaction
from docpager.types import TermStatistics

if TYPE_CHECKING:
    import duckdb

K1 = 1.2
B = 0.75
LONGEST_TERM = 256
"""Characters of a term that count; the rest is ignored."""

Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Postings: TypeAlias = dict[str, tuple[Integers, Integers]]
"""For a term: the numbers of the passages that hold it, and how often each does."""

# Scripts that are cut into pairs of characters, as their words are not told apart by spaces: Thai
# and Lao, Burmese, Khmer, kana, Han with its extensions; and Hangul, where words have endings.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Vowel signs and accents that stand apart from their letter, which `\w` leaves out.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0903"
    "\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7\u0a01-\u0a51\u0a81-\u0acd"
    "\u0b01-\u0b57\u0b82-\u0bcd\u0c00-\u0c56\u0c81-\u0cd6\u0d00-\u0d57\u0d81-\u0ddf"
)
_WORD = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])+"
_JOINED = re.compile(rf"{_WORD}(?:[-_.,:/@'&]{_WORD})*|[{_UNSPACED}]+")
_JOINED_ASCII = re.compile(r"[^\W_]+(?:[-_.,:/@'&][^\W_]+)*", re.ASCII)
"""What `_JOINED` is for ASCII text, three times as fast."""
_PART = re.compile(_WORD)
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_GROUPED_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u2019": "'",
        # Invisible: soft hyphen, zero-width space and joiners, byte-order mark.
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", None),
    }
)


def terms(text: str) -> list[str]:
    """The terms of `text`, in order, repeats kept: words, identifiers whole and in parts, pairs.

    Case and compatibility forms of characters make no difference (NFKC, case folding). There are
    no stop words: what is common weighs little by its idf, and a name may consist of such words.

        >>> terms("The ABC-123_x costs 1,234.50")
        ['the', 'abc-123_x', 'abc', '123', 'x', 'costs', '1,234.50', '1', '234', '50', '1234.50']
        >>> terms("数据库 is 库")
        ['数据', '据库', 'is', '库']
    """
    return [term for word in _words(text) for term in _terms_of(word)]


def _words(text: str) -> list[str]:
    """Folded words, among which some are several terms."""
    if text.isascii():  # of all that folding does, only capitals are left
        return _JOINED_ASCII.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text).translate(_SAME).casefold()
    return (_JOINED_ASCII if folded.isascii() else _JOINED).findall(folded)


def _terms_of(word: str) -> list[str]:
    if word.isascii() and word.isalnum():
        return [word[:LONGEST_TERM]]
    if _IS_UNSPACED.match(word):
        return _pairs(word)
    return _whole_and_parts(word)


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]


def _whole_and_parts(word: str) -> list[str]:
    parts = [part[:LONGEST_TERM] for part in _PART.findall(word)]
    if len(parts) == 1:
        return parts
    if _GROUPED_NUMBER.fullmatch(word):
        parts.append(word.replace(",", "")[:LONGEST_TERM])
    return [word[:LONGEST_TERM], *parts]


def idf(passages: int, frequency: int) -> float:
    """How much a term weighs that `frequency` of `passages` passages hold; above 0."""
    return math.log1p((passages - frequency + 0.5) / (frequency + 0.5))


def saturation(counts: npt.ArrayLike, lengths: npt.ArrayLike, average_length: float) -> Floats:
    """What a term of weight 1 adds to the scores of passages that hold it `counts` times.

    Args:
        counts: How often the term stands in each passage.
        lengths: The passages' lengths in terms.
        average_length: Over the whole collection; above 0.
    """
    n = np.asarray(counts, np.float64)
    relative = np.asarray(lengths, np.float64) / average_length
    return n * (K1 + 1) / (n + K1 * (1 - B + B * relative))


def distinct(query: str) -> list[str]:
    """The different terms of a query, sorted: the order in which scores are added up."""
    return sorted(set(terms(query)))


def score_texts(query: str, texts: Sequence[str], statistics: TermStatistics) -> list[float]:
    """BM25 of texts that stand outside of the collection `statistics` is about, each >= 0.

    Where that collection is empty, a text's length is compared with the mean of `texts`.
    """
    counted = [Counter(terms(text)) for text in texts]
    lengths = [counts.total() for counts in counted]
    average = statistics.average_length or sum(lengths) / max(1, len(lengths)) or 1.0
    weights = {
        term: idf(statistics.passages, statistics.passage_frequency.get(term, 0))
        for term in distinct(query)
    }
    scores = np.zeros(len(texts))
    for term, weight in weights.items():
        scores += weight * saturation([counts[term] for counts in counted], lengths, average)
    return [float(score) for score in scores]


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
