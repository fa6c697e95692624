"""Damaged PDFs end as documents or as failures with a reason: no crash, no hang, no surprise."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import get_args

import pytest
from reportlab.pdfgen.canvas import Canvas

from docpager.documents.loaders import ParsedFile, ParseTask
from docpager.documents.sandbox import Limits, Sandbox
from docpager.errors import DocumentError, FailureReason
from docpager.testing import CharacterCounter


def seeds() -> list[bytes]:
    """Small PDFs that use much of the format."""
    made = []
    for compressed in (0, 1):
        out = io.BytesIO()
        canvas = Canvas(out, pageCompression=compressed)
        for number in range(3):
            canvas.bookmarkPage(f"k{number}")
            canvas.addOutlineEntry(f"Section {number}", f"k{number}")
            canvas.drawString(72, 700, f"Section {number}")
            canvas.drawString(72, 680, "The keeper wrote what he saw, and little else.")
            canvas.acroForm.textfield(name=f"f{number}", value="filled", x=72, y=600)
            canvas.linkURL("https://example.org", (72, 500, 200, 520))
            canvas.showPage()
        canvas.save()
        made.append(out.getvalue())
    return made


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes with a few of them changed, cut out, doubled, or the end missing."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 12)):
        at = chance.randrange(len(changed))
        match chance.randrange(5):
            case 0:
                changed[at] = chance.randrange(256)
            case 1:
                del changed[at : at + chance.randint(1, 200)]
            case 2:
                changed[at:at] = changed[at : at + chance.randint(1, 200)]
            case 3:
                changed[at : at + 4] = str(chance.randrange(10_000)).encode()
            case _:
                changed = changed[: max(40, len(changed) - chance.randint(0, 60))]
    return bytes(changed)


def check(folder: Path, count: int) -> None:
    chance = random.Random(20_251_130)
    sources = seeds()
    paths = []
    for number in range(count):
        path = folder / f"{number}.pdf"
        path.write_bytes(mutated(chance.choice(sources), chance))
        paths.append(str(path))
    sandbox: Sandbox[str, ParsedFile] = Sandbox(
        ParseTask(CharacterCounter()), 2, Limits(seconds=30.0)
    )
    outcomes = list(sandbox.map(paths))
    assert len(outcomes) == count
    read = 0
    for path, outcome in zip(paths, outcomes, strict=True):
        if isinstance(outcome, DocumentError):
            assert outcome.reason in get_args(FailureReason), path
            assert outcome.reason not in {"timed_out", "out_of_memory"}, path
            assert "crashed" not in str(outcome) and "understood" not in str(outcome), path
        else:
            read += 1
            whole = "\n".join(page.text for page in outcome.parsed.pages)
            assert all(whole[chunk.start : chunk.end] == chunk.text for chunk in outcome.chunks)
    assert read > count // 4, "most damage leaves something to read"


def test_a_hundred_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    check(tmp_path, 100)


@pytest.mark.bars
def test_two_thousand_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    check(tmp_path, 2_000)
