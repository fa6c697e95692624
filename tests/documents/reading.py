"""The text of what was read, to compare with what was written by `making`."""

from __future__ import annotations

from docpager.documents.outline import OutlinedDocument


def texts(outlined: OutlinedDocument) -> list[str]:
    return [page.text for page in outlined.document.pages]


def whole(outlined: OutlinedDocument) -> str:
    return "\n".join(texts(outlined))
