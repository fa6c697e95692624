"""What only the extra `docpager[unstructured]` reads."""

from __future__ import annotations

from docpager.documents.outline import OutlinedDocument
from docpager.errors import DocumentError


def read_further(data: bytes) -> OutlinedDocument:
    """Old Office files and Outlook's messages.

    Raises:
        DocumentError: the extra is not installed (`unsupported_format`).
    """
    raise DocumentError("unsupported_format", "Save it as .docx")
