"""What a person wants left out of a folder: `--include`, `--exclude` and `.docpagerignore`.

All of them are in gitignore syntax. pathspec turns patterns into matches; what wins is decided
here, as git does: the file nearest to an entry decides, in it the last pattern that fits.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec

from docpager.errors import UserError

FILE_NAME = ".docpagerignore"
"""Read in every folder that is walked; its patterns hold from that folder down."""
LARGEST = 1 << 20
"""Bytes of such a file that are read."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """Patterns that hold from a folder down, the last that fits deciding."""

    depth: int
    """How many components of a path are that folder's own."""
    spec: GitIgnoreSpec

    def ignores(self, parts: Sequence[str], is_folder: bool) -> bool | None:
        """Whether an entry is to be left out; None where no pattern says anything of it."""
        path = "/".join(parts[self.depth :]) + ("/" if is_folder else "")
        return self.spec.check_file(path).include


def read_patterns(path: str, depth: int) -> Patterns:
    """The patterns of an ignore file.

    Raises:
        UserError: a line is no pattern.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:  # noqa: PTH123 - names that are no text must match bytes
        # Bytes that are no UTF-8 become what they become in the names of files.
        lines = os.fsdecode(file.read(LARGEST)).splitlines()
    return Patterns(depth, _spec(lines, path))


def ignored(stack: Iterable[Patterns], parts: Sequence[str], is_folder: bool) -> bool:
    """Whether the nearest of `stack` (the outermost first) that knows the entry leaves it out."""
    for patterns in reversed(tuple(stack)):
        verdict = patterns.ignores(parts, is_folder)
        if verdict is not None:
            return verdict
    return False


class PathFilter:
    """What `--include` and `--exclude` leave of a folder; patterns hold from that folder down."""

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._include = _spec(include, "--include") if include else None
        self._exclude = _spec(exclude, "--exclude") if exclude else None

    def leaves_out(self, parts: Sequence[str], is_folder: bool) -> bool:
        """Whether an entry is excluded, or is a file where only others are included."""
        path = "/".join(parts) + ("/" if is_folder else "")
        if self._exclude is not None and self._exclude.check_file(path).include:
            return True
        if self._include is None or is_folder:
            return False
        return not self._include.check_file(path).include


def _spec(lines: Sequence[str], source: str) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise UserError(f"{source} holds no pattern: {error}. Correct it.") from error
