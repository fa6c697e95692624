"""Characters: their named ranges, those that others refuse (lone surrogates, and what XML cannot
hold), and how a text is shortened to so many of them. Limits in tokens are a `TokenCounter`'s.

No store, file or endpoint takes a string that holds a lone surrogate.

They come out of file names that are no UTF-8, of JSON that spells them (`\\ud800`), and of damaged
documents. Whatever lets them in repairs them with `repaired`, so that all of docpager shows the
same mark for the same damage.
"""

from __future__ import annotations

import re
from typing import Any

# Ranges to compose a character class from: each user names the ones that it needs.
IDEOGRAPHIC_MARKS = "\u3005-\u3007"
"""The repeat mark, the closing mark and the number zero, which stand within words."""
KANA = "\u3040-\u30ff"
IDEOGRAPHS_EXTENSION_A = "\u3400-\u4dbf"
IDEOGRAPHS = "\u4e00-\u9fff"
HANGUL_LETTERS = "\u1100-\u11ff"
"""Those of which syllables are composed."""
HANGUL_SYLLABLES = "\uac00-\ud7af"
COMPATIBILITY_IDEOGRAPHS = "\uf900-\ufaff"
SUPPLEMENTARY_IDEOGRAPHS = "\U00020000-\U0003ffff"
"""Two planes: extensions B and later, and what is still free for further ones."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def shortened(text: str, limit: int) -> str:
    """The beginning of `text` in at most `limit` characters; the last one is `…` if it was cut.

    >>> shortened("A sentence.", 5), shortened("Short", 5)
    ('A se…', 'Short')
    """
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def repaired(text: str) -> str:
    """`text` with U+FFFD for each lone surrogate; its length stays, so offsets stay true."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def repaired_json(value: Any) -> Any:
    """A JSON value with all its strings repaired, those that are keys too."""
    if isinstance(value, str):
        return repaired(value)
    if isinstance(value, list):
        return [repaired_json(item) for item in value]
    if isinstance(value, dict):
        return {repaired(name): repaired_json(item) for name, item in value.items()}
    return value


def has_lone_surrogate(text: str) -> bool:
    """Whether `text` cannot be written as UTF-8."""
    return not text.isascii() and _LONE_SURROGATE.search(text) is not None


def legal_xml(text: str) -> str:
    """`text` without the characters that XML 1.0 has no way to hold."""
    return _NOT_IN_XML.sub("", text)
