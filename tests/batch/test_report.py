"""The report: one file that fetches nothing, whatever stands in an answer; its parts in Python,
and in Chromium sorting, filtering and opening an entry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.batch.report import quote_span, timeline, write_report
from docpager.types import Citation, JSONValue
from tests.batch.test_reports import NASTY, answer, finished, question, row

PAGE = (
    "The pump was made in Graz.\nIt weighs 40 kg,\nas the plate says; see “Notes”. \U0001f600 灯塔"
)
HOSTILE = "</script><script>document.title='broken'</script><!--<img src=x onerror=alert(1)>"
EVENTS: list[dict[str, JSONValue]] = [
    {
        "event": "message",
        "role": "assistant",
        "calls": [
            {"name": "archival_memory_search", "arguments": '{"query": "pump", "page": 0}'},
            {"name": "core_memory_append", "arguments": '{"content": "made in Graz"}'},
        ],
    },
    {
        "event": "message",
        "role": "tool",
        "name": "archival_memory_search",
        "text": "Showing 1 of 1\nx",
    },
    {
        "event": "message",
        "role": "tool",
        "name": "core_memory_append",
        "text": "Failed",
        "failed": True,
    },
    {"event": "message", "role": "user", "kind": "pressure", "text": "Memory is short."},
    {"event": "flush", "evicted_messages": 4, "before": 900, "after": 400, "summary": "So far."},
    {
        "event": "message",
        "role": "assistant",
        "calls": [{"name": "read_document", "arguments": "no"}],
    },
    {"event": "message", "role": "tool", "name": "read_document", "text": "Page 1 of 2"},
    {"event": "forced", "stopped_by": "time"},
]


def written(folder: Path, asked: list[Any], rows: Mapping[str, Any], **fields: Any) -> Path:
    """A report of questions whose one run has left a trace."""
    runs, path = folder / "runs", folder / "report.html"
    runs.mkdir()
    lines = "".join(f"{json.dumps(event)}\n" for event in EVENTS)
    (runs / "run1.jsonl").write_text(lines, encoding="utf-8")
    kept = {"runs": runs, "cited_text": lambda citation: PAGE, **fields}
    write_report(path, finished(asked, dict(rows), **kept))
    return path


def made(folder: Path) -> Path:
    """A report of four questions."""
    asked = [
        question("q10", expected="Graz", tags=["places"]),
        question("q9", expected="40 kg", tags=["numbers\x01\ud800"]),
        question("hostile", expected="x", tags=[HOSTILE, "places"]),
        question("fault", expected="x"),
    ]
    quote = Citation("P1", "a.pdf", 3, "i", "It weighs 40 kg, as the plate", True)
    noted = Citation("P2", "n.md", None, None, "made in Graz", True, "Pumps", 7)
    rows = {
        "q10": row(asked[0], answer("Graz", citations=(noted,), elapsed_s=3.0)),
        "q9": row(asked[1], answer("40 kg", citations=(quote,), elapsed_s=20.0)),
        "hostile": row(asked[2], answer(HOSTILE + NASTY, elapsed_s=1.0)),
        "fault": row(asked[3], answer("", "model_error", error="down")),
    }
    return written(folder, asked, rows)


def test_it_is_one_file_that_fetches_nothing(tmp_path: Path) -> None:
    text = made(tmp_path).read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    markup = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.S)
    markup = re.sub(r'xmlns(:\w+)?="[^"]*"', "", markup)
    assert not re.search(r"\b(src|href)\s*=", markup)
    assert not re.search(r"https?://", markup)
    assert markup.count("<script>") == 1
    assert markup.count("<svg") == 3
    assert "prefers-color-scheme: dark" in text and "@media print" in text


def test_what_stands_in_an_answer_stays_text(tmp_path: Path) -> None:
    text = made(tmp_path).read_text(encoding="utf-8")
    assert HOSTILE not in text
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    data = json.loads(found[1])
    assert data["questions"][2]["answer"].startswith(HOSTILE)
    assert [entry["outcome"] for entry in data["questions"]] == [
        "passed",
        "passed",
        "failed",
        "error",
    ]


def test_what_was_asked_without_a_result_is_shown_with_its_reason(tmp_path: Path) -> None:
    asked = [question(name, expected="Graz") for name in ("kept", "stopped", "never")]
    rows = {"kept": row(asked[0], answer("Graz"))}
    failed = {"kept": "not redone: the key is refused", "stopped": "no recording"}
    path = written(tmp_path, asked, rows, failed=failed)
    text = path.read_text(encoding="utf-8")
    found = re.search(r'id="data">(.*?)</script>', text, re.S)
    assert found is not None
    shown = {entry["id"]: entry for entry in json.loads(found[1])["questions"]}
    assert {name: (entry["outcome"], entry["error"]) for name, entry in shown.items()} == {
        "kept": ("error", "not redone: the key is refused"),
        "stopped": ("error", "no recording"),
        "never": ("left out", "not asked: the batch was stopped before"),
    }
    assert shown["kept"]["answer"] == "Graz"
    assert text.count("<svg") == 3  # of the one that ran


def test_the_quote_is_found_in_its_page(tmp_path: Path) -> None:
    text = made(tmp_path).read_text(encoding="utf-8")
    found = re.search(r'id="data">(.*?)</script>', text, re.S)
    assert found is not None
    data = json.loads(found[1])
    [citation] = data["questions"][1]["citations"]
    start, end = citation["span"]
    assert data["pages"][citation["page"]][start:end] == "It weighs 40 kg,\nas the plate"
    [noted] = data["questions"][0]["citations"]
    assert (citation["place"], noted["place"]) == ("a.pdf p. 3", "n.md § Pumps, line 7")


@pytest.mark.parametrize(
    ("quote", "text", "marked"),
    [
        ('see "Notes"', PAGE, "see “Notes”"),
        ("re-use of pumps", "the reuse\nof pumps", "reuse\nof pumps"),
        ("灯塔", PAGE, "灯塔"),
        ("not there", PAGE, None),
        ("", PAGE, None),
        ("(", PAGE, None),
    ],
)
def test_known_quotes(quote: str, text: str, marked: str | None) -> None:
    span = quote_span(quote, text)
    units = text.encode("utf-16-le")
    shown = None if span is None else units[2 * span[0] : 2 * span[1]].decode("utf-16-le")
    assert shown == marked


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.data())
def test_any_words_of_a_text_are_found_in_it(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    if text[start:end].split():
        assert quote_span(" ".join(text[start:end].split()), text) is not None


def test_a_run_is_told_as_its_searches_notes_pages_and_warnings() -> None:
    shown = [dict(entry) for entry in timeline(EVENTS) if isinstance(entry, Mapping)]
    assert [entry["kind"] for entry in shown] == [
        "search",
        "note",
        "pressure",
        "flush",
        "read",
        "nudge",
    ]
    assert shown[0]["label"] == "archival_memory_search (page 0)"
    assert shown[0]["detail"] == "pump — Showing 1 of 1"
    assert [entry["failed"] for entry in shown] == [False, True, False, False, False, False]


# -- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1400"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService("/usr/bin/chromedriver")
    driver = webdriver.Chrome(options=options, service=service)
    driver.get(made(tmp_path_factory.mktemp("report")).as_uri())
    yield driver
    driver.quit()


def ids(page: Any) -> list[str]:
    rows = page.find_elements("css selector", "tr.entry")
    return [str(entry.get_attribute("data-id")) for entry in rows]


def choose(page: Any, name: str, value: str) -> None:
    page.execute_script(
        "const field = document.querySelector(`[name=${arguments[0]}]`);"
        "field.value = arguments[1];"
        "field.dispatchEvent(new Event('input', {bubbles: true}));",
        name,
        value,
    )


@pytest.mark.browser
def test_it_opens_without_an_error(page: Any) -> None:
    assert page.title == "docpager batch"
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert ids(page) == ["q10", "q9", "hostile", "fault"]


@pytest.mark.browser
def test_a_heading_sorts_and_turns_the_order_around(page: Any) -> None:
    def press(name: str) -> None:
        for button in page.find_elements("css selector", "#questions th button"):
            if button.text.strip(" ↑↓") == name:
                button.click()

    press("seconds")
    assert ids(page) == ["q9", "q10", "fault", "hostile"]
    press("seconds")
    assert ids(page) == ["hostile", "fault", "q10", "q9"]
    press("id")
    assert ids(page) == ["fault", "hostile", "q9", "q10"]
    [sorted_by] = page.find_elements("css selector", "th[aria-sort]")
    assert sorted_by.get_attribute("aria-sort") == "ascending"


@pytest.mark.browser
def test_filters_narrow_the_table(page: Any) -> None:
    choose(page, "outcome", "passed")
    assert set(ids(page)) == {"q9", "q10"}
    choose(page, "tag", "places")
    assert ids(page) == ["q10"]
    assert page.find_element("id", "count").text == "1 of 4"
    choose(page, "outcome", "")
    choose(page, "tag", "")
    choose(page, "text", "KG")
    assert ids(page) == ["q9"]
    choose(page, "text", "")
    assert len(ids(page)) == 4


@pytest.mark.browser
def test_an_entry_opens_to_answer_quote_and_run(page: Any) -> None:
    entry = page.find_element("css selector", "tr.entry[data-id=q9]")
    entry.click()
    assert entry.get_attribute("aria-expanded") == "true"
    detail = page.find_element("css selector", "tr.detail")
    assert detail.find_element("class name", "answer").text == "40 kg"
    marked = detail.find_element("tag name", "mark").text
    assert " ".join(marked.split()) == "It weighs 40 kg, as the plate"
    assert len(detail.find_elements("css selector", "ol.timeline li")) == 6
    entry.send_keys("\ue007")
    assert page.find_elements("css selector", "tr.detail") == []


@pytest.mark.browser
def test_hostile_text_is_shown_and_does_nothing(page: Any) -> None:
    page.find_element("css selector", "tr.entry[data-id=hostile]").click()
    assert "</script>" in page.find_element("css selector", "tr.detail .answer").text
    assert page.title == "docpager batch"
