"""Recall: lossless, searched by text and by whole days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.errors import FunctionError, UserError
from docpager.function_results import PlainText
from docpager.memory.recall import RecallEntry, parse_moment, search_recall
from docpager.memory.session import Session, session_path
from docpager.memory.working_context import WorkingContextVersion
from docpager.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from docpager.testing import FrozenClock, HashEmbedder


def entry(number: int, text: str, day: int = 1, hour: int = 12) -> RecallEntry:
    at = datetime(2026, 3, day, hour, tzinfo=UTC)
    return RecallEntry(number, "r", at, "user", "question", text)


def test_the_end_day_of_a_range_is_within_it() -> None:
    entries = [entry(1, "a", 1), entry(2, "b", 2, 23), entry(3, "c", 3, 0)]
    start, end = parse_moment("2026-03-01", end=False), parse_moment("2026-03-02", end=True)
    assert [e.number for e in search_recall(entries, "", start, end)] == [1, 2]


def test_the_whole_phrase_comes_before_single_words_and_newer_before_older() -> None:
    entries = [
        entry(1, "the mill pond"),
        entry(2, "pond and mill"),
        entry(3, "a mill"),
        entry(4, "nothing"),
        entry(5, "a pond, a mill"),
    ]
    assert [e.number for e in search_recall(entries, "Mill Pond", None, None)] == [1, 5, 2, 3]


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "03/04/2026"])
def test_a_wrong_date_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(FunctionError, match="YYYY-MM-DD"):
        parse_moment(text, end=False)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2099, 1, 1)))
def test_every_moment_of_a_day_lies_between_its_two_ends(moment: datetime) -> None:
    at = moment.replace(tzinfo=UTC)
    day = at.date().isoformat()
    start, end = parse_moment(day, end=False), parse_moment(day, end=True)
    assert start is not None
    assert end is not None
    assert start <= at <= end
    assert end - start == timedelta(days=1, microseconds=-1)


def test_a_session_kept_in_a_file_comes_back_whole(tmp_path) -> None:
    path = session_path(tmp_path / "sessions", "work")
    clock = FrozenClock()
    embedder = HashEmbedder()
    with Session.open(path, clock, wait_s=1.0) as session:
        session.begin("run1")
        session.record(
            [
                UserMessage("why?"),
                AssistantMessage("", (ToolCall("c", "archival_memory_search", '{"query": "x"}'),)),
                ToolResult("c", "archival_memory_search", PlainText("Showing 0 of 0\ud800")),
            ]
        )
        session.insert("a note", embedder.embed(["a note"])[0])
        session.mark_shown(["P1", "P2", "P1"])
        session.keep_version(WorkingContextVersion(notes="fact"))
        session.keep_summary("old")
        session.keep_summary("new")
        before = session
    with Session.open(path, clock, wait_s=1.0) as session:
        assert [e.number for e in session.entries] == [1, 2, 3]
        assert [e.text for e in session.entries[:2]] == [e.text for e in before.entries[:2]]
        assert session.inserts == before.inserts
        assert session.shown == {"P1", "P2"}
        assert session.versions == before.versions
        assert session.summary == "new"
        [scored] = session.insert_similarities(embedder.embed(["a note"])[0])
        assert scored.score == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 65, "a\nb"])
def test_a_session_name_cannot_leave_its_folder(tmp_path, name: str) -> None:
    with pytest.raises(UserError, match="cannot name a session"):
        session_path(tmp_path, name)
