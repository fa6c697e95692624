"""A file's format is told by its first bytes, then by its content, then by its name."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal

Format = Literal["pdf", "text", "markdown"]

HEAD_BYTES = 4096
"""How much of a file's beginning `detect` wants to see."""

_BY_SUFFIX: dict[str, Format] = {
    ".pdf": "pdf",
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
}
# Readers look for the mark within the first 1,024 bytes: some files carry an HTTP head before it.
_PDF_MARK_WITHIN = 1024
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_BINARY_MAGIC = (
    b"PK\x03\x04",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"\x7fELF",
    b"\xd0\xcf\x11\xe0",
    b"\x1f\x8b",
    b"BZh",
    b"7z\xbc\xaf",
    b"Rar!",
    b"MZ\x90",
    b"SQLite format 3",
)


def by_name(name: str) -> Format | None:
    """The format that a file's name claims, None where the name claims no known one."""
    return _BY_SUFFIX.get(PurePath(name).suffix.lower())


def detect(name: str, head: bytes) -> Format | None:
    """The format of a file of that name that begins with `head`; None where docpager reads none.

    A PDF under a wrong name is a PDF. A file without an extension is text if it looks like text;
    other unknown extensions are left alone, whatever is in them.
    """
    if b"%PDF-" in head[:_PDF_MARK_WITHIN]:
        return "pdf"
    claimed = by_name(name)
    if claimed is None and not PurePath(name).suffix and looks_like_text(head):
        return "text"
    return claimed


def looks_like_text(head: bytes) -> bool:
    """Whether bytes are UTF-8 (or carry a byte order mark) and hold no control characters."""
    if head.startswith(_BOMS):
        return True
    if not head or looks_binary(head):
        return False
    try:
        head[:-4].decode("utf-8") if len(head) > 4 else head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The head may end inside a character; anywhere else the bytes are no UTF-8.
        return error.start >= len(head) - 8
    return True


def looks_binary(head: bytes) -> bool:
    """Whether bytes are an image, an archive, a program: nothing that a charset explains."""
    if head.startswith(_BINARY_MAGIC):
        return True
    if head.startswith(_BOMS) or looks_like_utf16(head):
        return False
    controls = sum(byte < 32 and byte not in b"\t\n\r\x0b\x0c\x1b" for byte in head)
    return controls > len(head) * 0.02


def looks_like_utf16(head: bytes) -> bool:
    """Whether every other byte, and only these, is mostly zero: UTF-16 of a Latin text."""
    pairs = len(head) // 2
    zeros = sorted((head[0::2].count(0), head[1::2].count(0)))
    return pairs > 1 and zeros[1] > pairs * 0.4 and zeros[0] < pairs * 0.1
