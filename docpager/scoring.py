"""Scores of an answer against the expected ones: pure functions, in [0, 1].

Normalisation is SQuAD's (lower case, no punctuation, no articles); CJK text is compared by
character, since its words are not spaced.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable

from docpager.types import PageRef

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def tokens(text: str) -> list[str]:
    """Normalised words, in order; every CJK character is a word of its own.

    >>> tokens("The  Beckford-Foundry, in 灯塔")
    ['beckford', 'foundry', 'in', '灯', '塔']
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    spaced = "".join(
        " " if unicodedata.category(character)[0] in "PSZC" else character for character in folded
    )
    return _ARTICLES.sub(" ", _CJK.sub(lambda match: f" {match.group()} ", spaced)).split()


def exact_match(answer: str, expected: str) -> float:
    """1.0 where both are the same after normalisation."""
    return float(tokens(answer) == tokens(expected))


def f1(answer: str, expected: str) -> float:
    """Harmonic mean of precision and recall over the words of both, with their counts.

    >>> round(f1("the Beckford Foundry", "Beckford Foundry, Saltby"), 2)
    0.8
    """
    given, wanted = tokens(answer), tokens(expected)
    shared = sum((Counter(given) & Counter(wanted)).values())
    if not shared:
        return float(given == wanted)
    return 2 * shared / (len(given) + len(wanted))


def contains(answer: str, expected: str) -> float:
    """1.0 where the expected words stand in the answer, together and in order."""
    given, wanted = tokens(answer), tokens(expected)
    return float(
        any(
            given[start : start + len(wanted)] == wanted
            for start in range(len(given) - len(wanted) + 1)
        )
    )


def best(metric: Callable[[str, str], float], answer: str, expected: Iterable[str]) -> float:
    """The best score over all accepted answers; 0.0 where there is none."""
    return max((metric(answer, accepted) for accepted in expected), default=0.0)


def recall(found: Iterable[PageRef], wanted: Iterable[PageRef]) -> float:
    """Share of the wanted pages that are among those found; 1.0 where none is wanted.

    A wanted document may be named by the end of its path, as everywhere.
    """
    pages, seen = frozenset(wanted), frozenset(found)
    met = sum(
        any(at.page == page.page and _is_named(at.document, page.document) for at in seen)
        for page in pages
    )
    return met / len(pages) if pages else 1.0


def document_recall(found: Iterable[str], wanted: Iterable[str]) -> float:
    """Share of the wanted documents that are among those found; 1.0 where none is wanted."""
    names, seen = frozenset(wanted), frozenset(found)
    met = sum(any(_is_named(document, name) for document in seen) for name in names)
    return met / len(names) if names else 1.0


def _is_named(document: str, name: str) -> bool:
    return document == name or document.endswith(f"/{name}")
