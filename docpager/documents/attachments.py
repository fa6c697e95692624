"""A file can hold others: what is attached to it becomes documents below its name.

`corpus/mail.eml` with a report attached gives `corpus/mail.eml` and `corpus/mail.eml/report.pdf`.
No file can have a name below that of another file, so names alone say what is attached to what.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from docpager.documents.text.normalise import one_line

_PARTS = re.compile(r"[/\\]")
_NAME_LIMIT = 120
_UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069]")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file inside a file, as a loader hands it on: any name, any bytes."""

    name: str
    """As the file that holds it gives it; empty where it gives none."""
    data: bytes


@dataclass(frozen=True, slots=True)
class AttachmentLimits:
    """How much of what is attached to one file is read; what is beyond is named in a warning."""

    count: int = 200
    total_bytes: int = 256 << 20
    depth: int = 3
    """1: attachments of the file; 2: attachments of these as well; …"""


def attached_to(names: Collection[str], files: Iterable[str] = ()) -> dict[str, str]:
    """Of each document that is attached to another, the name of the file that holds it all.

    `files` are names of files that may have no document yet.
    """
    known = frozenset(names).union(files)
    held: dict[str, str] = {}
    for name in names:
        end = name.find("/")
        while end >= 0:
            if name[:end] in known:
                held[name] = name[:end]
                break
            end = name.find("/", end + 1)
    return held


def with_attachments(names: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """The names, each followed by those of what is attached to it."""
    chosen = dict.fromkeys(names)
    holders = attached_to(known)
    children: dict[str, list[str]] = {}
    for name, holder in sorted(holders.items()):
        children.setdefault(holder, []).append(name)
    every = (one for name in chosen for one in (name, *children.get(name, ())))
    return tuple(dict.fromkeys(every))


def place_name(name: str, taken: Collection[str]) -> str:
    """One component of a document's name, made of what a file calls its attachment.

    Folders, control characters and what would lead elsewhere are taken out of it; it differs
    from all that are `taken`.
    """
    last = one_line(_UNSEEN.sub("", _PARTS.split(name)[-1])).strip(". ") or "attachment"
    stem, suffix = _stem_and_suffix(last)
    stem = stem[: _NAME_LIMIT - len(suffix)]
    given, number = f"{stem}{suffix}", 1
    while given in taken:
        number += 1
        given = f"{stem}~{number}{suffix}"
    return given


def _stem_and_suffix(name: str) -> tuple[str, str]:
    suffix = PurePosixPath(name).suffix
    if not suffix or len(suffix) > 12:
        return name, ""
    return name[: -len(suffix)], suffix
