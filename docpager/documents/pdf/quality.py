"""Whether the text of a page can be what is printed on it, as a number and as a verdict."""

from __future__ import annotations

import re
import unicodedata

GARBLED_BELOW = 0.5
"""Pages whose quality is below this are flagged `garbled`."""

_GLYPH_NAME = re.compile(r"\(cid:\d+\)|/(?:g|G|uni|cid|c)\d{1,5}\b")
_LATIN_RUN = re.compile(r"[A-Za-z\u00aa-\u024f]+")
_MARK_INSIDE = re.compile(
    # No text has these inside a word. Those that code and addresses have are left out.
    r"[\xab\xbb*^~\xa5\u2022\u25a0&;!?$](?<=[^\W\d_].)(?=[^\W\d_])"
)
_PULLED_APART = re.compile(r"(?<!\S)(?:[^\W\d_]\s){4,}")
_VOWELS = "aeiouyAEIOUY"
_MEANINGLESS = frozenset({"Co", "Cn", "Cs"})
_FEW = 20
"""Under so many letters nothing is said."""
_FEW_WORDS = 30
_MARKED = 0.02
"""Of the words of a page: so many have marks inside in poor recognition, none in text."""


def ink(text: str) -> int:
    """How many characters of a text are not white space."""
    return len("".join(text.split()))


def quality(text: str) -> float:
    """How far a text is from what a font without a usable mapping, or a poor scan, gives.

    1.0 is text without a doubt; below 0.5 doubts are the likelier explanation. What is weighed:
    glyph names, characters without a meaning, Latin words without vowels, words pulled apart
    into letters, and words with marks inside that no word has.
    """
    bare = "".join(text.split())
    if len(bare) < _FEW:
        return 1.0
    doubts = (
        _doubt(_glyph_names(bare) / len(bare), 0.2),
        _doubt(_meaningless(bare) / len(bare), 0.05),
        _latin_doubt(text, bare),
        _doubt(_marks_inside(text), _MARKED),
    )
    return round(1.0 - max(doubts), 2)


def looks_garbled(text: str) -> bool:
    """Whether a text is more likely garbled than not."""
    return quality(text) < GARBLED_BELOW


def _doubt(value: float, limit: float) -> float:
    """From 0 to 1: more than a half as soon as `value` passes `limit`."""
    if value <= limit:
        return 0.5 * value / limit
    return min(1.0, 0.51 + 0.5 * (value - limit) / limit)


def _meaningless(bare: str) -> int:
    """Characters that are not assigned, for private use, or stand for what was not decoded."""
    if bare.isascii():
        return 0
    return sum(
        bare.count(character)
        for character in set(bare)
        if character == "\ufffd"
        or (not character.isprintable() and unicodedata.category(character) in _MEANINGLESS)
    )


def _glyph_names(bare: str) -> int:
    """Characters that belong to names of glyphs."""
    if bare.count("/") + bare.count("(cid") < len(bare) * 0.02:
        return 0
    return sum(map(len, _GLYPH_NAME.findall(bare)))


def _latin_doubt(text: str, bare: str) -> float:
    letters = "".join(_LATIN_RUN.findall(bare))
    if len(letters) < _FEW or len(letters) < len(bare) * 0.4:
        return 0.0
    pulled = 0
    if len(text) - len(bare) > len(bare) * 0.3:
        pulled = sum(len(run) // 2 for run in _PULLED_APART.findall(text))
    if not letters.isascii():
        letters = unicodedata.normalize("NFD", letters)
    vowels = sum(map(letters.count, _VOWELS)) / len(letters)
    return max(_doubt(pulled / len(letters), 0.6), _doubt(0.24 - min(vowels, 0.24), 0.12))


def _marks_inside(text: str) -> float:
    """The share of words that have marks inside them which words do not have."""
    marks = len(_MARK_INSIDE.findall(text))
    if not marks:
        return 0.0
    words = len(text.split())
    return marks / words if words >= _FEW_WORDS else 0.0
