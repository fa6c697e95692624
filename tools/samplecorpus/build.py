"""Puts the corpus together, proves that each fact stands once, and writes the questions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial

import pypdfium2

from samplecorpus import chinese, english, facts, texts
from samplecorpus.facts import FACTS, QUESTIONS, Question
from samplecorpus.layout import Book, render

FOLDER = "sample_docs"
QUESTIONS_FILE = "questions.jsonl"

_BOOKS: dict[str, Callable[[], Book]] = {
    facts.REPORT_1931: partial(english.report, 1931),
    facts.REPORT_1934: partial(english.report, 1934),
    facts.REGISTER: english.register,
    facts.BYELAWS: english.byelaws,
    facts.BIOGRAPHY: english.biography,
    facts.EXPEDITION: english.expedition,
    facts.CATALOGUE: english.catalogue,
    facts.YEARBOOK: chinese.yearbook,
}
_TEXTS: dict[str, Callable[[], str]] = {
    facts.HANDBOOK: texts.handbook,
    facts.MINUTES: texts.minutes,
    facts.MUSEUM: texts.museum,
    facts.LETTERS_ZH: chinese.letters,
    facts.COURIER: texts.courier,
    facts.LOG_SKARHOLM: partial(texts.log, "Skarholm"),
    facts.LOG_GANNET: partial(texts.log, "Gannet Rock"),
    facts.LETTERS: texts.letters,
}
_SAME_PASSAGE = {"finch-tons": "finch-owner"}


class CorpusError(Exception):
    """The corpus does not hold what the table of facts says."""


def build() -> dict[str, bytes]:
    """Every file of the folder, by its path below it."""
    files: dict[str, bytes] = {}
    places: dict[str, int] = {}
    pages: dict[str, list[str]] = {}
    for name, book in _BOOKS.items():
        pdf = render(book())
        files[name] = pdf.data
        places |= pdf.fact_pages
        pages[name] = _pdf_pages(pdf.data)
    for name, text in _TEXTS.items():
        files[name] = text().encode("utf-8")
        pages[name] = [_flat(part) for part in files[name].decode("utf-8").split("\n\n")]
    for alias, fact in _SAME_PASSAGE.items():
        places[alias] = places[fact]
    for fact in FACTS:
        _prove(fact, places, pages)
    _prove_absent(pages)
    lines = [json.dumps(_record(q, places), ensure_ascii=False) for q in QUESTIONS]
    files[QUESTIONS_FILE] = ("\n".join(lines) + "\n").encode("utf-8")
    return files


def _flat(text: str) -> str:
    text = re.sub(r"\s+", " ", text)
    return re.sub(r"(?<=[\u3000-\u9fff]) (?=[\u3000-\u9fff])", "", text)


def _pdf_pages(data: bytes) -> list[str]:
    document = pypdfium2.PdfDocument(data)
    try:
        return [_flat(page.get_textpage().get_text_range()) for page in document]
    finally:
        document.close()


def _prove(fact_id: str, places: dict[str, int], pages: dict[str, list[str]]) -> None:
    fact = FACTS[fact_id]
    found = [
        (name, number)
        for name, all_pages in pages.items()
        for number, text in enumerate(all_pages, start=1)
        if fact.value in text and all(word in text for word in fact.names)
    ]
    wanted = (fact.document, places.get(fact_id, found[0][1] if found else 0))
    if found != [wanted]:
        raise CorpusError(f"{fact_id} is to stand on {wanted} alone, but stands on {found}.")


def _prove_absent(pages: dict[str, list[str]]) -> None:
    for question in QUESTIONS:
        for word in question.absent:
            for name, all_pages in pages.items():
                if any(re.search(rf"\b{word}\b", text) for text in all_pages):
                    raise CorpusError(f"{question.id}: {word!r} stands in {name}.")


def _record(question: Question, places: dict[str, int]) -> dict[str, object]:
    record: dict[str, object] = {"id": question.id, "question": question.text}
    if not question.hops:
        return record | {"expected_status": "not_found", "tags": [question.kind]}
    hops = [(f"{FOLDER}/{FACTS[hop].document}", places.get(hop)) for hop in question.hops]
    return record | {
        "expected": list(question.expected),
        "expected_documents": list(dict.fromkeys(name for name, _ in hops)),
        "expected_pages": [{"document": n, "page": page} for n, page in hops if page is not None],
        "tags": [question.kind],
    }
