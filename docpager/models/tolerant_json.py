"""JSON objects out of what a model wrote: strict JSON first, then what can be read tolerantly.

Prose and fences around an object, single quotes, trailing commas, Python's literals and line ends
in strings are accepted. What an object means, `tool_modes` decides.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any


def json_objects(text: str, complete: bool) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, in order, inner ones only where the outer could not be read."""
    at = text.find("{")
    attempts = 0
    while at != -1 and attempts < _MOST_ATTEMPTS:
        attempts += 1
        found = _object_at(text, at, complete)
        if found is None:
            at = text.find("{", at + 1)
            continue
        value, end = found
        yield value
        at = text.find("{", end)


_MOST_ATTEMPTS = 64
"""Places in a reply where an object is looked for: a text of braces must not take for ever."""
LONGEST = 50_000
"""Characters of a reply that are looked at; several times what any reply reserve allows."""


def _object_at(text: str, at: int, complete: bool) -> tuple[dict[str, Any], int] | None:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        try:
            value, end = _TolerantReader(text, at, complete).value()
        except ValueError:
            return None
    return (value, end) if isinstance(value, dict) else None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
_BARE = re.compile(r"[+-]?\w[\w.+-]*")
_WORDS = {"true": True, "false": False, "null": None, "none": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_DEEPEST = 24


class _TolerantReader:
    """Reads a JSON value as a careless writer writes it; raises ValueError where it cannot."""

    def __init__(self, text: str, at: int, complete: bool) -> None:
        self._text = text
        self._at = at
        self._complete = complete

    def value(self, depth: int = 0) -> tuple[Any, int]:
        """The value that begins here, and where it ends."""
        return self._value(depth), self._at

    def _value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        match self._peek():
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"' | "'":
                return self._string()
            case _:
                return self._bare()

    def _object(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        self._at += 1
        while not self._ends("}"):
            key = self._string() if self._peek() in "\"'" else str(self._word())
            if self._peek() != ":":
                raise ValueError("no colon after a key")
            self._at += 1
            items[key] = self._value(depth + 1)
            self._skip_comma("}")
        return items

    def _array(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self._at += 1
        while not self._ends("]"):
            items.append(self._value(depth + 1))
            self._skip_comma("]")
        return items

    def _ends(self, closing: str) -> bool:
        """Whether the object or list ends here, by its bracket or by the end of the text."""
        self._skip_blanks()
        if self._at >= len(self._text) and self._complete:
            return True
        if self._peek() != closing:
            return False
        self._at += 1
        return True

    def _skip_comma(self, closing: str) -> None:
        self._skip_blanks()
        following = self._text[self._at : self._at + 1]
        if following == ",":
            self._at += 1
        elif following not in ("", closing):
            raise ValueError("no comma between items")

    def _string(self) -> str:
        quote = self._text[self._at]
        self._at += 1
        characters: list[str] = []
        while True:
            character = self._next()
            if character == "\\":
                characters.append(self._escape())
            elif character == quote and self._closes():
                return "".join(characters)
            else:
                characters.append(character)

    def _closes(self) -> bool:
        """Whether the quote just read ends the string: an apostrophe or a quoted word does not."""
        following = self._text[self._at : self._at + 64].lstrip()
        return not following or following[0] in ",:}]"

    def _escape(self) -> str:
        character = self._next()
        if character != "u":
            return _ESCAPES.get(character, character)
        digits = self._text[self._at : self._at + 4]
        if not re.fullmatch("[0-9a-fA-F]{4}", digits):
            return "u"
        self._at += 4
        return chr(int(digits, 16))

    def _bare(self) -> Any:
        word = self._word()
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        number = float(word)
        if not math.isfinite(number):
            raise ValueError("no finite number")
        return int(number) if re.fullmatch(r"[+-]?\d{1,15}", word) else number

    def _word(self) -> str:
        found = _BARE.match(self._text, self._at)
        if found is None:
            raise ValueError("no value")
        self._at = found.end()
        return found.group()

    def _peek(self) -> str:
        """The next character that is not blank, which is not taken."""
        self._skip_blanks()
        if self._at >= len(self._text):
            raise ValueError("unfinished")
        return self._text[self._at]

    def _skip_blanks(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise ValueError("unfinished")
        self._at += 1
        return self._text[self._at - 1]
