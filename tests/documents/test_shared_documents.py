"""The hard files of ../shared/docs, as far as PDF, plain text and Markdown go."""

from __future__ import annotations

import json
import os
import re
import time
import unicodedata
from pathlib import Path

import pytest

from docpager.documents.loaders import ParsedFile, ParseTask
from docpager.documents.sandbox import Sandbox
from docpager.errors import DocumentError
from docpager.testing import CharacterCounter

pytestmark = pytest.mark.shared

REASONS = {
    "corrupt": {"damaged"},
    "encrypted": {"encrypted"},
    "empty_file": {"empty"},
    "empty_text": {"empty"},
}
Entry = dict[str, object]


def folder() -> Path:
    given = os.environ.get("DOCPAGER_SHARED")
    return (Path(given) if given else Path(__file__).parents[2].parent / "shared") / "docs"


def squeezed(text: str) -> str:
    text = re.sub(r"(?<=\w)-\n", "", unicodedata.normalize("NFKC", text))
    return " ".join(text.split())


def problems(entry: dict[str, object], outcome: ParsedFile | DocumentError) -> list[str]:
    expect = entry["expect"]
    assert isinstance(expect, dict)
    if isinstance(outcome, DocumentError):
        allowed = REASONS.get(expect.get("error", ""), set())
        return [] if outcome.reason in allowed else [f"failed: {outcome.reason}: {outcome}"]
    found = [] if expect["status"] in {"ok", "ok_or_error"} else ["it should have failed"]
    pages = outcome.parsed.pages
    whole = "\n".join(page.text for page in pages)
    if expect.get("pages", len(pages)) != len(pages):
        found.append(f"{len(pages)} pages")
    for wanted in [*expect.get("must", []), *expect.get("annotations", [])]:
        number = wanted["page"]
        text = whole if number is None else pages[number - 1].text
        if squeezed(wanted["text"]) not in squeezed(text):
            found.append(f"page {number} lacks {wanted['text']!r}")
    for order in expect.get("order", []):
        text = squeezed(pages[order["page"] - 1].text)
        places = [text.find(squeezed(part)) for part in order["seq"]]
        if places != sorted(places) or -1 in places:
            found.append(f"order {places}")
    found += [f"holds {text!r}" for text in expect.get("must_not", []) if text in whole]
    for chunk in outcome.chunks:
        if whole[chunk.start : chunk.end] != chunk.text or chunk.tokens > 512:
            found.append(f"chunk at {chunk.start}")
    if expect.get("warn") == "garbled_text" and "garbled" not in pages[0].flags:
        found.append("not flagged as garbled")
    return found


def test_every_hard_file_comes_out_as_its_manifest_says() -> None:
    entries: list[Entry] = [
        json.loads(line)
        for line in (folder() / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    ours = [item for item in entries if str(item["file"]).endswith((".pdf", ".txt", ".md"))]
    assert len(ours) > 30
    sandbox: Sandbox[str, ParsedFile] = Sandbox(ParseTask(CharacterCounter()), 2)
    began = time.monotonic()
    outcomes = list(sandbox.map(str(folder() / str(item["file"])) for item in ours))
    assert time.monotonic() - began < 60
    wrong = {
        item["file"]: found
        for item, outcome in zip(ours, outcomes, strict=True)
        if (found := problems(item, outcome))
    }
    assert wrong == {}
