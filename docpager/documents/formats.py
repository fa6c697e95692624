"""A file's format is told by its first bytes, then by its content, then by its name."""

from __future__ import annotations

import io
import re
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from docpager.errors import DocumentError

Format = Literal[
    "pdf",
    "text",
    "markdown",
    "html",
    "docx",
    "pptx",
    "xlsx",
    "odf",
    "epub",
    "rtf",
    "mail",
    "delimited",
    "json",
    "jsonl",
    "xml",
    "further",
]
"""`further` is what only the extra `docpager[unstructured]` reads."""

HEAD_BYTES = 4096
"""How much of a file's beginning `detect` wants to see."""

READ = (
    ".pdf, .docx, .pptx, .xlsx, .odt, .ods, .odp, .epub, .rtf, .html, .md, .txt, .eml, .csv, .tsv, "
    ".json, .jsonl and .xml"
)
"""What is read, in words."""

_SUFFIXES: dict[Format, str] = {
    "pdf": "pdf",
    "text": "txt text log rst org adoc asciidoc tex srt vtt",
    "markdown": "md markdown mdown mkd",
    "html": "html htm xhtml xht",
    "docx": "docx docm dotx dotm",
    "pptx": "pptx pptm ppsx ppsm potx potm",
    "xlsx": "xlsx xlsm xltx xltm",
    "odf": "odt ott ods ots odp otp fodt fods fodp",
    "epub": "epub",
    "rtf": "rtf",
    "mail": "eml mht mhtml",
    "delimited": "csv tsv tab",
    "json": "json",
    "jsonl": "jsonl ndjson",
    "xml": "xml nxml",
    "further": "doc dot ppt pps xls msg",
}
_BY_SUFFIX: dict[str, Format] = {
    f".{suffix}": kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}
_PACKAGED: frozenset[Format] = frozenset({"docx", "pptx", "xlsx", "odf", "epub"})
_WORDED: frozenset[Format] = frozenset(
    {"text", "markdown", "html", "mail", "delimited", "json", "jsonl", "xml"}
)
"""Formats that are text to the eye: a name alone can say which."""

# Readers look for the mark within the first 1,024 bytes: some files carry an HTTP head before it.
_PDF_MARK_WITHIN = 1024
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LOCKED_OFFICE = "EncryptedPackage".encode("utf-16-le")
_BINARY_MAGIC = (
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"\x7fELF",
    b"\xd0\xcf\x11\xe0",
    b"\x1f\x8b",
    b"BZh",
    b"7z\xbc\xaf",
    b"\xfd7zXZ",
    b"Rar!",
    b"MZ\x90",
    b"SQLite format 3",
)
_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*(?:<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>])",
    re.IGNORECASE | re.DOTALL,
)
_XML = re.compile(rb"\s*<\?xml\s")
_MAIL_HEADER = re.compile(
    rb"^(?:from|to|received|return-path|delivered-to|message-id|date|subject|mime-version|reply-to"
    rb"|x-[\w-]+|dkim-signature|content-type):",
    re.IGNORECASE | re.MULTILINE,
)
_PARTS: tuple[tuple[str, Format], ...] = (("word/", "docx"), ("ppt/", "pptx"), ("xl/", "xlsx"))
_MEDIA: tuple[tuple[bytes, Format], ...] = (
    (b"application/epub+zip", "epub"),
    (b"application/vnd.oasis.opendocument.text", "odf"),
    (b"application/vnd.oasis.opendocument.spreadsheet", "odf"),
    (b"application/vnd.oasis.opendocument.presentation", "odf"),
)
_SPOKEN: dict[Format, str] = {
    "docx": "Word",
    "pptx": "PowerPoint",
    "xlsx": "Excel",
    "odf": "OpenDocument",
    "html": "HTML",
    "pdf": "PDF",
    "rtf": "RTF",
    "xml": "XML",
    "epub": "EPUB",
}


@dataclass(frozen=True, slots=True)
class Identified:
    """What a file is, and what has to be said where its name says something else."""

    format: Format
    warning: str | None = None


