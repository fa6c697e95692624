"""What a passage holds for a look-up: whether to read it, which words state the answer."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from docpager.function_results import FunctionResult, SearchPage
from docpager.models.guided.questions import cjk_length, fits, folded, names, terms

EXCERPT_CHARACTERS = 800
"""Of a passage, its best sentences: a CPU reads some 45 tokens a second."""
NAMES_NEEDED = 0.75
"""Share of a look-up's names and numbers that must stand in a passage for it to be believed."""
NAMES_TOGETHER = 0.5
"""Share of them that must stand together where no passage has enough: some of them are of another
thing that the question mentions."""
_SENTENCE_END = re.compile(
    r"(?<=[.!?;])[\"')\u201d\u2019]*\s+(?=[\"'(\u201c]?[A-Z0-9])|(?<=[。！？；])"
)
_SHORT_LINE = 48
_NUMBER = re.compile(r"(?<!\S)\d[\d.,:]*(?!\S)")
_NUMBERS_IN_ROW = 3
_HEADING_WORDS = 12
_BEFORE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class SeenPassage:
    """A passage as a search result shows it."""

    passage_id: str
    place: str
    text: str

    @property
    def title(self) -> str:
        """The name of its document without folders, and the section where there is one."""
        return self.place.rsplit(" p. ", 1)[0].rsplit("/", 1)[-1]


def seen_passages(result: FunctionResult | None) -> list[SeenPassage]:
    """The passages of a search result in order; none of another result."""
    if not isinstance(result, SearchPage):
        return []
    return [
        SeenPassage(shown.passage_id, shown.place, shown.text.strip()) for shown in result.passages
    ]


def coverage(asked: str, passage: SeenPassage) -> float:
    """Share of the names (else of all words) of a look-up that the passage or its title holds."""
    named = {term for name in names(asked) for term in terms(name)}
    if named:
        return len(named & terms(f"{passage.place} {passage.text}")) / len(named)
    wanted = terms(asked)
    share = shared(asked, f"{passage.place} {passage.text}") / len(wanted) if wanted else 0.0
    # Without names (in Chinese mostly) there is nothing that must stand there: the ranking decides
    # what is read, and the overlap in which order.
    return max(NAMES_NEEDED, share) if share else 0.0


def _sentences(text: str) -> list[tuple[int, int]]:
    """Spans that together are the text: sentences, rows of tables, lines too short for prose."""
    cuts = {0, len(text)}
    cuts.update(match.end() for match in _SENTENCE_END.finditer(text))
    start = 0
    for line in text.splitlines(keepends=True):
        if len(line) < _SHORT_LINE or len(_NUMBER.findall(line)) >= _NUMBERS_IN_ROW:
            cuts.update((start, start + len(line)))
        start += len(line)
    ordered = sorted(cuts)
    return [(begin, end) for begin, end in itertools.pairwise(ordered) if text[begin:end].strip()]


def excerpt(asked: str, text: str) -> str:
    """The sentences nearest to the look-up, in order, about 800 characters."""
    if len(text) <= EXCERPT_CHARACTERS:
        return text
    spans = _sentences(text)
    wanted = terms(asked)
    scores = [len(wanted & terms(text[begin:end])) for begin, end in spans]
    around = [2 * score + sum(scores[max(0, at - 1) : at + 2]) for at, score in enumerate(scores)]
    kept: set[int] = set()
    room = EXCERPT_CHARACTERS
    for at in sorted(range(len(spans)), key=lambda at: (-around[at], at)):
        size = spans[at][1] - spans[at][0]
        if size <= room or not kept:
            kept.add(at)
            room -= size
    return " ".join(text[begin:end].strip() for at, (begin, end) in enumerate(spans) if at in kept)


def accepted_quote(asked: str, answer: str, passage: SeenPassage) -> str:
    """The words of the passage that state the answer, or nothing where a check in code fails.

    The answer stands in the passage, is not taken from the look-up, and is of the kind that was
    asked for. The quote is verbatim, with at least four words or six CJK characters. It holds the
    answer, unless that is what the passage is about, as its title says: then what is said of it.
    """
    text = passage.text
    given = " ".join(answer.split())
    if not given or folded(given) in ("none", "unknown", "not stated", "无", "没有"):
        return ""
    if not terms(given) - terms(asked) or not fits(asked, given):
        return ""
    spans = _sentences(text)
    holding = [at for at, span in enumerate(spans) if _stands_in(given, text[span[0] : span[1]])]
    if not holding:
        return ""
    wanted = terms(asked)

    def nearness(at: int) -> tuple[int, int, int]:
        own = text[spans[at][0] : spans[at][1]]
        return (
            len(wanted & terms(own)),
            len(wanted & terms(_around(text, spans, at))),
            -at,
        )

    is_topic = _stands_in(given, passage.title)
    best = max(range(len(spans)) if is_topic else holding, key=nearness)
    # A sentence that shares no word with the question, and has no neighbour that does, answers
    # another one.
    return _long_enough(text, spans, best) if nearness(best)[1] else ""


def in_context(quote: str, passage: SeenPassage) -> str:
    """A quote after the title and some 300 characters before it, where its subject is named."""
    at = passage.text.find(quote)
    before = passage.text[max(0, at - _BEFORE_CHARACTERS) : at] if at > 0 else ""
    before = before.partition(" ")[2] if at > _BEFORE_CHARACTERS else before
    return " ".join(f"{passage.title}: {before} {quote}".split())


def shared(asked: str, text: str) -> int:
    """How many of the words of a look-up stand in a text."""
    return len(terms(asked) & terms(text))


def is_named(asked: str, answer: str, quote: str, passage: SeenPassage) -> bool:
    """Whether a quote or the passage's title has a name of the look-up other than the answer."""
    named = {term for name in names(asked) for term in terms(name)}
    return bool((named - terms(answer)) & terms(f"{passage.title} {quote}"))


def is_heading(passage: SeenPassage) -> bool:
    """Whether it is too short to state much: a heading by itself."""
    return len(passage.text.split()) < _HEADING_WORDS and cjk_length(passage.text) < _HEADING_WORDS


def _stands_in(answer: str, text: str) -> bool:
    flat = " ".join(folded(text).split())
    found = re.search(rf"(?<![^\W_]){re.escape(folded(answer))}(?![^\W_])", flat)
    return found is not None or (cjk_length(answer) > 0 and folded(answer) in flat)


def _around(text: str, spans: Sequence[tuple[int, int]], at: int) -> str:
    return text[spans[max(0, at - 1)][0] : spans[min(len(spans) - 1, at + 1)][1]]


def _long_enough(text: str, spans: Sequence[tuple[int, int]], at: int) -> str:
    first = last = at
    while True:
        quote = text[spans[first][0] : spans[last][1]].strip()
        whole = first == 0 and last == len(spans) - 1
        if whole or len(quote.split()) >= 4 or cjk_length(quote) >= 6:
            return quote
        first, last = (first - 1, last) if first else (first, last + 1)
