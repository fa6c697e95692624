"""Mail: who wrote what to whom and when; what is attached becomes documents of its own."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterator
from email import policy
from email.errors import MessageError
from email.message import EmailMessage, Message
from email.parser import BytesParser

from docpager.documents.attachments import Attachment
from docpager.documents.composing import Composer
from docpager.documents.office.packages import encrypted
from docpager.documents.outline import OutlinedDocument
from docpager.documents.text.normalise import one_line
from docpager.documents.text.reader import decode
from docpager.documents.web.html import compose_html

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_PART_LIMIT = 2_000
_WIDE_CHARSETS = (b"\xff\xfe", b"\xfe\xff")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")


def read_mail(data: bytes) -> OutlinedDocument:
    """A message's headers and its text; of alternatives the plain one, unless it is empty.

    Raises:
        DocumentError: there is nothing in it but what is encrypted.
    """
    warnings: tuple[str, ...] = ()
    if data.startswith(_WIDE_CHARSETS):
        text, warnings = decode(data)
        data = text.encode("utf-8", "replace")
    message = BytesParser(policy=policy.default).parsebytes(data.lstrip())
    composer = Composer("mail")
    subject = _header(message, "Subject")
    lines = ((name, _header(message, name)) for name in _HEADERS)
    composer.paragraph("\n".join(f"{name}: {value}" for name, value in lines if value))
    attachments: list[Attachment] = []
    parts = _Parts()
    for part in parts.of(message):
        if _is_attachment(part):
            attachments.append(Attachment(_file_name(part), _content(part)))
        elif part.get_content_type() == "text/html":
            _, doubts = compose_html(_text_bytes(part), composer)
            warnings = (*warnings, *doubts)
        elif part.get_content_maintype() == "text":
            text, doubts = _plain(part)
            warnings = (*warnings, *doubts)
            for paragraph in _BLANK_LINES.split(text.replace("\r\n", "\n")):
                composer.paragraph(paragraph)
    if parts.locked and not parts.shown:
        raise encrypted()
    if parts.beyond:
        warnings = (*warnings, f"Only the first {_PART_LIMIT} parts of the message were read.")
    return composer.document(title=subject, warnings=warnings, attachments=attachments)


class _Parts:
    """The parts of a message that matter, and what is to be said of the others."""

    def __init__(self) -> None:
        self.locked = False
        self.shown = False
        self.beyond = False
        self._count = 0

    def of(self, message: Message) -> Iterator[EmailMessage]:
        """Texts and attachments in order; of alternatives the best, without recursion."""
        waiting: list[Message] = [message]
        while waiting:
            part = waiting.pop()
            self._count += 1
            if self._count > _PART_LIMIT:
                self.beyond = True
                return
            kind = part.get_content_type()
            if kind == "multipart/encrypted" or _is_envelope(part):
                self.locked = True
            elif kind == "message/rfc822" and part is not message:
                yield _as_mail(part)
            elif part.is_multipart():
                inner = [one for one in part.get_payload() if isinstance(one, Message)]
                chosen = _best(inner) if kind == "multipart/alternative" else inner
                waiting += reversed(chosen)
            elif _is_attachment(_as_mail(part)) or part.get_content_maintype() == "text":
                self.shown = True
                yield _as_mail(part)


def _as_mail(part: Message) -> EmailMessage:
    if not isinstance(part, EmailMessage):
        raise TypeError("the parser was told to make EmailMessage objects")
    return part


def _best(alternatives: list[Message]) -> list[Message]:
    """The plain text if there is ink in it, else the last one: the richest."""
    for part in alternatives:
        if part.get_content_type() == "text/plain" and _text_bytes(part).strip():
            return [part, *(one for one in alternatives if _is_attachment(_as_mail(one)))]
    return alternatives[-1:]


def _is_envelope(part: Message) -> bool:
    kind = part.get_content_type()
    smime = kind in {"application/pkcs7-mime", "application/x-pkcs7-mime"}
    return smime and str(part.get_param("smime-type", "enveloped-data")) != "signed-data"


def _is_attachment(part: EmailMessage) -> bool:
    if part.get_content_type() == "message/rfc822":
        return True
    if part.is_multipart():
        return False
    inline_picture = part.get_content_maintype() == "image" and "attachment" not in str(
        part.get("Content-Disposition", "")
    )
    named = bool(part.get_filename()) or part.get_content_disposition() == "attachment"
    return named and not inline_picture


def _file_name(part: EmailMessage) -> str:
    name = one_line(str(part.get_filename() or ""))
    if part.get_content_type() == "message/rfc822":
        inner = next((one for one in part.get_payload() if isinstance(one, Message)), None)
        name = name or (_header(inner, "Subject") if inner is not None else "") or "message"
        name = re.sub(r"[/\\]", "-", name)
        return name if name.lower().endswith(".eml") else f"{name}.eml"
    if not name:
        return "attachment" + (mimetypes.guess_extension(part.get_content_type()) or "")
    return name


def _content(part: EmailMessage) -> bytes:
    if part.get_content_type() == "message/rfc822":
        inner = next((one for one in part.get_payload() if isinstance(one, Message)), None)
        return b"" if inner is None else inner.as_bytes(policy=policy.compat32)
    return _text_bytes(part)


def _text_bytes(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _plain(part: EmailMessage) -> tuple[str, tuple[str, ...]]:
    """A part's text in the charset it names, unless its bytes belie it."""
    data = _text_bytes(part)
    charset = part.get_content_charset()
    if charset:
        try:
            return data.decode(charset), ()
        except (LookupError, UnicodeDecodeError, ValueError):
            pass  # then its bytes decide
    return decode(data) if data.strip() else ("", ())


def _header(message: Message, name: str) -> str:
    """A header's value, as far as it can be understood."""
    try:
        return one_line(str(message.get(name, "") or ""))
    except (
        MessageError,
        ValueError,
        IndexError,
        AttributeError,
        TypeError,
        LookupError,
        OverflowError,
    ):
        # The library fails on some malformed headers: the raw text is better than nothing.
        raw = (value for key, value in message.raw_items() if key.lower() == name.lower())
        return one_line(str(next(iter(raw), "")))
