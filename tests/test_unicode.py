"""One repair for text that is none, and its effect wherever text comes in."""

from __future__ import annotations

import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.retrieval import terms
from docpager.unicode import (
    COMPATIBILITY_IDEOGRAPHS,
    HANGUL_LETTERS,
    HANGUL_SYLLABLES,
    IDEOGRAPHIC_MARKS,
    IDEOGRAPHS,
    IDEOGRAPHS_EXTENSION_A,
    KANA,
    has_lone_surrogate,
    repaired,
    repaired_json,
    shortened,
)

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


@given(ANY_TEXT, st.integers(1, 40))
def test_a_shortened_text_is_within_the_limit_and_says_so_only_if_it_was_cut(
    text: str, limit: int
) -> None:
    short = shortened(text, limit)
    assert len(short) <= limit
    assert (short == text) if len(text) <= limit else text.startswith(short[:-1])
    assert (short[-1:] == "…") or len(text) <= limit


_WORDS = KANA + IDEOGRAPHS_EXTENSION_A + IDEOGRAPHS + HANGUL_SYLLABLES


@pytest.mark.parametrize(
    ("composed", "spelled_out"),
    [
        # questions of guided mode
        (_WORDS, r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"),
        # citations
        (
            _WORDS + COMPATIBILITY_IDEOGRAPHS,
            r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff",
        ),
        # scoring
        (
            IDEOGRAPHIC_MARKS + _WORDS + COMPATIBILITY_IDEOGRAPHS,
            r"\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff",
        ),
        # terms
        (
            terms._UNSPACED,
            r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u309f"
            r"\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
            r"\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff",
        ),
        # tables
        (HANGUL_LETTERS + r"\u2e80-\uffdc", r"\u1100-\u11ff\u2e80-\uffdc"),
    ],
)
def test_named_ranges_compose_the_sets_that_each_user_had(composed: str, spelled_out: str) -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert re.findall(f"[{composed}]", everything) == re.findall(f"[{spelled_out}]", everything)


def test_every_ideograph_is_a_letter_so_that_a_report_finds_quotes_by_their_letters() -> None:
    assert re.fullmatch(f"[{IDEOGRAPHS}]+", ideographs := "".join(map(chr, range(0x4E00, 0xA000))))
    assert ideographs.isalnum()
