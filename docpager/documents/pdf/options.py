"""What may be asked of the PDF reader beside the file itself."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PdfOptions:
    """How PDFs are read; picklable, and safe to print: passwords are left out."""

    passwords: tuple[str, ...] = field(default=(), repr=False)
    """Tried in order on files that the empty password does not open."""
    ocr: bool = False
    """Whether pages that are pictures are recognised."""
    max_pages: int = 50_000
    max_attached_bytes: int = 256 << 20
    """Of all files inside one file together; what is beyond is left out and said."""
