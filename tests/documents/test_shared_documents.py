"""The hard files of ../shared/docs come out of the real command as their manifest says.

Every key of the manifest is checked, with `ingest --json`, `ls --json`, `read --json` and the
stored passages; a key that is not known here fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypdf
import pytest
from click.testing import CliRunner

from docpager import wiring
from docpager.cli import main
from docpager.config import load
from docpager.types import PAGE_SEPARATOR, Passage

pytestmark = pytest.mark.shared

Entry = Mapping[str, Any]

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
"""Our reasons for each of the manifest's words."""
WARNINGS = {
    "frames_not_followed": "frames",
    "decode_replacements": "not UTF-8",
    "garbled_text": "garbled",
    "low_text_quality": "garbled",
    "xfa_placeholder": "XFA",
    "repaired": "mended",
    "no_text_layer": "no text layer",
    "not_a_pdf": "not",
}
"""What a warning says, for each that the manifest expects beside a success."""
CHUNK_LIMIT = 512
LEAST_MEMORY_MB = 512
"""Below which `--worker-memory` cannot be set."""
CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f]")


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


# -- the real command -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What the command said of one file, and what it shows of the archive."""

    said: Mapping[str, Any]
    """By `ingest --json`."""
    listed: Mapping[str, Any]
    """By `ls --json`."""
    pages: Sequence[str]
    """By `read --json`; none of a file that failed."""
    furniture: Sequence[str]
    labels: Callable[[int], str | None]
    """By `read --page N --json`, of a 1-based page."""
    passages: Sequence[Passage]
    names: Sequence[str]
    """Of what is attached to it, below its own name."""
    path: Path

    @property
    def text(self) -> str:
        return PAGE_SEPARATOR.join(self.pages)

    def on(self, page: int | None) -> str:
        """The text of a page, of all pages for None, and nothing of a page that is not there."""
        if page is None:
            return self.text
        return self.pages[page - 1] if page <= len(self.pages) else ""

    @property
    def headings(self) -> set[str]:
        """All headings that stand above passages."""
        paths = {passage.heading for passage in self.passages}
        return {part for path in paths for part in squeezed(path).split(" > ")}


@dataclass(frozen=True)
class Archived:
    """An archive that the command made, with what it reported while it did."""

    path: Path
    report: Mapping[str, Any]
    stderr: str
    peak_mb: float
    """Resident, of the command or the largest of its workers."""
    documents: Mapping[str, Mapping[str, Any]]
    passages: Sequence[Passage]

    def outcome_of(self, file: str) -> Outcome:
        said = next(one for one in self.report["files"] if one["path"].endswith(file))
        name = said["path"]
        ready = self.documents[name]["state"] == "ready"
        shown = self._read(name) if ready else {"text": "", "furniture": []}
        return Outcome(
            said,
            self.documents[name],
            shown["text"].split("\f") if ready else (),
            shown["furniture"],
            lambda page: self._read(name, "--page", str(page))["page_label"],
            [passage for passage in self.passages if passage.document == name],
            [one.removeprefix(f"{name}/") for one in self.documents if one.startswith(f"{name}/")],
            folder() / file,
        )

    def _read(self, *arguments: str) -> Any:
        return shown(self.path, "read", *arguments)


