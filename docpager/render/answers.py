"""Answers and their citations."""

from __future__ import annotations

from docpager.agent.locations import section_place
from docpager.errors import Limit
from docpager.render.terminal import printable, wrap
from docpager.types import (
    Answer,
    Citation,
)

_STATUS_WORDS = {
    "answered": "",
    "unsupported": "No citation could be verified: read this answer with care.",
    "not_found": "The documents do not seem to answer this.",
    "step_limit": "Stopped at the step limit without an answer. Allow more with --max-steps.",
    "budget": "Stopped at a bound on tokens, money or time without an answer. Raise it.",
    "model_error": "",
}

_BOUND_WORDS: dict[Limit, str] = {
    "steps": "The last step allowed was reached: more of them (--max-steps) may find more.",
    "tokens": "The bound on tokens was reached: more of them (--max-tokens) may find more.",
    "money": "The bound on money was reached: more of it (--max-cost) may find more.",
    "time": "The bound on time was reached: more of it (--timeout) may find more.",
}
"""Said of an answer that a bound forced."""


def answer_text(answer: Answer) -> str:
    """The answer, then each citation as `[1] reports/q3.pdf p. 14 "quote"`."""
    parts = [wrap(printable(answer.answer))] if answer.answer else []
    remarks = [_STATUS_WORDS[answer.status]]
    if answer.stopped_by and answer.status not in ("step_limit", "budget"):
        remarks.append(_BOUND_WORDS[answer.stopped_by])
    for remark in filter(None, remarks):
        parts.append(wrap(printable(remark), "  " if answer.answer else ""))
    cited = [citation_text(number, item) for number, item in enumerate(answer.citations, 1)]
    if cited:
        parts += ["", *cited]
    return "\n".join(parts)


def citation_text(number: int, citation: Citation) -> str:
    """One line: number, place, quote; and why it is not verified where it is not."""
    quote = " ".join(printable(citation.quote).split())
    text = f'[{number}] {citation_place(citation)} "{quote}"'
    if not citation.verified:
        text += f" (not verified: {printable(citation.problem or 'not checked')})"
    return wrap(text)


def citation_place(citation: Citation) -> str:
    """`reports/q3.pdf p. 14 (printed 12)`, or `notes.md § Heading, line 40`."""
    note = "a note of the model itself" if citation.passage_id.startswith("N") else "no passage"
    place = printable(citation.document) or printable(f"{citation.passage_id}, {note}")
    if citation.page is not None:
        place += f" p. {citation.page}"
        if citation.page_label and citation.page_label != str(citation.page):
            place += f" (printed {printable(citation.page_label)})"
        return place
    return printable(section_place(place, citation.section, citation.line))
