"""One repair for text that is none, and its effect wherever text comes in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from docpager.surrogates import has_lone_surrogate, repaired

ANY_TEXT = st.text(st.characters(codec=None, categories=None))


@given(ANY_TEXT)
def test_repaired_text_can_be_written_and_keeps_its_length(text: str) -> None:
    mended = repaired(text)
    mended.encode("utf-8")
    assert len(mended) == len(text) and not has_lone_surrogate(mended)
    assert (mended == text) is not has_lone_surrogate(text)


@given(ANY_TEXT)
def test_repairing_twice_changes_nothing_more(text: str) -> None:
    assert repaired(repaired(text)) == repaired(text)
