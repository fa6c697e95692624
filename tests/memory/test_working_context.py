"""Working context: bounded, versioned, and refusing with advice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.errors import FunctionError
from docpager.memory.working_context import WorkingContext


def context(limit: int = 40) -> WorkingContext:
    return WorkingContext(limit=limit, count=lambda text: len(text.split()))


def test_an_edit_that_does_not_fit_is_refused_with_both_sizes_and_changes_nothing() -> None:
    notes = context(limit=3)
    notes.append("notes", "one two")
    with pytest.raises(
        FunctionError, match=r"holds 3 tokens and would need 5.*core_memory_replace"
    ):
        notes.append("notes", "three four five")
    assert notes.current.notes == "one two"


def test_replace_wants_exactly_one_occurrence() -> None:
    notes = context()
    notes.append("notes", "mill mill")
    for old in ("mill", "lock", ""):
        with pytest.raises(FunctionError, match="exactly once"):
            notes.replace("notes", old, "x")
    notes.replace("notes", "mill mill", "")
    assert notes.current.notes == ""


def test_an_unknown_section_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FunctionError, match="persona, user, notes"):
        context().append("plans", "x")


def test_a_line_is_kept_once() -> None:
    notes = context()
    notes.append("notes", "a fact")
    with pytest.raises(FunctionError, match="already holds"):
        notes.append("notes", " a fact ")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["persona", "user", "notes"]),
            st.text(st.sampled_from("ab \n"), max_size=30),
        ),
        max_size=12,
    )
)
def test_every_edit_keeps_the_version_before_it_and_the_limit_holds(
    edits: list[tuple[str, str]],
) -> None:
    kept = []
    notes = WorkingContext(limit=9, count=lambda text: len(text.split()), on_edit=kept.append)
    for section, content in edits:
        before = notes.versions
        try:
            notes.append(section, content)
        except FunctionError:
            assert notes.versions == before
        else:
            assert notes.versions[:-1] == before
        assert notes.used <= notes.limit
    assert tuple(kept) == notes.versions[1:]


def test_undo_goes_back_to_what_was_and_says_when_there_is_nothing() -> None:
    notes = context()
    assert not notes.undo()
    notes.append("notes", "a")
    notes.append("notes", "b")
    assert notes.undo()
    assert notes.current.notes == "a"


def test_notes_from_a_larger_window_lose_their_oldest_lines() -> None:
    large = context(limit=40)
    for number in range(6):
        large.append("notes", f"fact {number}")
    small = WorkingContext(limit=5, count=lambda text: len(text.split()), versions=large.versions)
    small.fit()
    assert small.current.notes == "fact 4\nfact 5"
