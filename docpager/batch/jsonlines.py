"""The objects of a JSON Lines file, read strictly: what cannot be written again is refused.

Messages say what is wrong in words that fit behind `FILE:LINE: `.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from docpager.types import JSONValue
from docpager.unicode import repaired_json

if TYPE_CHECKING:
    from pydantic import ValidationError

_SURELY_SHALLOW = 200
"""Levels of nesting that `json` writes and `repaired_json` walks without a RecursionError."""


def decoded_object(line: bytes) -> dict[str, JSONValue]:
    """The object that `line` holds, its lone surrogates repaired.

    Raises:
        ValueError: the line holds no object; the text says why.
    """
    try:
        text = line.decode("utf-8")
        given = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
        # The walk costs as much as parsing, so a line that cannot need it is spared it: a lone
        # surrogate must have been escaped, and no value is nested deeper than it has brackets.
        if "\\u" in text or text.count("[") + text.count("{") > _SURELY_SHALLOW:
            given = repaired_json(given)
    except UnicodeDecodeError:
        raise ValueError("the line is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the line is no JSON ({error.msg}, column {error.colno})") from None
    except RecursionError:
        raise ValueError("the line is nested too deeply") from None
    if not isinstance(given, dict):
        raise ValueError("the line is no JSON object")
    return given


def first_problem(error: ValidationError) -> str:
    """The first problem that validation found in an object, in words."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the line"
    if first["type"] == "missing":
        return f"the key {place!r} is missing"
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message[:1].lower()}{message[1:]}"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number
