"""What an ingest is measured against: pypdfium2's own text of a PDF, and nothing done with it."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass

import pypdfium2


@dataclass(frozen=True, slots=True)
class BaselineReading:
    """One file read barely."""

    pages: int
    characters: int
    seconds: float


def read_baseline(path: str) -> BaselineReading:
    """Read the text of every page; a unit of work for the sandbox."""
    began = time.perf_counter()
    characters = 0
    with closing(pypdfium2.PdfDocument(path)) as document:
        for index in range(len(document)):
            with closing(document[index]) as page, closing(page.get_textpage()) as text:
                characters += len(text.get_text_range())
        pages = len(document)
    return BaselineReading(pages, characters, time.perf_counter() - began)
