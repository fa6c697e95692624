"""JSON and JSON lines: every value with the path that leads to it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from docpager.documents.composing import Composer
from docpager.documents.outline import OutlinedDocument
from docpager.documents.text.reader import decode, read_text
from docpager.errors import DocumentError
from docpager.types import JSONValue

_GROUP_LINES = 12
"""Values of one object are kept together up to so many lines."""


def read_json(data: bytes) -> OutlinedDocument:
    """A line for each value, `path.to[0].key: value`; objects stand apart by blank lines.

    What is no JSON is read as JSON lines, and else as plain text, which is said.

    Raises:
        DocumentError: it is nested too deeply (`damaged`).
    """
    text, warnings = decode(data)
    composer = Composer("json")
    try:
        value = _load(text)
    except ValueError:
        first = next((line for line in text.splitlines() if line.strip()), "")
        if _is_record(first) and text.strip().count("\n"):
            return read_json_lines(data)
        return read_text(data, ("It is not valid JSON, and was read as plain text.",))
    for block in _blocks(value):
        composer.paragraph(block)
    return composer.document(warnings=warnings)


def read_json_lines(data: bytes) -> OutlinedDocument:
    """A section for each line, which is one JSON value; other lines are taken as they are."""
    text, warnings = decode(data)
    composer = Composer("jsonl")
    bad = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        composer.page(first_line=number)
        try:
            blocks = [*_blocks(_load(line))]
        except ValueError:
            bad += 1
            blocks = [line]
        for block in blocks:
            composer.paragraph(block)
    if bad:
        warnings = (*warnings, f"{bad} lines are not valid JSON, and were read as plain text.")
    return composer.document(warnings=warnings)


def _load(text: str) -> JSONValue:
    try:
        # Numbers stay as they are written: none is too long, and none is rounded.
        value: JSONValue = json.loads(
            text, parse_int=str, parse_float=str, parse_constant=str, strict=False
        )
    except RecursionError as error:
        raise _too_deep() from error
    return value


def _is_record(line: str) -> bool:
    try:
        return isinstance(_load(line), dict | list)
    except ValueError:
        return False


def _blocks(value: JSONValue) -> Iterator[str]:
    """Lines of values; a blank line before each object that follows another."""
    try:
        lines: list[str] = []
        for path, text, is_first in _leaves(value, "", new=True):
            if lines and (is_first or len(lines) >= _GROUP_LINES):
                yield "\n".join(lines)
                lines = []
            lines.append(f"{path}: {text}" if path else text)
        if lines:
            yield "\n".join(lines)
    except RecursionError as error:
        raise _too_deep() from error


def _leaves(value: JSONValue, path: str, *, new: bool) -> Iterator[tuple[str, str, bool]]:
    """Path and text of each value, and whether it is the first of an object in a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key), new=new)
            new = False
    elif isinstance(value, list):
        if all(not isinstance(inner, dict | list) for inner in value):
            yield path, ", ".join(map(_shown, value)), new
            return
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{number}]", new=True)
    else:
        yield path, _shown(value), new


def _shown(value: JSONValue) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _too_deep() -> DocumentError:
    return DocumentError(
        "damaged", "Its values are nested too deeply to be read. Flatten it, or leave it out."
    )
