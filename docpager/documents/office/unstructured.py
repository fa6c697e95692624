"""What only the extra `docpager[unstructured]` reads: old Excel files and Outlook's messages.

The library wants a language model for sentences, which it would fetch, to tell titles from prose;
here it gets the rule of thumb that spaCy brings along, and nothing is fetched.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from docpager.documents.attachments import Attachment
from docpager.documents.composing import Composer
from docpager.documents.office.packages import encrypted
from docpager.documents.outline import OutlinedDocument
from docpager.documents.web.html import HtmlPage
from docpager.errors import DocumentError

_SILENCE = {
    "DO_NOT_TRACK": "true",
    "SCARF_NO_ANALYTICS": "true",
    "UNSTRUCTURED_DISABLE_NOTICE": "true",
}
_STREAMS = {
    "WordDocument": "doc",
    "PowerPoint Document": "ppt",
    "Workbook": "xls",
    "__properties_version1.0": "msg",
    "Book": "xls",
}
"""A stream by whose name, in the file's directory, each kind is told."""
_NEWER = {"doc": ".docx", "ppt": ".pptx", "xls": ".xlsx", "msg": ".eml"}


def read_further(data: bytes) -> OutlinedDocument:
    """Sheets as pages, or a message with what is attached to it.

    Raises:
        DocumentError: it is of another kind, or the extra is not installed
            (`unsupported_format`); or it cannot be read (`damaged`).
    """
    kind = next((kind for name, kind in _STREAMS.items() if name.encode("utf-16-le") in data), "")
    if kind in {"doc", "ppt"}:
        raise DocumentError(
            "unsupported_format",
            f"It is a file of an old Office. Save it as {_NEWER[kind]} and ingest that.",
        )
    if not kind:
        raise DocumentError(
            "not_a_document", "What kind of document it is cannot be told. Save it as PDF."
        )
    if find_spec("unstructured") is None:
        raise DocumentError(
            "unsupported_format",
            f"It takes an extra to read .{kind} files: pip install 'docpager[unstructured]'. "
            f"Or save it as {_NEWER[kind]}.",
        )
    _prepare()
    return _read_xls(data) if kind == "xls" else _read_msg(data)


@cache
def _prepare() -> None:
    """Keep the library from calling home and from fetching a model."""
    os.environ.update(_SILENCE)
    spacy = import_module("spacy")
    sentences = spacy.blank("en")
    sentences.add_pipe("sentencizer")
    tokenize: Any = import_module("unstructured.nlp.tokenize")
    tokenize._get_nlp = lambda: sentences


def _partition(module: str, data: bytes, **options: Any) -> list[Any]:
    partition = getattr(import_module(f"unstructured.partition.{module}"), f"partition_{module}")
    with _mapped():
        elements: list[Any] = partition(file=io.BytesIO(data), languages=[""], **options)
    return elements


@contextmanager
def _mapped() -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # its readers raise whatever theirs do
        raise DocumentError(
            "damaged",
            f"It cannot be read ({type(error).__name__}: {error}). Save it in a newer format.",
        ) from error


def _read_xls(data: bytes) -> OutlinedDocument:
    if _is_locked(data):
        raise encrypted()
    composer = Composer("xls", paged=True)
    sheet = None
    for element in _partition("xlsx", data, find_subtable=False, infer_table_structure=True):
        name = element.metadata.page_name or ""
        if name != sheet:
            sheet = name
            composer.page(name)
            composer.heading(1, name)
        _add(element, composer)
    return composer.document()


def _is_locked(data: bytes) -> bool:
    office: Any = import_module("msoffcrypto")
    try:
        return bool(office.OfficeFile(io.BytesIO(data)).is_encrypted())
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - what is wrong with it, its reader will say
        return False


def _read_msg(data: bytes) -> OutlinedDocument:
    elements = _partition("msg", data, process_attachments=False)
    with _mapped():
        message: Any = import_module("oxmsg").Message.load(io.BytesIO(data))
        recipients = ", ".join(one.email_address or one.name for one in message.recipients)
        head = {
            "From": message.sender,
            "To": recipients,
            "Date": str(message.sent_date or ""),
            "Subject": message.subject,
        }
        attachments = [
            Attachment(one.file_name or "", one.file_bytes or b"") for one in message.attachments
        ]
    composer = Composer("msg")
    composer.paragraph("\n".join(f"{name}: {value}" for name, value in head.items() if value))
    for element in elements:
        _add(element, composer)
    return composer.document(title=head["Subject"], attachments=attachments)


def _add(element: Any, composer: Composer) -> None:
    if element.metadata.text_as_html:
        HtmlPage(element.metadata.text_as_html).compose(composer)
    elif element.category == "ListItem":
        composer.item(f"- {element.text}")
    else:
        composer.paragraph(element.text)
