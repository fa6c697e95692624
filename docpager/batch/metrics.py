"""The metrics of an answer: their names, and the pure functions, in [0, 1], that compute them.

Cheap to import: the command line lists the names in its help.

Normalisation is SQuAD's: lower case, punctuation deleted ("1,000" is "1000", "U.S." is "us"), no
articles. Beyond it, quotation marks of all scripts are deleted too, other punctuation outside of
ASCII parts words, and CJK text is compared by character, since its words are not spaced.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Literal, get_args

from docpager.types import PageRef
from docpager.unicode import (
    COMPATIBILITY_IDEOGRAPHS,
    HANGUL_SYLLABLES,
    IDEOGRAPHIC_MARKS,
    IDEOGRAPHS,
    IDEOGRAPHS_EXTENSION_A,
    KANA,
)

Metric = Literal[
    "exact_match",
    "f1",
    "contains",
    "document_recall",
    "page_recall",
    "read_recall",
    "citation_precision",
]
METRICS: tuple[Metric, ...] = get_args(Metric)

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_CJK = re.compile(
    f"[{IDEOGRAPHIC_MARKS}{KANA}{IDEOGRAPHS_EXTENSION_A}{IDEOGRAPHS}{HANGUL_SYLLABLES}"
    f"{COMPATIBILITY_IDEOGRAPHS}]"
)


def tokens(text: str) -> list[str]:
    """Normalised words, in order; every CJK character is a word of its own.

    >>> tokens("The  Beckford-Foundry, in 灯塔 since 1,907")
    ['beckfordfoundry', 'in', '灯', '塔', 'since', '1907']
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    cleaned = "".join(map(_cleaned, folded))
    return _ARTICLES.sub(" ", _CJK.sub(lambda match: f" {match.group()} ", cleaned)).split()


def _cleaned(character: str) -> str:
    if character in string.punctuation:
        return ""
    match unicodedata.category(character):
        case "Pi" | "Pf":
            return ""
        case category if category[0] in "PSZC":
            return " "
        case _:
            return character


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
    """1.0 where the expected words stand in the answer, together and in order.

    Where nothing is left to be expected ("+", "The"), only an answer of nothing has it.
    """
    given, wanted = tokens(answer), tokens(expected)
    if not wanted:
        return float(not given)
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
