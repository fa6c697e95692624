"""Results as text and JSON: keys and their order are a contract, text is for reading."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager import render
from docpager.agent.archival import shown_passage
from docpager.agent.runs import Run
from docpager.errors import Limit
from docpager.models.embedded.inventory import take_inventory
from docpager.types import (
    Answer,
    ArchiveStatus,
    Citation,
    Document,
    EmbedderIdentity,
    Hit,
    IngestCounts,
    PageText,
    Passage,
    ResultPage,
    Usage,
)

CITED = Citation("P17", "reports/q3.pdf", 14, "12", "the penalty is 3% a week", True)
UNVERIFIED = Citation(
    "P18", "notes.md", None, None, "made up", False, "Terms", 40, "the quote is not in the passage"
)
ANSWER = Answer(
    run_id="3f9a",
    question="How much?",
    status="answered",
    answer="3% a week.",
    citations=(CITED, UNVERIFIED),
    steps=4,
    searches=3,
    pages_read=5,
    usage=Usage(100, 60, 20),
    model="m",
    tool_mode="tools",
    stopped_by=None,
    elapsed_s=1.23456,
)
PASSAGE = Passage("P1", "c/a.pdf", "One.\nTwo.", first_page=3, last_page=4)


@pytest.mark.parametrize(
    ("bound", "option"),
    [("steps", "max-steps"), ("tokens", "max-tokens"), ("money", "max-cost"), ("time", "timeout")],
)
def test_an_answer_that_a_bound_forced_names_the_option_that_raises_it(
    bound: Limit, option: str
) -> None:
    forced = replace(ANSWER, status="unsupported", stopped_by=bound)
    assert f"(--{option})" in render.answer_text(forced)
    assert option not in render.answer_text(ANSWER)


def test_an_answer_has_the_contracts_keys_in_the_contracts_order() -> None:
    record = render.answer_record(ANSWER)
    assert list(record) == [
        "schema",
        "run_id",
        "question",
        "status",
        "answer",
        "citations",
        "steps",
        "searches",
        "pages_read",
        "usage",
        "model",
        "tool_mode",
        "stopped_by",
        "elapsed_s",
        "error",
    ]
    assert record["usage"] == {
        "prompt_tokens": 100,
        "cached_tokens": 60,
        "completion_tokens": 20,
        "cost_usd": None,
    }
    first = render.citation_record(CITED)
    assert list(first)[:6] == [
        "passage_id",
        "document",
        "page",
        "page_label",
        "quote",
        "verified",
    ]
    assert json.loads(json.dumps(record)) == record


def test_a_citation_without_pages_says_section_and_line() -> None:
    record = render.citation_record(UNVERIFIED)
    assert (record["page"], record["section"], record["line"]) == (None, "Terms", 40)


def test_an_answer_reads_as_text_then_numbered_citations() -> None:
    assert render.answer_text(ANSWER).split("\n") == [
        "3% a week.",
        "",
        '[1] reports/q3.pdf p. 14 (printed 12) "the penalty is 3% a week"',
        '[2] notes.md § Terms, line 40 "made up" (not verified: the quote is not in the passage)',
    ]


def test_a_label_that_is_the_page_number_is_not_repeated() -> None:
    same = Citation("P1", "a.pdf", 3, "3", "q", True)
    assert render.citation_text(1, same) == '[1] a.pdf p. 3 "q"'


def test_a_note_of_the_models_own_is_named_as_one() -> None:
    note = Citation("N1", "", None, None, "x", False, problem="it is a note")
    assert render.citation_place(note) == "N1, a note of the model itself"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("unsupported", "No citation could be verified"),
        ("not_found", "do not seem to answer"),
        ("step_limit", "--max-steps"),
        ("budget", "bound on tokens, money or time"),
    ],
)
def test_every_outcome_but_a_sound_answer_is_said(status: str, said: str) -> None:
    answer = Answer(
        "r",
        "q",
        status,
        "",
        (),
        0,
        0,
        0,
        Usage(),
        "m",
        "json",
        None,
        0.0,  # type: ignore[arg-type]
    )
    assert said in render.answer_text(answer)


@given(st.text())
def test_printed_text_cannot_steer_a_terminal(text: str) -> None:
    shown = render.printable(text)
    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in shown)
    assert not any("\ud800" <= c <= "\udfff" for c in shown)
    assert render.printable(shown) == shown


def test_escapes_in_an_answer_or_a_file_name_are_not_printed() -> None:
    bad = Citation("P1", "a\x1b[31m.pdf", 1, None, "q\x1b]0;x\x07", True)
    assert "\x1b" not in render.citation_text(1, bad)


def test_a_result_page_has_the_contracts_keys() -> None:
    page = ResultPage("x", "hybrid", 0, 5, 8, 37, (Hit(0, 0.5, PASSAGE),))
    record = render.result_page_record(page)
    assert list(record) == [
        "schema",
        "query",
        "mode",
        "page",
        "page_size",
        "page_count",
        "total",
        "hits",
    ]
    hits = record["hits"]
    assert isinstance(hits, list) and isinstance(hits[0], dict)
    assert list(hits[0])[:7] == [
        "rank",
        "passage_id",
        "document",
        "first_page",
        "last_page",
        "score",
        "text",
    ]


def test_a_result_page_reads_as_the_model_sees_it() -> None:
    page = ResultPage("x", "hybrid", 0, 5, 8, 37, (Hit(0, 0.5, PASSAGE),))
    text = render.result_page_text(page)
    assert text.startswith("Showing 1 of 37 results (page 0/7)\n\n[P1] c/a.pdf p. 3-4\n")
    empty = ResultPage("x", "hybrid", 0, 5, 1, 0, ())
    assert render.result_page_text(empty) == "Showing 0 of 0 results (page 0/0)"


@pytest.mark.parametrize(
    ("passage", "place"),
    [
        (Passage("P1", "a.pdf", "t", 2, 2), "a.pdf p. 2"),
        (Passage("P1", "a.pdf", "t", 2, 3), "a.pdf p. 2-3"),
        (Passage("P1", "n.md", "t", paged=False, heading="A > B", line=7), "n.md § B, line 7"),
        (Passage("P1", "n.txt", "t", 2, 3, paged=False, line=7), "n.txt § section 2, line 7"),
        (Passage("P1", "n.txt", "t", paged=False), "n.txt § section 1, line 1"),
    ],
)
def test_a_person_and_the_model_are_told_the_same_place(passage: Passage, place: str) -> None:
    page = ResultPage("x", "hybrid", 0, 5, 1, 1, (Hit(0, 0.5, passage),))
    assert render.result_page_text(page).split("\n")[2] == f"[P1] {place}"
    assert shown_passage(passage, before=False).header == f"[P1] {place}"


DOCUMENT = Document("c/a.pdf", "ready", "0" * 64, 10, "/c", pages=12, passages=30)


def test_a_stored_page_has_the_contracts_keys() -> None:
    record = render.page_record(DOCUMENT, PageText(3, "text", "iii", "pdfium"))
    assert list(record) == [
        "schema",
        "document",
        "page",
        "page_label",
        "pages",
        "engine",
        "flags",
        "text",
        "quality",
        "furniture",
    ]
    assert (record["page"], record["page_label"], record["pages"]) == (3, "iii", 12)


def test_a_whole_document_has_the_same_keys_and_page_breaks() -> None:
    pages = [PageText(1, "a", engine="pdfium"), PageText(2, "b", engine="pypdf", flags=("x",))]
    record = render.pages_record(DOCUMENT, pages)
    assert list(record) == list(render.page_record(DOCUMENT, pages[0]))
    assert (record["page"], record["text"], record["flags"]) == (None, "a\fb", ["x"])


def test_failures_are_grouped_by_reason_the_most_frequent_first() -> None:
    rows = [("empty", "c", "m3"), ("encrypted", "a", "m1"), ("encrypted", "b", "m2")]
    assert render.failures_text(rows).split("\n") == [
        "encrypted (2)",
        "  a: m1",
        "  b: m2",
        "empty (1)",
        "  c: m3",
    ]
    assert render.failures_text([]) == ""


def test_ls_says_of_each_document_whether_it_is_searched() -> None:
    failed = Document("c/x.pdf", "failed", "", 1, "/c", reason="encrypted")
    twin = Document("c/y.pdf", "duplicate", "", 1, "/c", duplicate_of="c/a.pdf")
    notes = Document("c/n.md", "ready", "", 1, "/c", paged=False, pages=1, passages=1)
    lines = [render.document_line(document) for document in (DOCUMENT, notes)]
    assert [line.split() for line in lines] == [
        ["12", "pages", "30", "passages", "c/a.pdf"],
        ["1", "section", "1", "passage", "c/n.md"],
    ]
    assert {line.index("c/") for line in (*lines, render.document_line(failed))} == {
        len("123456 sections  1234567 passages  ")
    }
    assert "failed: encrypted  c/x.pdf" in render.document_line(failed)
    assert render.document_line(twin).endswith("c/y.pdf = c/a.pdf")


def test_status_counts_what_is_there_and_names_what_is_not() -> None:
    failed = Document(
        "c/x.pdf",
        "failed",
        "",
        1,
        "/c",
        reason="encrypted",
        message="Unlock it.",
        attempts=2,
        reader="pdfium 1",
    )
    status = ArchiveStatus(
        ready=2,
        failed=(failed,),
        pending=4,
        duplicates=1,
        passages=32,
        pages=12,
        sections=0,
        bytes=5_000_000,
        generation=3,
        embedder=EmbedderIdentity("static", 256, True),
    )
    record = render.status_record("x.duckdb", status)
    assert record["documents"] == {"ready": 2, "pending": 4, "failed": 1, "duplicate": 1}
    assert record["embedder"] == {"name": "static", "dimension": 256}
    assert record["failed"] == [
        {
            "path": "c/x.pdf",
            "reason": "encrypted",
            "message": "Unlock it.",
            "attempts": 2,
            "reader": "pdfium 1",
        }
    ]
    text = render.status_text("x.duckdb", status)
    assert "x.duckdb, 4.8 MB" in text
    assert "4 pending" in text
    assert "encrypted (1)\n  c/x.pdf: Unlock it." in text
    told = render.failed_text(status)
    assert told == "encrypted (1)\n  c/x.pdf: Unlock it. (tried 2 times with pdfium 1)"


@pytest.mark.parametrize(
    ("pages", "sections", "line"),
    [
        (12, 0, "pages       12"),
        (12, 3, "pages       9, and 3 sections of files without pages"),
        (1, 1, "pages       0, and 1 section of files without pages"),
    ],
)
def test_status_tells_sections_from_pages(pages: int, sections: int, line: str) -> None:
    status = ArchiveStatus(1, (), 0, 0, 5, pages, sections, 10, 1, None)
    assert line in render.status_text("x.duckdb", status).splitlines()
    assert render.status_record("x.duckdb", status)["pages"] == pages


def test_the_weights_are_named_with_publisher_licence_and_ways_to_get_them(tmp_path: Path) -> None:
    inventory = take_inventory(tmp_path)
    record = render.inventory_record(inventory)
    assert (record["present"], record["checked"]) == (False, False)
    assert record["size"] == 1_117_320_768
    text = render.inventory_text(inventory)
    assert "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF, Apache-2.0" in text
    for way in ("parts", "hub", "FILE"):
        assert f"--obtain {way}" in text


def test_a_trace_shows_what_the_model_did_and_what_came_back() -> None:
    calls = {
        "event": "message",
        "step": 1,
        "role": "assistant",
        "text": "I look.",
        "calls": [{"name": "archival_memory_search", "arguments": '{"query": "x"}'}],
    }
    result = {"event": "message", "step": 1, "role": "tool", "name": "f", "text": "a\n" * 9}
    assert render.event_text(calls, full=False).split("\n") == [
        "step 1  model",
        "    I look.",
        '    -> archival_memory_search {"query": "x"}',
    ]
    assert "more lines" in render.event_text(result, full=False)
    assert "more lines" not in render.event_text(result, full=True)


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.text())))
def test_any_event_can_be_shown(event: dict[str, object]) -> None:
    assert render.event_text(event, full=False)  # type: ignore[arg-type]


def test_a_run_is_listed_with_its_question_and_outcome() -> None:
    run = Run("3f9a", Path("3f9a.jsonl"), datetime(2024, 1, 1, tzinfo=UTC), True)
    events = [{"event": "run", "question": "How\nmuch?"}, {"event": "answer", "status": "answered"}]
    assert render.run_record(run, events) == {  # type: ignore[arg-type]
        "run_id": "3f9a",
        "at": "2024-01-01T00:00:00+00:00",
        "finished": True,
        "question": "How\nmuch?",
        "status": "answered",
    }
    assert render.run_line(run, events).endswith("answered     How much?")  # type: ignore[arg-type]


def test_steps_are_told_only_where_someone_watches(capsys: pytest.CaptureFixture[str]) -> None:
    fields = {"role": "assistant", "step": 2, "calls": [{"name": "f", "arguments": "{}"}]}
    render.StepLines(False).event("message", **fields)
    render.StepLines(True).event("message", **fields)
    render.StepLines(True).event("flush", before=3)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "  step 2: f {}\n"


def test_progress_says_nothing_in_the_first_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    with render.IngestProgress(shown=True) as progress:
        progress(IngestCounts(1, 10, 3, 5, 0))
    assert capsys.readouterr().err == ""


def test_progress_is_plain_lines_where_no_terminal_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render.IngestProgress, "APPEARS_AFTER", 0.0)
    monkeypatch.setattr(render.IngestProgress, "LINE_EVERY", 0.0)
    with render.IngestProgress(shown=True) as progress:
        progress(IngestCounts(5, 10, 20, 50, 2))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("5 of 10 files, 20 pages, 50 passages, 2 failed, ")
    assert re.search(r"pages/s, about \d+ s left\n", captured.err)
    assert "\x1b" not in captured.err


def test_bytes_are_told_by_tenths_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    with render.BytesProgress("checking", shown=True) as progress:
        for done in range(0, 101):
            progress(done, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"checking: {tenth}0%" for tenth in range(1, 11)]
