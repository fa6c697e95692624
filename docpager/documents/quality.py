"""Whether the text of a page can be what is printed on it."""

from __future__ import annotations

import re
import unicodedata

_GLYPH_NAME = re.compile(r"\(cid:\d+\)|/(?:g|G|uni|cid|c)\d{1,5}\b")
_LETTER_RUN = re.compile(r"[^\W\d_]+")
_VOWELS = frozenset("aeiouy")
_FEW = 20
"""Under so many letters nothing is said."""


def looks_garbled(text: str) -> bool:
    """Whether text shows the marks of a font without a usable mapping to characters.

    These are glyph names, characters without a meaning, Latin text almost without vowels, and
    words that are pulled apart into single letters.
    """
    ink = len(text) - sum(map(str.isspace, text))
    if ink < _FEW:
        return False
    if sum(map(len, _GLYPH_NAME.findall(text))) > ink * 0.2:
        return True
    if sum(map(_means_nothing, text)) > ink * 0.05:
        return True
    latin = [word for word in _LETTER_RUN.findall(text) if word[0] < "\u0250"]
    letters = sum(map(len, latin))
    if letters < _FEW or letters < ink * 0.4:
        return False
    if sum(len(word) == 1 for word in latin) > len(latin) * 0.6:
        return True
    bare = unicodedata.normalize("NFD", "".join(latin)).lower()
    return sum(letter in _VOWELS for letter in bare) < letters * 0.12


def _means_nothing(character: str) -> bool:
    # What is not assigned, for private use, or stands for what could not be decoded.
    return character == "\ufffd" or unicodedata.category(character) in {"Co", "Cn", "Cs"}