def shown(archive: Path, *arguments: str) -> Any:
    """What a command prints as JSON."""
    done = CliRunner().invoke(main, ["-a", str(archive), *arguments, "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def ingested_into(archive: Path, *arguments: str) -> Archived:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DOCPAGER_", "OPENAI_"))
    }
    command = [sys.executable, "-m", "docpager", "-a", str(archive), "ingest", "--json"]
    with (
        (archive.parent / "report.json").open("w+", encoding="utf-8") as stdout,
        (archive.parent / "stderr.txt").open("w+", encoding="utf-8") as stderr,
    ):
        process = subprocess.Popen(
            [*command, *arguments],
            env={**kept, "HOME": str(archive.parent)},
            cwd=archive.parent,
            stdout=stdout,
            stderr=stderr,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        stderr.seek(0)
        said = stderr.read()
        assert process.returncode in {0, 3}, said
        report = json.load(stdout)
    documents = {row["document"]: row for row in shown(archive, "ls")["documents"]}
    with wiring.open_store(load({"archive": archive})) as opened:
        passages = opened.passages([f"P{number + 1}" for number in range(report["passages"])])
    return Archived(archive, report, said, usage.ru_maxrss / 1024, documents, passages)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Archived:
    return ingested_into(tmp_path_factory.mktemp("shared") / "a.duckdb", str(folder()))


# -- what is expected -----------------------------------------------------------------------------


def status_problems(expect: Entry, outcome: Outcome) -> Iterator[str]:
    """Whether it failed as it may, or is ready as it should be."""
    words = {*expect.get("accept", ())} | {expect[key] for key in ("error",) if key in expect}
    failed = outcome.said["status"] == "failed"
    if failed and expect["status"] not in {"error", "no_text", "ok_or_error"} and not words:
        yield f"failed: {outcome.said['reason']}: {outcome.said['message']}"
    if failed and outcome.said["reason"] not in set().union(*(REASONS[one] for one in words)):
        yield f"failed for another reason than {sorted(words)}: {outcome.said['reason']}"
    if failed and not outcome.said["message"]:
        yield "says no word on why it failed"
    read_as_what_it_is = "not_a_pdf" in words and outcome.said["warnings"]
    if not failed and expect["status"] in {"error", "no_text"} and not read_as_what_it_is:
        yield "should have failed"
    if not failed and expect["status"] == "partial" and not outcome.said["warnings"]:
        yield "does not say what could not be read"


def must(wanted: Sequence[Entry], outcome: Outcome, expect: Entry) -> Iterator[str]:
    fold = str.casefold if expect.get("ci") else str
    for item in wanted:
        if fold(squeezed(item["text"])) not in fold(squeezed(outcome.on(item["page"]))):
            yield f"page {item['page']} lacks {item['text']!r}"


def order(wanted: Sequence[Entry], outcome: Outcome, _expect: Entry) -> Iterator[str]:
    for item in wanted:
        text = squeezed(outcome.on(item["page"]))
        places = [text.find(squeezed(part)) for part in item["seq"]]
        if places != sorted(places) or -1 in places:
            yield f"order {places}"


def must_not(wanted: Sequence[str], outcome: Outcome, _expect: Entry) -> Iterator[str]:
    return (f"holds {text!r}" for text in wanted if text in outcome.text)


def no_nul(wanted: bool, outcome: Outcome, _expect: Entry) -> Iterator[str]:
    if wanted and CONTROL.search(outcome.text):
        yield "holds control characters"


def pages(wanted: int, outcome: Outcome, _expect: Entry) -> Iterator[str]:
    if {wanted} != {len(outcome.pages), outcome.listed["pages"]}:
        yield f"{len(outcome.pages)} pages, listed as {outcome.listed['pages']}"


def blank(wanted: Sequence[int], outcome: Outcome, _expect: Entry) -> Iterator[str]:
    return (f"page {number} is not blank" for number in wanted if outcome.on(number).strip())


def labels(wanted: Sequence[str | None], outcome: Outcome, _expect: Entry) -> Iterator[str]:
    for number, label in enumerate(wanted, 1):
        if outcome.labels(number) != label:
            yield f"page {number} is labelled {outcome.labels(number)!r}, not {label!r}"


def title(wanted: str, outcome: Outcome, _expect: Entry) -> Iterator[str]:
    if squeezed(outcome.listed["title"] or "") != squeezed(wanted):
        yield f"title {outcome.listed['title']!r}"


def fields(wanted: Sequence[Entry], outcome: Outcome, _expect: Entry) -> Iterator[str]:
    for field in wanted:
        lines = (line.rpartition(": ") for line in outcome.text.splitlines())
        if not any(
            name.rstrip(")").endswith(field["name_ends"]) and value == field["value"]
            for name, _, value in lines
        ):
            yield f"no field {field['name_ends']!r} of the value {field['value']!r}"


def attachments(wanted: Sequence[str], outcome: Outcome, _expect: Entry) -> Iterator[str]:
    return (f"no attachment {name!r}" for name in wanted if name not in outcome.names)


def outline(wanted: int, outcome: Outcome, _expect: Entry) -> Iterator[str]:
    """So many bookmarks; each is a heading above passages, or inside one of a heading above."""
    titles = [*map(squeezed, bookmarks(pypdf.PdfReader(outcome.path).outline))]
    if len(titles) != wanted:
        yield f"{len(titles)} bookmarks"
    below = [squeezed(passage.text) for passage in outcome.passages if passage.heading]
    # A printed heading has its number before what the bookmark says.
    above = {one for one in titles if any(line.endswith(one) for line in outcome.headings)}
    for one in titles:
        if one not in above and not any(one in text for text in below):
            yield f"the bookmark {one!r} is no heading"
    if len(above) < len(set(titles)) / 2:
        yield f"only {above} are headings"


def bookmarks(entries: Sequence[Any]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, list):
            yield from bookmarks(entry)
        else:
            yield str(entry.title)


def headings(wanted: Sequence[str], outcome: Outcome, _expect: Entry) -> Iterator[str]:
    found = outcome.headings
    return (f"no heading {one!r}" for one in wanted if squeezed(one) not in found)


def not_headings(wanted: Sequence[str], outcome: Outcome, _expect: Entry) -> Iterator[str]:
    found = outcome.headings
    return (f"{one!r} is a heading" for one in wanted if squeezed(one) in found)


def furniture(wanted: Sequence[str], outcome: Outcome, _expect: Entry) -> Iterator[str]:
    found = [*map(squeezed, outcome.furniture)]
    for one in wanted:
        if not any(squeezed(one) in line for line in found):
            yield f"{one!r} is not marked as furniture"


def warn(wanted: str, outcome: Outcome, _expect: Entry) -> Iterator[str]:
    if WARNINGS[wanted] not in " ".join(outcome.said["warnings"]):
        yield f"no word of {wanted}"


Check = Callable[[Any, Outcome, Entry], Iterator[str]]
CHECKS: Mapping[str, Check] = {
    "must": must,
    "annotations": must,
    "order": order,
    "must_not": must_not,
    "no_nul": no_nul,
    "pages": pages,
    "blank": blank,
    "labels": labels,
    "title": title,
    "fields": fields,
    "attachments": attachments,
    "outline": outline,
    "headings": headings,
    "not_headings": not_headings,
    "furniture": furniture,
    "warn": warn,
}
"""Of what a file that is ready has to show."""
ELSEWHERE = {"status", "error", "accept", "ci", "password", "limits", "note"}
"""Keys of the status, those that have tests of their own, and what is said to people."""


def problems(entry: Entry, outcome: Outcome) -> list[str]:
    """Where an outcome is not what the manifest expects."""
    expect = entry["expect"]
    found = [f"unknown key {key!r}" for key in expect.keys() - CHECKS.keys() - ELSEWHERE]
    if (outcome.listed["size"], outcome.listed["sha256"]) != (entry["bytes"], entry["sha256"]):
        found.append("other bytes")
    found += status_problems(expect, outcome)
    if outcome.said["status"] != "failed":
        for key in expect.keys() & CHECKS.keys():
            found += CHECKS[key](expect[key], outcome, expect)
    return found


def files_with(key: str) -> list[str]:
    return [file for file, entry in manifest().items() if key in entry["expect"]]


@pytest.mark.parametrize("file", manifest())
def test_a_hard_file_comes_out_as_its_manifest_says(ingested: Archived, file: str) -> None:
    assert problems(manifest()[file], ingested.outcome_of(file)) == []


def test_the_whole_manifest_is_looked_at() -> None:
    assert len(manifest()) >= 67


def test_a_key_that_nobody_checks_is_a_problem(ingested: Archived) -> None:
    file, entry = next(iter(manifest().items()))
    more = {**entry, "expect": {**entry["expect"], "colour": "red"}}
    assert problems(more, ingested.outcome_of(file)) == ["unknown key 'colour'"]


def test_no_passage_is_longer_than_the_limit(ingested: Archived) -> None:
    assert len(ingested.passages) == ingested.report["passages"] > 0
    assert max(passage.tokens for passage in ingested.passages) <= CHUNK_LIMIT


@pytest.mark.parametrize("file", files_with("limits"))
def test_a_file_keeps_its_limits_of_time_and_memory(tmp_path: Path, file: str) -> None:
    """The command itself is held to the time, and ends the file as failed where it takes more."""
    entry = manifest()[file]
    limits = entry["expect"]["limits"]
    assert limits.keys() <= {"seconds", "rss_mb"}
    most_mb = limits.get("rss_mb", 4096)
    done = ingested_into(
        tmp_path / "a.duckdb",
        *(str(folder() / file), "--file-timeout", str(limits["seconds"])),
        *("--worker-memory", str(max(LEAST_MEMORY_MB, most_mb))),
    )
    assert problems(entry, done.outcome_of(Path(file).name)) == []
    assert done.peak_mb <= most_mb


def test_their_passwords_open_them_at_the_next_run_and_stay_secret(tmp_path: Path) -> None:
    locked = {file: manifest()[file] for file in files_with("password")}
    paths = [str(folder() / file) for file in locked]
    archive = tmp_path / "a.duckdb"
    assert ingested_into(archive, *paths).report["failed"] == len(paths) > 0
    secrets = [entry["expect"]["password"] for entry in locked.values()]
    given = [part for secret in ("wrong", *secrets) for part in ("--password", secret)]
    done = ingested_into(archive, *paths, *given, "-v")
    for file, entry in locked.items():
        opened = {**entry["expect"], "status": "ok"}
        assert problems({**entry, "expect": opened}, done.outcome_of(Path(file).name)) == []
    said = json.dumps([done.report, *done.documents.values()]) + done.stderr
    assert not any(secret in said for secret in secrets)


def test_what_is_said_of_the_arabic_is_in_reading_order(ingested: Archived) -> None:
    text = ingested.outcome_of("pdf/rtl-arabic.pdf").text
    assert text.startswith("تحسين الإنتاجية وحل المشكلات من خلال البرمجة بلغة R")
