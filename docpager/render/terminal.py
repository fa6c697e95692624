"""Standard output and standard error: answers and JSON on the one, all else on the other."""

from __future__ import annotations

import json
import shutil
import sys
import unicodedata
from collections.abc import Mapping

import click

from docpager.types import (
    JSONValue,
)


def write(text: str) -> None:
    """Put a result on standard output, as it is."""
    click.echo(text, color=False)


def say(text: str) -> None:
    """Put a message on standard error."""
    click.echo(printable(text), err=True, color=False)


def write_json(record: Mapping[str, JSONValue]) -> None:
    """Put one JSON object on one line of standard output."""
    write(json.dumps(record, ensure_ascii=False, allow_nan=False))


def printable(text: str) -> str:
    """`text` without what could steer a terminal; line breaks and tabs stay."""
    return "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs")
    )


def wrap(text: str, indent: str = "") -> str:
    """`text` broken at the terminal's width; its own lines where standard output is none."""
    if not sys.stdout.isatty():
        return "\n".join(indent + line for line in text.split("\n"))
    from rich.console import Console
    from rich.text import Text

    width = max(20, min(shutil.get_terminal_size().columns, 100) - len(indent))
    # rich knows that a Chinese character takes two columns.
    console = Console(width=width, color_system=None)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        wrapped = Text(paragraph).wrap(console, width)
        lines += [line.plain.rstrip() for line in wrapped] or [""]
    return "\n".join(indent + line for line in lines)


def fitted(line: str) -> str:
    """`line` cut at the terminal's width; whole where standard output is none."""
    if not sys.stdout.isatty():
        return line
    from rich.text import Text

    fitted = Text(line)
    fitted.truncate(shutil.get_terminal_size().columns, overflow="ellipsis")
    return fitted.plain


def plural(count: int, word: str) -> str:
    """`word` as it stands behind `count`."""
    return word if count == 1 else f"{word}s"