def by_name(name: str) -> Format | None:
    """The format that a file's name claims, None where the name claims no known one."""
    return _BY_SUFFIX.get(PurePath(name).suffix.lower())


def detect(name: str, head: bytes) -> Format | None:
    """The format of a file of that name that begins with `head`; None where docpager reads none.

    A PDF under a wrong name is a PDF. A file without an extension is text if it looks like text;
    other unknown extensions are left alone, unless the first bytes are those of a document.
    """
    claimed = by_name(name)
    found = _by_magic(head, claimed)
    if found is not None:
        return found
    if claimed is None and not PurePath(name).suffix and looks_like_text(head):
        return "mail" if _looks_like_mail(head) else "text"
    return claimed


def identify(name: str, data: bytes) -> Identified:
    """The format of a whole file.

    Raises:
        DocumentError: it is `encrypted`, no document of the kind that its name claims
            (`not_a_document`), or of a format that docpager does not read.
    """
    claimed = by_name(name)
    head = data[:HEAD_BYTES]
    found = detect(name, head)
    if head.startswith(_OLE):
        _refuse_locked(data)
    elif head.startswith(_ZIP) and found != "pdf":
        found = _in_zip(data) or (None if claimed in _PACKAGED else found)
        if found is None:
            raise _no_document(name, "what is in its archive is no document of that kind")
    if found is None:
        raise DocumentError(
            "unsupported_format", f"docpager reads {READ} files. Convert it to one of them."
        )
    if found == claimed:
        _refuse_pretended(name, found, head)
    warning = None
    if claimed is not None and found != claimed:
        what = _SPOKEN.get(found, found)
        article = "an" if what[0] in "AEIHXaei" or what in {"RTF", "xlsx"} else "a"
        warning = (
            f"The name ends in {PurePath(name).suffix}, but {article} {what} file is in it: "
            "it was read as that."
        )
    return Identified(found, warning)


def _by_magic(head: bytes, claimed: Format | None) -> Format | None:
    start = head.find(b"%PDF-", 0, _PDF_MARK_WITHIN)
    # A text may speak of the mark.
    if start >= 0 and (claimed not in _WORDED or not head[:start].strip(b"\xef\xbb\xbf\r\n\t \0")):
        return "pdf"
    if head.startswith(_ZIP):
        return _in_zip_head(head) or (claimed if claimed in _PACKAGED else None)
    if head.lstrip(b"\xef\xbb\xbf\r\n\t ").startswith(b"{\\rtf"):
        return "rtf"
    if head.startswith(_OLE):
        return "further" if claimed is not None else None
    if claimed == "mail":
        return None
    plain = head.replace(b"\0", b"") if head.startswith(_BOMS[1:3]) else head
    plain = plain.lstrip(b"\xef\xbb\xbf\xff\xfe")
    if claimed != "xml" and _HTML.match(plain):
        return "html"
    # What is sent as data is often named so; only a text or a stranger is something else.
    if claimed in {"text", "pdf", "docx"} and _XML.match(plain):
        return "xml"
    return None


def _in_zip_head(head: bytes) -> Format | None:
    if head[30:38] == b"mimetype":
        for media, kind in _MEDIA:
            if head[38 : 38 + len(media) + 40].startswith(media):
                return kind
    head = head.replace(b"\\", b"/")
    if b"[Content_Types].xml" in head or b"_rels/.rels" in head:
        for part, kind in _PARTS:
            if part.encode() in head:
                return kind
    return None


