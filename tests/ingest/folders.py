"""Folders to ingest, with what must become of each file."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path

import pikepdf
from fpdf import FPDF

WORDS = ("harbour", "lamp", "pilot", "ledger", "storm", "winter", "keeper", "rope", "tide")
LIMITS = ("--max-file-size", "1")
"""Under which the file that is too large is; 256 KB for text."""


def text(number: int, sentences: int = 6) -> str:
    """Sentences that no other number has."""
    draw = random.Random(number)
    made = (
        f"The {draw.choice(WORDS)} of year {number}.{at} met the {draw.choice(WORDS)}"
        f" near pier {draw.randrange(999)}."
        for at in range(sentences)
    )
    return " ".join(made)


def put_good(folder: Path, count: int) -> None:
    """So many files that can be read: text, Markdown, and every tenth a PDF."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        name = folder / f"part {number % 7}" / f"{number:05}"
        name.parent.mkdir(exist_ok=True)
        if number % 10 == 9:
            name.with_suffix(".pdf").write_bytes(pdf(text(number)))
        elif number % 10 == 4:
            title = f"# Report {number}\n\n"
            name.with_suffix(".md").write_text(title + text(number, 40), encoding="utf-8")
        else:
            name.with_suffix(".txt").write_text(text(number), encoding="utf-8")


def put_bad(folder: Path, each: int) -> dict[str, str]:
    """`each` files that are bad in every one of ten ways; the reason of each by its name."""
    folder.mkdir(parents=True, exist_ok=True)
    reasons = {}
    for way, (name, reason) in enumerate(_WAYS.items()):
        for number in range(each):
            stem, _, ending = name.rpartition(".")
            path = folder / f"{way}-{stem}-{number}.{ending}"
            # Different bytes, so that none is a copy of another.
            path.write_bytes(_bad(name) + b" " * number)
            reasons[path.name] = reason
    return reasons


_WAYS = {
    "nothing.txt": "empty",
    "blank.md": "empty",
    "binary.txt": "not_a_document",
    "packed.md": "not_a_document",
    "torn.pdf": "damaged",
    "locked.pdf": "encrypted",
    "scanned.pdf": "no_text_layer",
    "white.pdf": "empty",
    "huge.txt": "too_large",
    "bomb.pdf": "damaged",
}


def _bad(name: str) -> bytes:
    match name:
        case "nothing.txt":
            return b""
        case "blank.md":
            return b" \n\t\n" * 9
        case "binary.txt":
            return bytes(range(256)) * 20
        case "packed.md":
            return gzip.compress(random.Random(1).randbytes(2_000), mtime=0)
        case "torn.pdf":
            return pdf("Words that are cut off.")[:60]
        case "locked.pdf":
            return _locked(pdf("Words behind a password."))
        case "scanned.pdf":
            return _drawing()
        case "white.pdf":
            return pdf("")
        case "huge.txt":
            return b"Too many words. " * 20_000
        case _:
            return b"%PDF-1.7\n" + b"[" * 5_000


def pdf(words: str) -> bytes:
    """A PDF of one page."""
    document = FPDF()
    document.add_page()
    document.set_font("Helvetica")
    if words:
        document.multi_cell(0, text=words)
    return bytes(document.output())


def _drawing() -> bytes:
    document = FPDF()
    document.add_page()
    for at in range(30):
        document.rect(10 + at, 10, 5, 200, style="F")
    return bytes(document.output())


def _locked(content: bytes) -> bytes:
    made = io.BytesIO()
    with pikepdf.open(io.BytesIO(content)) as document:
        document.save(made, encryption=pikepdf.Encryption(owner="o", user="u", R=6))
    return made.getvalue()
