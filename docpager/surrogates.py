"""Lone surrogates, which are no text: no store, file or endpoint takes a string that holds one.

They come out of file names that are no UTF-8, of JSON that spells them (`\\ud800`), and of damaged
documents. Whatever lets them in repairs them with `repaired`, so that all of docpager shows the
same mark for the same damage.
"""

from __future__ import annotations

import re
from typing import Any

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


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
