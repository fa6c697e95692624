"""A parsed document together with the headings found in it."""

from __future__ import annotations

from dataclasses import dataclass

from docpager.documents.attachments import Attachment
from docpager.types import ParsedDocument

SECTION_LEVEL = 2
"""No chunk runs over a heading of this level or above."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that stands in the document's text at `start:end` (offsets in characters)."""

    start: int
    end: int
    level: int
    """1 is the highest."""
    title: str
    """On one line, without markup."""


@dataclass(frozen=True, slots=True)
class TableSpan:
    """A table that stands in the document's text at `start:end`, one row a line."""

    start: int
    end: int
    body: int
    """Where the rows under the header begin."""
    header: str
    """The header row, on one line: a chunk that begins in the body is indexed with it."""


@dataclass(frozen=True, slots=True)
class OutlinedDocument:
    """What a loader makes of a file: its pages, and its headings in order of their offsets."""

    document: ParsedDocument
    headings: tuple[Heading, ...] = ()
    fences: tuple[tuple[int, int], ...] = ()
    """Spans that are one block whatever blank lines are in them: fenced code."""
    tables: tuple[TableSpan, ...] = ()
    """In order of their offsets, with a header each; they do not overlap."""
    attachments: tuple[Attachment, ...] = ()
    """Files inside the file, in its order: each becomes a document of its own."""
