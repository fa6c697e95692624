"""Text is repaired once, before any offset is taken, so that stored offsets stay true."""

from __future__ import annotations

import re
import unicodedata

from docpager.unicode import repaired

_NEWLINES = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Control characters but for tab and line feed; byte order marks inside a text; soft hyphens;
# and the two noncharacters at the end of the first plane. None of them has a glyph.
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\ufeff\ufffe\uffff]")

_JOINER = "\u200d"


def clean(text: str) -> str:
    """The text in NFC, with `\\n` line ends, storable as UTF-8, without control characters.

    Cleaning the lines of a text one by one and joining them gives the same as cleaning the text.
    """
    text = _NEWLINES.sub("\n", text)
    text = repaired(text)
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", text))


def struck_once(text: str) -> str:
    """The text of a printer that went back by `\\b` and struck again, each place with one letter.

    A letter that is struck twice was bold, one with `_` underlined: the letter stays. Else what was
    struck last stays.
    """
    if "\b" not in text:
        return text
    return "\n".join(_line_struck_once(line) if "\b" in line else line for line in text.split("\n"))


def _line_struck_once(line: str) -> str:
    places: list[str] = []
    at = 0
    for character in line:
        if character == "\b":
            at = max(0, at - 1)
            continue
        if at == len(places):
            places.append(character)
        elif character not in "_ ":
            places[at] = character
        at += 1
    return "".join(places)


def one_line(text: str) -> str:
    """The text cleaned, with every run of white space as one space: for titles and headings."""
    return " ".join(clean(text).split())


def whole_character_end(text: str, start: int, end: int) -> int:
    """The last place up to `end` where a cut leaves no accent or joiner without its letter.

    It is after `start`, so that cutting goes on even through a text of nothing but accents.
    """
    cut = end
    while cut > start and cut < len(text) and _joins(text[cut - 1], text[cut]):
        cut -= 1
    return cut if cut > start else end


def _joins(before: str, after: str) -> bool:
    return (
        unicodedata.category(after).startswith("M")
        or _JOINER in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
    )