def _in_zip(data: bytes) -> Format | None:
    """The format of an archive by the names of its parts; a broken one is told by its head."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            # Some tools of Windows write backslashes in them.
            names = [name.replace("\\", "/") for name in archive.namelist()]
            media = b""
            if "mimetype" in names:
                with archive.open("mimetype") as part:  # which may unpack to anything
                    media = part.read(100)
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, RuntimeError, KeyError):
        return _in_zip_head(data[:HEAD_BYTES])
    except (NotImplementedError, OverflowError):
        return _in_zip_head(data[:HEAD_BYTES])
    for kind_of_media, kind in _MEDIA:
        if media.strip().startswith(kind_of_media):
            return kind
    for beginning, kind in _PARTS:
        if any(name.lstrip("/").lower().startswith(beginning) for name in names):
            return kind
    if "META-INF/container.xml" in names:
        return "epub"
    return "odf" if "content.xml" in names else None


def _refuse_locked(data: bytes) -> None:
    if _LOCKED_OFFICE in data:
        raise DocumentError(
            "encrypted",
            "The file is encrypted. Save it without a password, then ingest it again.",
        )


def _refuse_pretended(name: str, claimed: Format, head: bytes) -> None:
    """A name alone does not make a PDF, a Word file or a spreadsheet."""
    if claimed in _WORDED or claimed == "further":
        return
    if claimed == "pdf":
        if b"%PDF-" not in head and not looks_binary(head):
            raise _no_document(
                name, "there is no PDF in the file: it may be a web page or an error message"
            )
    elif claimed == "rtf":
        if not head.lstrip(b"\xef\xbb\xbf\r\n\t ").startswith(b"{\\rtf"):
            raise _no_document(name, "the file does not begin as such files do")
    elif not head.startswith(_ZIP) and not head.lstrip().startswith(b"<"):
        raise _no_document(name, "the file is no archive, as such files are")


def _no_document(name: str, why: str) -> DocumentError:
    return DocumentError(
        "not_a_document",
        f"The name ends in {PurePath(name).suffix}, but {why}. Get it anew, or leave it out.",
    )


def _looks_like_mail(head: bytes) -> bool:
    found = {match[0].lower() for match in _MAIL_HEADER.finditer(head.split(b"\n\n")[0])}
    return bool(_MAIL_HEADER.match(head)) and len(found) >= 3


def looks_like_text(head: bytes) -> bool:
    """Whether bytes are UTF-8 (or carry a byte order mark) and hold no control characters."""
    if head.startswith(_BOMS):
        return True
    head = head[zeros_before_text(head) :]
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
    controls = sum(byte < 32 and byte not in b"\b\t\n\r\x0b\x0c\x1b" for byte in head)
    return controls > len(head) * 0.02


def looks_like_utf16(head: bytes) -> bool:
    """Whether bytes are UTF-16 without a byte order mark."""
    return unmarked_utf16(head) is not None


def unmarked_utf16(head: bytes) -> Literal["utf-16-le", "utf-16-be"] | None:
    """Which UTF-16 bytes without a byte order mark are in, None where they are not.

    Of a Latin text every other byte is zero; of others those of blanks, digits and line ends are,
    and all is made of assigned characters.
    """
    pairs = len(head) // 2
    big, little = head[0::2].count(0), head[1::2].count(0)
    most, least = max(big, little), min(big, little)
    if pairs > 1 and most > pairs * 0.4 and least < pairs * 0.1:
        return "utf-16-le" if little > big else "utf-16-be"
    if pairs < 2 or not most or most < pairs * 0.005 or looks_like_text(head.replace(b"\0", b"")):
        return None
    if _is_plausible(head[: pairs * 2].decode("utf-16-le", "replace")):
        return "utf-16-le"
    return "utf-16-be" if _is_plausible(head[: pairs * 2].decode("utf-16-be", "replace")) else None


def _is_plausible(text: str) -> bool:
    # What is cut at the end is no fault.
    odd = sum(map(_is_odd, text[:-1])) + _is_odd(text[-1]) * (len(text) * 2 < HEAD_BYTES)
    return odd <= len(text) * 0.005 and sum(map(str.isalnum, text)) > len(text) * 0.4


def _is_odd(character: str) -> bool:
    return character == "\ufffd" or (
        unicodedata.category(character)[0] == "C" and character not in "\t\n\r\f\u200b\ufeff"
    )


def zeros_before_text(data: bytes) -> int:
    """The length of a run of zero bytes at the beginning, 0 where it is short: logs that were cut
    off while they were written begin so.

    The zero that begins a text in UTF-16 is not counted.
    """
    if not data.startswith(bytes(8)):
        return 0
    zeros = len(data) - len(data.lstrip(b"\0"))
    return zeros - 1 if zeros % 2 and data[zeros + 1 : zeros + 2] == b"\0" else zeros
