"""Whatever bytes a file is made of, it is read or refused: no crash, no hang, no other end."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from docpager.documents.loaders import ParsedFile, ParseTask
from docpager.documents.sandbox import Limits, Sandbox
from docpager.errors import DocumentError
from docpager.testing import CharacterCounter
from tests.documents.making import OFFICE, TEXT, examples, mail, msg, odf, packed, xls

LAMP = "<text:p>The lamp was lit in 1887.</text:p>"
OLD = {
    "a.xls": xls([["Year", "Lamps"], [1887, 14]]),
    "a.msg": msg(attachments=[("rows.csv", b"Year,Lamps\n1887,14\n")]),
}
"""Refused without the extra, of which the first file takes as long as it takes to load."""
EXAMPLES = {
    **examples(),
    "a.odp": odf("presentation", f'<draw:page draw:name="One">{LAMP}</draw:page>'),
    "a.fodt": (
        f'<office:document xmlns:office="{OFFICE}" xmlns:text="{TEXT}"><office:body><office:text>'
        f"{LAMP}</office:text></office:body></office:document>"
    ).encode(),
    "a.mht": mail(html="<p>The lamp was lit in <b>1887</b>.</p>"),
}
LIMITS = Limits(seconds=90, memory_bytes=2 << 30)
EXTREMES = (b"", b"\0", b"\xff", b"<", b"&", b"{", b'"', b"=", b"9" * 40, b"\\", b"%s", b"\n\n")


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The data with some bytes changed, moved, doubled or left out; in archives, the parts."""
    if data.startswith(b"PK") and chance.random() < 0.7:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts: dict[str, str | bytes] = {
                name: archive.read(name) for name in archive.namelist()
            }
        name = chance.choice(sorted(parts))
        content = parts[name]
        assert isinstance(content, bytes)
        parts[name] = mutated(content, chance)
        if chance.random() < 0.1:
            del parts[name]
        return packed(parts)
    changed = bytearray(data)
    for _ in range(chance.randint(1, 12)):
        at = chance.randrange(len(changed) + 1)
        length = chance.randint(0, 30)
        match chance.randrange(5):
            case 0:
                changed[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = changed[at : at + length] * chance.randint(1, 20)
            case 3:
                changed[at:at] = chance.choice(EXTREMES)
            case _:
                other = chance.randrange(len(changed) + 1)
                changed[at : at + length] = changed[other : other + length]
    return bytes(changed)


def fill(folder: Path, copies: int, seed: int, sound: Mapping[str, bytes] = EXAMPLES) -> list[Path]:
    """`copies` mutated files of each format."""
    chance = random.Random(seed)
    paths = []
    for name, data in sound.items():
        for number in range(copies):
            path = folder / f"{number}{Path(name).suffix}"
            path.write_bytes(mutated(data, chance))
            paths.append(path)
    return paths


def test_a_hundred_mutated_files_of_each_format_are_read_or_refused(tmp_path: Path) -> None:
    check(fill(tmp_path, 100, seed=1887))


@pytest.mark.extras
def test_a_hundred_mutated_files_that_the_extra_reads_are_read_or_refused(tmp_path: Path) -> None:
    check(fill(tmp_path, 100, seed=1889, sound=OLD))


def check(paths: Sequence[Path]) -> None:
    sandbox: Sandbox[str, ParsedFile] = Sandbox(ParseTask(CharacterCounter()), 2, LIMITS)
    outcomes = list(sandbox.map(map(str, paths)))
    assert len(outcomes) == len(paths)
    for path, outcome in zip(paths, outcomes, strict=True):
        if isinstance(outcome, DocumentError):
            assert outcome.reason not in {"timed_out", "out_of_memory"}, path
            # A reader that failed in a way that nobody foresaw is a fault of the reader.
            assert "could not be understood" not in str(outcome), (path, str(outcome))
            assert "crashed" not in str(outcome), path
        else:
            text = "\n".join(page.text for page in outcome.parsed.pages)
            assert all(text[one.start : one.end] == one.text for one in outcome.chunks), path


@pytest.mark.bars
def test_two_thousand_mutated_files_of_each_format_end_the_command_well(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    paths = fill(corpus, 2_000, seed=1888, sound={**EXAMPLES, **OLD})
    kept = {name: value for name, value in os.environ.items() if "DOCPAGER" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "docpager", "ingest", str(corpus), "--json"],
        cwd=tmp_path,
        env={**kept, "HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode in {0, 3}, done.stderr
    report = json.loads(done.stdout)
    named = {one["path"] for one in report["files"]}
    assert sum(f"corpus/{path.name}" in named for path in paths) + report["ignored"] == len(paths)
    reasons = {one["reason"] for one in report["files"]}
    sys.stderr.write(f"fuzz: {len(paths)} files, {report['failed']} failed, reasons {reasons}\n")
    assert not reasons & {"timed_out", "out_of_memory"}
