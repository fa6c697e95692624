"""Rich Text Format: its text, and its tables."""

from __future__ import annotations

import re

from striprtf.striprtf import rtf_to_text

from docpager.documents.composing import Composer, add_tables
from docpager.documents.outline import OutlinedDocument

_PICTURES = re.compile(r"(?:[0-9a-fA-F]{2}[\r\n]*){64,}")
_TITLE = re.compile(r"\{\\title\s+([^{}\\]+)\}")
_BREAK = re.compile(r"\n{2,}")


def read_rtf(data: bytes) -> OutlinedDocument:
    """The text in paragraphs; pictures are left out, and a row of a table is one line."""
    # Every character of the format is ASCII; what is more has been escaped, or is kept as it is.
    source = _PICTURES.sub("", data.decode("latin-1"))
    text: str = rtf_to_text(source, errors="replace")  # type: ignore[no-untyped-call]
    composer = Composer("rtf")
    lines: list[str] = []
    rows: list[list[str]] = []

    def flush() -> None:
        composer.paragraph("\n".join(lines))
        add_tables(composer, list(rows))
        lines.clear()
        rows.clear()

    for line in text.split("\n"):
        cells = line.split("|")
        is_row = len(cells) > 2 and not cells[-1].strip()
        if (is_row and lines) or (not is_row and rows) or not line.strip():
            flush()
        if is_row:
            rows.append(cells[:-1])
        elif line.strip():
            # A line is a paragraph of the file: line breaks within one are rare.
            composer.paragraph(line)
    flush()
    title = _TITLE.search(source)
    return composer.document(title=title[1] if title else None)
