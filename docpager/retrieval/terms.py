"""The terms of a text, which lexical search compares: words, identifiers, numbers, CJK pairs."""

from __future__ import annotations

import re
import unicodedata

from docpager.unicode import (
    COMPATIBILITY_IDEOGRAPHS,
    HANGUL_LETTERS,
    HANGUL_SYLLABLES,
    IDEOGRAPHIC_MARKS,
    IDEOGRAPHS,
    IDEOGRAPHS_EXTENSION_A,
    SUPPLEMENTARY_IDEOGRAPHS,
)

LONGEST_TERM = 256
"""Characters of a term that count; the rest is ignored."""

# Scripts that are cut into pairs of characters: no spaces separate their words, or, in Hangul, the
# words have endings.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
    # Kana without its two marks that separate words (U+30A0, U+30FB), with its extensions.
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001b000-\U0001b16f"
    f"{HANGUL_LETTERS}\ua960-\ua97f{HANGUL_SYLLABLES}\ud7b0-\ud7ff"
    f"{IDEOGRAPHIC_MARKS}{IDEOGRAPHS_EXTENSION_A}{IDEOGRAPHS}{COMPATIBILITY_IDEOGRAPHS}"
    f"{SUPPLEMENTARY_IDEOGRAPHS}"
)
# Vowel signs and accents that stand apart from their letter, which `\w` leaves out.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0903"
    "\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7\u0a01-\u0a51\u0a81-\u0acd"
    "\u0b01-\u0b57\u0b82-\u0bcd\u0c00-\u0c56\u0c81-\u0cd6\u0d00-\u0d57\u0d81-\u0ddf"
)
_WORD = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])+"
_JOINED = re.compile(rf"{_WORD}(?:[-_.,:/@'&]{_WORD})*|[{_UNSPACED}]+")
_JOINED_ASCII = re.compile(r"[^\W_]+(?:[-_.,:/@'&][^\W_]+)*", re.ASCII)
"""What `_JOINED` is for ASCII text, three times as fast."""
_PART = re.compile(_WORD)
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_GROUPED_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u2019": "'",
        # Invisible: soft hyphen, zero-width space and joiners, byte-order mark.
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", None),
    }
)


def terms(text: str) -> list[str]:
    """The terms of `text`, in order, repeats kept: words, identifiers whole and in parts, pairs.

    Case and compatibility forms of characters make no difference (NFKC, case folding). There are
    no stop words: what is common weighs little by its idf, and a name may consist of such words.

        >>> terms("The ABC-123_x costs 1,234.50")
        ['the', 'abc-123_x', 'abc', '123', 'x', 'costs', '1,234.50', '1', '234', '50', '1234.50']
        >>> terms("数据库 is 库")
        ['数据', '据库', 'is', '库']
    """
    return [term for word in _words(text) for term in _terms_of(word)]


def _words(text: str) -> list[str]:
    """Folded words, among which some are several terms."""
    if text.isascii():  # of all that folding does, only capitals are left
        return _JOINED_ASCII.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text).translate(_SAME).casefold()
    return (_JOINED_ASCII if folded.isascii() else _JOINED).findall(folded)


def _terms_of(word: str) -> list[str]:
    if word.isascii() and word.isalnum():
        return [word[:LONGEST_TERM]]
    if _IS_UNSPACED.match(word):
        return _pairs(word)
    return _whole_and_parts(word)


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]


def _whole_and_parts(word: str) -> list[str]:
    parts = [part[:LONGEST_TERM] for part in _PART.findall(word)]
    if len(parts) == 1:
        return parts
    if _GROUPED_NUMBER.fullmatch(word):
        parts.append(word.replace(",", "")[:LONGEST_TERM])
    return [word[:LONGEST_TERM], *parts]


def distinct(query: str) -> list[str]:
    """The different terms of a query, sorted: the order in which scores are added up."""
    return sorted(set(terms(query)))
