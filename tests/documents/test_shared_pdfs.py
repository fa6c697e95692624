"""The PDFs of ../shared/docs come out of the real command as their manifest says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from docpager import wiring
from docpager.config import load
from docpager.types import PageText

pytestmark = pytest.mark.shared

REASONS = {
    "corrupt": {"damaged"},
    "encrypted": {"encrypted"},
    "no_text_layer": {"no_text_layer"},
    "empty_file": {"empty"},
    "empty_text": {"empty"},
    "no_pages": {"empty", "damaged"},
    "not_a_pdf": {"not_a_document"},
    "too_large": {"too_large"},
}
WARNINGS = {
    "garbled_text": "garbled",
    "low_text_quality": "garbled",
    "xfa_placeholder": "XFA",
    "repaired": "mended",
    "no_text_layer": "no text layer",
}
Entry = dict[str, Any]


def folder() -> Path:
    given = os.environ.get("DOCPAGER_SHARED")
    return (Path(given) if given else Path(__file__).parents[2].parent / "shared") / "docs"


def entries() -> list[Entry]:
    lines = (folder() / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry for entry in map(json.loads, lines) if entry["file"].endswith(".pdf")]


def run(archive: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "docpager", "-a", str(archive), *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def squeezed(text: str) -> str:
    text = re.sub(r"(?<=\w)-\n", "", unicodedata.normalize("NFKC", text))
    return " ".join(text.split())


def pages_of(archive: Path) -> dict[str, list[PageText]]:
    """The stored pages of each ready document, by the file's own name."""
    with wiring.open_archive(load({"archive": archive})) as opened:
        return {
            Path(document.name).name: [
                opened.page(document.name, number) for number in range(1, document.pages + 1)
            ]
            for document in opened.documents()
            if document.state == "ready"
        }


def text_problems(expect: Entry, pages: list[PageText]) -> list[str]:
    found: list[str] = []
    if expect.get("pages", len(pages)) != len(pages):
        found.append(f"{len(pages)} pages")
    wanted = [*expect.get("must", []), *expect.get("annotations", [])]
    wanted += [{"page": None, "text": field["value"]} for field in expect.get("fields", [])]
    whole = "\n".join(page.text for page in pages)
    for item in wanted:
        text = whole if item["page"] is None else pages[item["page"] - 1].text
        if squeezed(item["text"]) not in squeezed(text):
            found.append(f"page {item['page']} lacks {item['text']!r}")
    for order in expect.get("order", []):
        text = squeezed(pages[order["page"] - 1].text)
        places = [text.find(squeezed(part)) for part in order["seq"]]
        if places != sorted(places) or -1 in places:
            found.append(f"order {places}")
    for number, label in enumerate(expect.get("labels", []), 1):
        if pages[number - 1].page_label != label:
            found.append(f"page {number} is not labelled {label!r}")
    for number in expect.get("blank", []):
        if pages[number - 1].text.strip():
            found.append(f"page {number} is not blank")
    found += [f"holds {text!r}" for text in expect.get("must_not", []) if text in whole]
    if expect.get("no_nul") and re.search("[\x00-\x08\x0b\x0e-\x1f]", whole):
        found.append("holds control characters")
    return found


def problems(expect: Entry, outcome: Entry, pages: list[PageText]) -> list[str]:
    if outcome["status"] == "failed":
        allowed = set().union(
            *(
                REASONS[reason]
                for reason in [expect.get("error"), *expect.get("accept", [])]
                if reason
            )
        )
        return [] if outcome["reason"] in allowed else [f"failed: {outcome['reason']}"]
    found = (
        [] if expect["status"] in {"ok", "ok_or_error", "partial"} else ["it should have failed"]
    )
    if (warn := expect.get("warn")) and WARNINGS[warn] not in " ".join(outcome["warnings"]):
        found.append(f"no word of {warn}")
    return found + text_problems(expect, pages)


def test_every_pdf_comes_out_as_its_manifest_says(tmp_path: Path) -> None:
    archive = tmp_path / "a.duckdb"
    pdfs = entries()
    assert len(pdfs) > 25
    began = time.monotonic()
    done = run(archive, "ingest", *(str(folder() / item["file"]) for item in pdfs), "--json")
    assert done.returncode == 3, done.stderr
    assert time.monotonic() - began < 60
    outcomes = {Path(item["path"]).name: item for item in json.loads(done.stdout)["files"]}
    stored = pages_of(archive)
    wrong = {}
    for item in pdfs:
        name = Path(item["file"]).name
        if found := problems(item["expect"], outcomes[name], stored.get(name, [])):
            wrong[name] = found
    assert wrong == {}


def test_their_passwords_open_them_at_the_next_run_and_stay_secret(tmp_path: Path) -> None:
    archive = tmp_path / "a.duckdb"
    locked = [item for item in entries() if "password" in item["expect"]]
    paths = [str(folder() / item["file"]) for item in locked]
    assert run(archive, "ingest", *paths).returncode == 3
    secrets = [item["expect"]["password"] for item in locked]
    given = [
        part for secret in ("wrong", *dict.fromkeys(secrets)) for part in ("--password", secret)
    ]
    done = run(archive, "ingest", *paths, *given, "-v")
    assert done.returncode == 0, done.stderr
    stored = pages_of(archive)
    for item in locked:
        for wanted in item["expect"]["must"]:
            assert wanted["text"] in stored[Path(item["file"]).name][wanted["page"] - 1].text
    for secret in secrets:
        assert secret not in done.stdout + done.stderr


def test_what_is_said_of_the_arabic_is_in_reading_order(tmp_path: Path) -> None:
    archive = tmp_path / "a.duckdb"
    run(archive, "ingest", str(folder() / "pdf" / "rtl-arabic.pdf"))
    text = pages_of(archive)["rtl-arabic.pdf"][0].text
    assert text.startswith("تحسين الإنتاجية وحل المشكلات من خلال البرمجة بلغة R")
