"""One repair for text that is none, and its effect wherever text comes in."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from docpager.unicode import has_lone_surrogate, repaired, repaired_json

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


@given(st.recursive(ANY_TEXT | st.integers(), lambda v: st.lists(v) | st.dictionaries(ANY_TEXT, v)))
def test_a_repaired_json_value_can_be_written(value: object) -> None:
    mended = repaired_json(value)
    json.dumps(mended, ensure_ascii=False).encode("utf-8")
    assert repaired_json(mended) == mended
