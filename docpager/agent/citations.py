"""The quote check: a citation is verified in code against the stored page, or it is not (I7)."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Collection, Sequence

from docpager.agent.locations import section_name
from docpager.function_results import ProposedCitation
from docpager.protocols import ArchivalStore
from docpager.types import Citation, PageText, Passage
from docpager.unicode import (
    COMPATIBILITY_IDEOGRAPHS,
    HANGUL_SYLLABLES,
    IDEOGRAPHS,
    IDEOGRAPHS_EXTENSION_A,
    KANA,
)

_LINE_END_AFTER_HYPHEN = re.compile(r"(?<=\w[-\u2010\u00ad\ufffe\u0002])\s+(?=\w)")
_INVISIBLE = re.compile("[\u00ad\u200b\u200c\u200d\u2060\ufeff\ufffe\u0002]")
_HYPHEN_IN_WORD = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_SPACE = re.compile(r"\s+")
_WIDE = r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"
_SPACE_BESIDE_CJK = re.compile(rf"(?<={_WIDE}) | (?={_WIDE})")
_CJK = re.compile(
    f"[{KANA}{IDEOGRAPHS_EXTENSION_A}{IDEOGRAPHS}{HANGUL_SYLLABLES}{COMPATIBILITY_IDEOGRAPHS}]"
)
_CELL_EDGE = re.compile(r"[\t|]|  +")
_SAME_MARKS = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"'}
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)


def normalise(text: str) -> str:
    """Text as quotes are compared: NFKC, words joined over line ends, white space collapsed.

    Ligatures, soft hyphens, kinds of dashes and quotation marks do not count, nor do hyphens
    between letters (a hyphen at a line end may belong to the word or not) and spaces beside CJK
    characters. Upper and lower case do, and so does a hyphen beside a digit.

        >>> normalise("The ef\\ufb01cient  mill")
        'The efficient mill'
        >>> normalise("the exam-\\nple of a well-known mill, 1914-\\n1918")
        'the example of a wellknown mill, 1914-1918'
    """
    joined = _INVISIBLE.sub("", _LINE_END_AFTER_HYPHEN.sub("", text))
    folded = unicodedata.normalize("NFKC", joined).translate(_SAME_MARKS)
    spaced = _SPACE.sub(" ", _HYPHEN_IN_WORD.sub("", folded))
    return _SPACE_BESIDE_CJK.sub("", spaced).strip()


def long_enough(quote: str, source: str) -> bool:
    """Whether a quote is evidence: 4 words, 20 characters or 6 CJK, or a whole line or cell.

    >>> long_enough("in 1887", "It opened\\nin 1887\\nwith a toll")
    True
    >>> long_enough("in 1887", "It opened in 1887 with a toll")
    False
    """
    wanted = normalise(quote)
    if len(wanted.split()) >= 4 or len(wanted) >= 20 or len(_CJK.findall(wanted)) >= 6:
        return True
    cells = {
        normalise(cell) for line in source.splitlines() for cell in (line, *_CELL_EDGE.split(line))
    }
    return bool(wanted) and wanted in cells


class CitationChecker:
    """Checks proposed citations against stored pages.

    `shown` holds the ids of the passages seen so far; it is looked at anew for each check.
    """

    def __init__(self, store: ArchivalStore, shown: Collection[str]) -> None:
        self._store = store
        self._shown = shown

    def check(self, proposed: Sequence[ProposedCitation]) -> tuple[Citation, ...]:
        """One citation for each distinct proposal, in order."""
        distinct = dict.fromkeys(proposed)
        return tuple(self._check_one(citation) for citation in distinct)

    def _check_one(self, proposed: ProposedCitation) -> Citation:
        passage_id = proposed.passage_id.strip().strip("[]")
        quote = proposed.quote.strip().strip('\u201c\u201d"')
        if passage_id.startswith("N"):
            return _unplaced(passage_id, quote, "it cites a note of the model, not a document")
        found = self._store.passages([passage_id])
        if not found:
            return _unplaced(passage_id, quote, f"there is no passage {passage_id}")
        passage = found[0]
        page, problem = self._page_of(passage, quote)
        if passage_id not in self._shown:
            problem = f"{passage_id} was never shown in this run"
        return _placed(passage, page, quote, problem)

    def _page_of(self, passage: Passage, quote: str) -> tuple[PageText, str | None]:
        """The page the quote stands on, and what is wrong with it, if anything."""
        pages = [
            self._store.page(passage.document, number)
            for number in range(passage.first_page, passage.last_page + 1)
        ]
        wanted = normalise(quote)
        if not wanted:
            return pages[0], "the quote is empty"
        if not _holds(passage.text, wanted):
            return pages[0], f"the quote does not stand in {passage.passage_id}"
        source = "\n".join(page.text for page in pages)
        if not long_enough(quote, source):
            return pages[0], "the quote is too short to prove anything"
        for page in pages:
            if _holds(page.text, wanted):
                return page, None
        for first, second in itertools.pairwise(pages):
            if _holds(f"{first.text}\n{second.text}", wanted):
                return first, None
        return pages[0], "the quote does not stand on the stored page"


def _holds(text: str, wanted: str) -> bool:
    """Whether the normalised quote stands in the text, not in the middle of a word or number."""
    haystack = normalise(text)
    at = haystack.find(wanted)
    while at >= 0:
        before = haystack[at - 1 : at] + wanted[:1]
        after = wanted[-1:] + haystack[at + len(wanted) : at + len(wanted) + 1]
        if not (_inside_word(before) or _inside_word(after)):
            return True
        at = haystack.find(wanted, at + 1)
    return False


def _inside_word(pair: str) -> bool:
    return len(pair) == 2 and pair.isalnum() and not _CJK.search(pair)


def _unplaced(passage_id: str, quote: str, problem: str) -> Citation:
    return Citation(passage_id, "", None, None, quote, verified=False, problem=problem)


def _placed(passage: Passage, page: PageText, quote: str, problem: str | None) -> Citation:
    return Citation(
        passage.passage_id,
        passage.document,
        page.page_number if passage.paged else None,
        page.page_label,
        quote,
        verified=problem is None,
        section=None if passage.paged else section_name(passage, page.page_number),
        line=None if passage.paged else _line_of(passage, quote),
        problem=problem,
    )


def _line_of(passage: Passage, quote: str) -> int | None:
    """The line the quote begins on, as far as its first word can be found; else the passage's."""
    if passage.line is None:
        return None
    lines = passage.text.splitlines()
    wanted = normalise(quote)
    for start in range(len(lines) - 1, -1, -1):
        if _holds("\n".join(lines[start:]), wanted):
            return passage.line + start
    return passage.line
