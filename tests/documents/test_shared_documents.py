"""The hard files of ../shared/docs, ingested by the real command where they lie."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from docpager.memory.archive import Archive
from docpager.types import Document, PageText
from docpager.wiring import SystemClock

pytestmark = pytest.mark.shared

REASONS = {
    "corrupt": {"damaged"},
    "empty_file": {"empty"},
    "empty_text": {"empty"},
    "no_pages": {"empty", "damaged"},
    "not_a_pdf": {"not_a_document"},
    "unsafe_xml": {"damaged"},
    "too_deep": {"damaged"},
    "encrypted": {"encrypted"},
    "no_text_layer": {"no_text_layer"},
    "too_large": {"too_large"},
}
WARNINGS = {
    "frames_not_followed": "frames",
    "decode_replacements": "not UTF-8",
}
"""What a warning says, for each that the manifest expects beside a success."""
CHUNK_LIMIT = 512
Entry = Mapping[str, Any]


def folder() -> Path:
    given = os.environ.get("DOCPAGER_SHARED")
    return (Path(given) if given else Path(__file__).parents[2].parent / "shared") / "docs"


def manifest() -> dict[str, Entry]:
    path = folder() / "manifest.jsonl"
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {str(entry["file"]): entry for entry in map(json.loads, lines)}


def squeezed(text: str) -> str:
    text = re.sub(r"(?<=\w)-\n", "", unicodedata.normalize("NFKC", text))
    return " ".join(text.split())


@dataclass(frozen=True)
class Outcome:
    """What the command said of one file, and what the archive holds of it."""

    said: Mapping[str, Any]
    document: Document | None
    pages: Sequence[PageText]
    names: Sequence[str]
    """Of what is attached to it, below its own name."""

    @property
    def text(self) -> str:
        return "\n".join(page.text for page in self.pages)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Any]]:
    """The archive of the whole folder, and the report of the command that made it."""
    home = tmp_path_factory.mktemp("shared")
    return ingested(home, folder())


@cache
def ingested(home: Path, source: Path, *options: str) -> tuple[Path, Mapping[str, Any]]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DOCPAGER_", "OPENAI_"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "docpager", "ingest", str(source), "--json", *options],
        cwd=home,
        env={**kept, "HOME": str(home)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode in {0, 3}, done.stderr
    return home / "docpager.duckdb", json.loads(done.stdout)


def outcome_of(archive: tuple[Path, Mapping[str, Any]], file: str) -> Outcome:
    path, report = archive
    name = f"docs/{file}"
    (said,) = (one for one in report["files"] if one["path"] == name)
    with Archive.open(path, clock=SystemClock()) as opened:
        rows = {row.name: row for row in opened.documents()}
        row = rows.get(name)
        pages = () if row is None or row.state != "ready" else range(1, row.pages + 1)
        return Outcome(
            said,
            row,
            [opened.page(name, number) for number in pages],
            [one.removeprefix(f"{name}/") for one in rows if one.startswith(f"{name}/")],
        )


def problems(expect: Entry, outcome: Outcome) -> list[str]:
    """Where an outcome is not what the manifest expects."""
    if outcome.said["status"] == "failed":
        wanted = {expect.get("error", ""), *expect.get("accept", ())}
        allowed = set().union(*(REASONS.get(one, {one}) for one in wanted))
        may_fail = expect["status"] in {"error", "no_text", "ok_or_error"}
        if may_fail and outcome.said["reason"] in allowed and outcome.said["message"]:
            return []
        return [f"failed: {outcome.said['reason']}: {outcome.said['message']}"]
    found = []
    if expect["status"] in {"error", "no_text"}:
        found.append("it should have failed")
    found += [*text_problems(expect, outcome), *mark_problems(expect, outcome)]
    return found


def text_problems(expect: Entry, outcome: Outcome) -> list[str]:
    found = []
    fold = str.casefold if expect.get("ci") else str
    for wanted in expect.get("must", []):
        number = wanted["page"]
        if number is not None and number > len(outcome.pages):
            found.append(f"there is no page {number}")
            continue
        text = outcome.text if number is None else outcome.pages[number - 1].text
        if fold(squeezed(wanted["text"])) not in fold(squeezed(text)):
            found.append(f"page {number} lacks {wanted['text']!r}")
    for order in expect.get("order", []):
        text = squeezed(outcome.pages[order["page"] - 1].text)
        places = [text.find(squeezed(part)) for part in order["seq"]]
        if places != sorted(places) or -1 in places:
            found.append(f"order {places}")
    return found + [
        f"holds {text!r}" for text in expect.get("must_not", []) if text in outcome.text
    ]


def mark_problems(expect: Entry, outcome: Outcome) -> list[str]:
    """Pages, labels, title, attachments and warnings."""
    found = []
    if expect.get("pages", len(outcome.pages)) != len(outcome.pages):
        found.append(f"{len(outcome.pages)} pages")
    for wanted in expect.get("annotations", []):
        number = wanted["page"]
        text = outcome.text if number is None else outcome.pages[number - 1].text
        if squeezed(wanted["text"]) not in squeezed(text):
            found.append(f"lacks the annotation {wanted['text']!r}")
    labels = [page.page_label for page in outcome.pages]
    if "labels" in expect and labels[: len(expect["labels"])] != expect["labels"]:
        found.append(f"labels {labels[:8]}")
    title = outcome.document.title if outcome.document else None
    if "title" in expect and squeezed(title or "") != squeezed(expect["title"]):
        found.append(f"title {title!r}")
    for name in expect.get("attachments", []):
        if not any(one == name for one in outcome.names):
            found.append(f"no attachment {name!r}")
    warning = WARNINGS.get(expect.get("warn", ""))
    if warning and not any(warning in one for one in outcome.said["warnings"]):
        found.append(f"does not say {warning!r}")
    if expect.get("warn") == "garbled_text" and "garbled" not in outcome.pages[0].flags:
        found.append("is not flagged as garbled")
    return found


@pytest.mark.parametrize("file", manifest())
def test_a_hard_file_comes_out_as_its_manifest_says(
    archive: tuple[Path, Mapping[str, Any]], file: str
) -> None:
    assert problems(manifest()[file]["expect"], outcome_of(archive, file)) == []


def test_no_passage_is_longer_than_the_limit(archive: tuple[Path, Mapping[str, Any]]) -> None:
    path, report = archive
    with Archive.open(path, clock=SystemClock()) as opened:
        passages = opened.passages([f"P{n}" for n in range(1, report["passages"] + 1)])
    assert len(passages) == report["passages"] > 0
    assert max(passage.tokens for passage in passages) <= CHUNK_LIMIT
