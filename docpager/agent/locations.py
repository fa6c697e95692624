"""How a place in a document is named: the same for the model that reads it and for a person."""

from __future__ import annotations

from docpager.types import PATH_JOINT, Passage


def passage_place(passage: Passage) -> str:
    """Where a passage stands, as the contract fixes it.

    >>> passage_place(Passage("P17", "corpus/q3.pdf", "…", 14, 15))
    'corpus/q3.pdf p. 14-15'
    >>> passage_place(Passage("P2", "n.md", "…", paged=False, heading="Terms > Late", line=40))
    'n.md § Late, line 40'
    """
    if passage.paged:
        span = f"-{passage.last_page}" if passage.last_page > passage.first_page else ""
        return f"{passage.document} p. {passage.first_page}{span}"
    section = section_name(passage, passage.first_page)
    return section_place(passage.document, section, passage.line or 1)


def section_name(passage: Passage, number: int) -> str:
    """The nearest heading above a passage; without one, the section of that number."""
    return passage.heading.rsplit(PATH_JOINT, 1)[-1] or f"section {number}"


def section_place(document: str, section: str | None, line: int | None) -> str:
    """`n.md § Late, line 40`; what is not known is left out."""
    where = [section, f"line {line}" if line else None]
    named = ", ".join(part for part in where if part)
    return f"{document} § {named}" if named else document
