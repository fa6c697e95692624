"""What the archive's tables are, how they came to be so, and the rows that all who open it read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from docpager.retrieval.vectors import identity_from_json
from docpager.stores.duckdb.connection import Migration
from docpager.stores.duckdb.postings import SCHEMA, SIZES
from docpager.types import Document, EmbedderIdentity

if TYPE_CHECKING:
    import duckdb

MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "archive 1",
        (
            "CREATE TABLE meta (generation BIGINT NOT NULL, next_document INTEGER NOT NULL,"
            " next_passage INTEGER NOT NULL, embedder VARCHAR)",
            "INSERT INTO meta VALUES (0, 1, 1, NULL)",
            "CREATE TABLE document (id INTEGER NOT NULL, name VARCHAR NOT NULL,"
            " state VARCHAR NOT NULL, content_hash VARCHAR NOT NULL, size BIGINT NOT NULL,"
            " root VARCHAR NOT NULL, mtime_ns BIGINT NOT NULL, paged BOOLEAN NOT NULL,"
            " pages INTEGER NOT NULL, passages INTEGER NOT NULL, title VARCHAR, reason VARCHAR,"
            " message VARCHAR, duplicate_of VARCHAR)",
            "CREATE TABLE page (document INTEGER NOT NULL, page_number INTEGER NOT NULL,"
            " text VARCHAR NOT NULL, page_label VARCHAR NOT NULL, engine VARCHAR NOT NULL,"
            " flags VARCHAR NOT NULL, heading VARCHAR NOT NULL, first_line INTEGER NOT NULL)",
            "CREATE INDEX page_document ON page (document)",
            "CREATE TABLE passage (number INTEGER PRIMARY KEY, document INTEGER NOT NULL,"
            " text VARCHAR NOT NULL, first_page INTEGER NOT NULL, last_page INTEGER NOT NULL,"
            " start_at INTEGER NOT NULL, end_at INTEGER NOT NULL, heading VARCHAR NOT NULL,"
            " line INTEGER NOT NULL, tokens INTEGER NOT NULL, text_hash VARCHAR NOT NULL,"
            " length INTEGER NOT NULL, distinct_terms INTEGER NOT NULL)",
            "CREATE INDEX passage_document ON passage (document)",
            *SCHEMA,
        ),
    ),
    Migration(
        "archive: page quality and furniture, authors",
        (
            "ALTER TABLE page ADD COLUMN quality FLOAT DEFAULT 1.0",
            "ALTER TABLE page ADD COLUMN furniture VARCHAR DEFAULT ''",
            "ALTER TABLE document ADD COLUMN author VARCHAR",
        ),
    ),
    Migration(
        "attempts and readers",
        (
            "ALTER TABLE document ADD COLUMN attempts INTEGER DEFAULT 0",
            "ALTER TABLE document ADD COLUMN reader VARCHAR DEFAULT ''",
        ),
    ),
    Migration("sizes of postings", SIZES),
    Migration(
        # Its keys are random, so that each commit wrote the whole of the index: 65 MB with 600,000
        # vectors, for a thousand new ones. A scan of them takes 0.05 s.
        "vectors without an index",
        (
            "CREATE TABLE IF NOT EXISTS vector (text_hash VARCHAR NOT NULL, v FLOAT[1] NOT NULL)",
            "CREATE TABLE unkeyed_vector AS FROM vector",
            "DROP TABLE vector",
            "ALTER TABLE unkeyed_vector RENAME TO vector",
        ),
    ),
)
"""The table `vector` is made anew when the embedder, and with it the dimension, is known."""

DOCUMENT_FIELDS = tuple(field.name for field in fields(Document))
_DOCUMENT_COLUMNS = ", ".join(DOCUMENT_FIELDS)
DOCUMENT_TYPES: dict[str, type[np.generic]] = {
    "size": np.int64,
    "mtime_ns": np.int64,
    "paged": np.bool_,
    "pages": np.int32,
    "passages": np.int32,
    "attempts": np.int32,
}
"""Of the fields that are no text."""


class Meta(NamedTuple):
    """The archive's own row."""

    generation: int
    next_document: int
    next_passage: int
    identity: EmbedderIdentity | None


def read_documents(connection: duckdb.DuckDBPyConnection) -> tuple[Document, ...]:
    """All documents, failed ones too, by name."""
    rows = connection.execute(f"SELECT {_DOCUMENT_COLUMNS} FROM document ORDER BY name").fetchall()
    return tuple(Document(**dict(zip(DOCUMENT_FIELDS, row, strict=True))) for row in rows)


def read_meta(connection: duckdb.DuckDBPyConnection) -> Meta:
    """That row, as it stands."""
    (row,) = connection.execute(
        "SELECT generation, next_document, next_passage, embedder FROM meta"
    ).fetchall()
    generation, next_document, next_passage, embedder = row
    identity = identity_from_json(embedder) if embedder else None
    return Meta(generation, next_document, next_passage, identity)


def spans_to_text(spans: Sequence[tuple[int, int]]) -> str:
    """Spans as they are stored: `0-12 840-842`."""
    return " ".join(f"{start}-{end}" for start, end in spans)


def spans_from_text(text: str) -> tuple[tuple[int, int], ...]:
    """What `spans_to_text` was given.

    >>> spans_from_text("0-12 840-842")
    ((0, 12), (840, 842))
    """
    pairs = (span.split("-") for span in text.split())
    return tuple((int(start), int(end)) for start, end in pairs)
