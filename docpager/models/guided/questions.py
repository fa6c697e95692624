"""What the wording of a question shows by itself: names, descriptions, what kind of answer.

All of it is decided in code, on the wording alone; nothing here reads a passage or asks a model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from docpager.unicode import HANGUL_SYLLABLES, IDEOGRAPHS, IDEOGRAPHS_EXTENSION_A, KANA

_REFERENCE = re.compile(r"#(\d)")
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(f"[{KANA}{IDEOGRAPHS_EXTENSION_A}{IDEOGRAPHS}{HANGUL_SYLLABLES}]+")
_COMPARES = re.compile(r"还是|哪个|更|比|和")
_NAME = r"[A-Z0-9À-Þ][\w.'’&-]*(?: (?:(?:of|the|de|van|von|to|in|for|&) )*[A-Z0-9À-Þ][\w.'’&-]*)*"
_SIDES = (
    re.compile(r", *([^,]+?) or ([^,?]+?)\??$"),
    re.compile(rf"({_NAME}) or (?:the )?({_NAME})\??$"),
    re.compile(rf"\b(?:both |[Aa]re |[Ww]ere |[Dd]o |[Dd]id )(?:the \w+ )?({_NAME}) and ({_NAME})"),
    re.compile(rf"({_NAME}) and ({_NAME})(?= (?:both|have|share|had)\b)"),
)
_DESCRIBES = re.compile(
    r"\b(?:that|which|who|whom|whose|where)\b|\b\w+(?:ed|t|n|de) by\b"
    r"|\b\w+(?:er|or|ist|ect|ian)s? of\b",
    re.IGNORECASE,
)
"""A relative clause, a passive with its agent, or the doer of something."""
_PERSON = re.compile(
    r"\b(?:who|whom|whose|man|woman|person|captain|\w+(?:er|or|ist|ect|ian)s?)\b", re.IGNORECASE
)
_LONGEST_DESCRIPTION = 20
_MOST_DESCRIPTIONS = 40
_NUMBER_WORD = re.compile(
    r"\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty"
    r"|sixty|seventy|eighty|ninety|hundred|thousand|million|dozen|half)\b"
    r"|[一二三四五六七八九十百千万两]",
    re.IGNORECASE,
)
_STOP = frozenset(
    _WORD.findall(
        "a an and are as at be by did do does for from had has have he her his how in into is it "
        "its of on or out that the their them they this to was were what when where which while "
        "who whom whose why will with would than then there many much long old name"
    )
)


# ---- words -----------------------------------------------------------------------------------


def folded(text: str) -> str:
    """Text as it is compared: full-width forms and case make no difference."""
    return unicodedata.normalize("NFKC", text).casefold()


def terms(text: str) -> set[str]:
    """Words that carry meaning, and pairs of CJK characters."""
    flat = folded(text)
    pairs = {run[at : at + 2] for run in _CJK.findall(flat) for at in range(len(run) - 1)}
    words = {word for word in _WORD.findall(_CJK.sub(" ", flat)) if word not in _STOP}
    return pairs | {word for word in words if len(word) > 1 or word.isdigit()}


def names(text: str) -> list[str]:
    """Capitalised words but a sentence's first, words with a digit, and what is quoted."""
    words = re.findall(r"[^\W_][\w'\u2019.-]*", _CJK.sub(" ", text))
    named = [
        word.strip(".-'\u2019").removesuffix("'s").removesuffix("\u2019s")
        for position, word in enumerate(words)
        if any(letter.isdigit() for letter in word) or (position and word[:1].isupper())
    ]
    return [word for word in dict.fromkeys(named) if word.casefold() not in _STOP]


# ---- plans -----------------------------------------------------------------------------------


def two_sides(question: str) -> tuple[str, str] | None:
    """The two things that a question compares, as it names them; None where it compares none.

    >>> two_sides("Which is older, the Orvis Mill or Danforth Mill?")
    ('Orvis Mill', 'Danforth Mill')
    >>> two_sides("Were Ada Colwell and Jon Lund both born in Teme?")
    ('Ada Colwell', 'Jon Lund')
    >>> two_sides("Who founded Danforth and Lee?")
    """
    for pattern in _SIDES:
        match = pattern.search(question)
        if match:
            first, second = (side.strip().removeprefix("the ") for side in match.groups())
            return (first, second) if first != second else None
    return None


def is_chinese(question: str) -> bool:
    """Whether it is written without spaces: then a plan is asked for, no phrase is looked for."""
    return _CJK.search(question) is not None


def cjk_length(text: str) -> int:
    """How many CJK characters are in it."""
    return len("".join(_CJK.findall(text)))


def is_sound(plan: Sequence[str], question: str) -> bool:
    """Whether a plan is one chain or one comparison, and drops no name or number.

    A look-up outside the chain would be answered by whatever passes first, and be taken for the end
    of it.
    """
    if not plan or not all(plan) or _REFERENCE.search(plan[0]):
        return False
    chained = all(_REFERENCE.search(step) for step in plan[1:])
    if not chained and not (is_comparison(plan) and _COMPARES.search(question)):
        return False
    for position, step in enumerate(plan):
        if any(not 1 <= int(number) <= position for number in _REFERENCE.findall(step)):
            return False
    named = {name.casefold() for name in names(question)}
    return named <= set(_WORD.findall(folded(" ".join(plan)))) | {
        name.casefold() for name in names("x " + " ".join(plan))
    }


def filled(look_up: str, answers: Sequence[str]) -> str:
    """The look-up with the answers found so far in the place of #1, #2, …

    >>> filled("When was #1 built?", ["the Orvis Mill"])
    'When was the Orvis Mill built?'
    """

    def answer(reference: re.Match[str]) -> str:
        number = int(reference.group(1)) - 1
        return answers[number] if number < len(answers) else reference.group()

    return _REFERENCE.sub(answer, look_up)


def is_comparison(plan: Sequence[str]) -> bool:
    """Several look-ups of which none needs another's answer."""
    return len(plan) > 1 and not any(_REFERENCE.search(step) for step in plan)


# ---- descriptions ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Description:
    """A phrase of a question that describes a thing by one fact instead of naming it."""

    phrase: str
    """Word for word."""
    look_up: str
    """The question for the thing itself."""
    noun: str
    """What kind of thing it is; empty for a person."""
    rest: str = ""
    """The question's own word within the phrase: `built` in "was the tug built that …"."""

    def named(self, asked: str, answer: str) -> str:
        """The question with the thing's name in the place of its description.

        A bare number means nothing to a search: it keeps the noun before it.
        """
        kept = self.noun and not terms(self.noun) & terms(answer)
        name = f"the {self.noun} {answer}" if kept else answer
        return asked.replace(self.phrase, f"{name} {self.rest}".strip())


def descriptions(asked: str) -> list[Description]:
    """What a question describes by one fact, with every end that the phrase may have.

    The innermost ones alone: what is described within a description has to be known first.

        >>> [found.phrase for found in descriptions("When was the mill opened that Ann Hale drew?")]
        ['the mill opened that Ann Hale', 'the mill opened that Ann Hale drew']
        >>> descriptions("When was the mill opened that Ann Hale drew?")[-1].look_up
        'Which mill is it that Ann Hale drew?'
        >>> descriptions("When was the mill at Orrin Ford opened?")
        []
        >>> descriptions("Who was the builder of the mill that Ann Hale drew?")[0].phrase
        'the mill that Ann Hale'
    """
    words = list(re.finditer(r"\S+", asked))
    found: dict[str, Description] = {}
    for first, start in enumerate(words):
        if start.group().casefold() not in ("the", "a", "an"):
            continue
        before = words[first - 1].group().casefold() if first else ""
        if first == 2 and before in _BE and words[0].group().casefold() == "who":
            continue  # "Who was the maker of …": the whole question asks for it
        for end in range(first + 3, min(len(words), first + _LONGEST_DESCRIPTION)):
            phrase = asked[start.start() : words[end].end()].rstrip("?.,;:!").removesuffix("'s")
            outside = len(words) - (end - first + 1)
            broken = end + 1 < len(words) and all(
                words[at].group()[0].isupper() for at in (end, end + 1)
            )
            if outside >= 2 and not broken and _describes_once(phrase):
                description = _apart(phrase, before, last=end + 1 == len(words))
                if description or before not in _DO or end + 1 < len(words):
                    found[phrase] = description or _description(phrase)
    return list(found.values())[:_MOST_DESCRIPTIONS]


def _describes_once(phrase: str) -> bool:
    """Whether the phrase is one description that is whole and has a name or number in it."""
    describing = [*_DESCRIBES.finditer(phrase)]
    if len(describing) != 1 or phrase.split()[-1].casefold() in _STOP or " what " in phrase:
        return False
    before, after = phrase[: describing[0].start()], phrase[describing[0].end() :]
    nested = re.search(r"\s(?:the|an?)\s", before)
    return not nested and any(letter.isupper() or letter.isdigit() for letter in after)


_BE = ("was", "were", "is", "are")
_DO = ("do", "does", "did")
_EXTRAPOSED = {
    _BE: re.compile(r"(?:the|an?) (.+?) (\w+(?:ed|t|n|de)) ((?:that|which|who) .+)"),
    _DO: re.compile(r"(?:the|an?) (.+?) (\w+) ((?:that|which|who) .+)"),
}
_RELATIVE = re.compile(
    r"(?:the|an?) ([^,]+?),? ((?:(?:with|of|in|by|from|for|on|at|to) )?which|that|where) (.+)",
    re.IGNORECASE,
)
_PASSIVE = re.compile(r"(?:the|an?) (.+?) (\w+(?:ed|t|n|de) by .+)", re.IGNORECASE)
_SUBJECT = re.compile(r"(?:the|an?|[A-Z]\S*|he|she|it|they|his|her|its|their)\b")


def _apart(phrase: str, before: str, *, last: bool) -> Description | None:
    """A description with the question's verb in its middle, after `before`; None where it is whole.

    After "did" the verb must come, so a phrase that is the `last` of the question has it inside.

    >>> _apart("the tug built that the Trust hired", "was", last=True).look_up
    'Which tug is it that the Trust hired?'
    >>> _apart("the gauge hold that Ann Hale made", "does", last=True).rest
    'hold'
    """
    for verbs, pattern in _EXTRAPOSED.items():
        match = pattern.fullmatch(phrase) if before in verbs and (last or verbs is _BE) else None
        if match:
            inner = _description(f"the {match[1]} {match[3]}")
            return Description(phrase, inner.look_up, inner.noun, rest=match[2])
    return None


def _description(phrase: str) -> Description:
    """The description in a phrase, with the look-up for what it describes.

    >>> _description("the engineer who drew the Hallow Bridge").look_up
    'Who is the engineer who drew the Hallow Bridge?'
    >>> _description("the boat that brought Ann Hale").look_up
    'Which boat brought Ann Hale?'
    >>> _description("the bridge constructed by Ann Hale").look_up
    'Which bridge was constructed by Ann Hale?'
    >>> _description("the town where Ann Hale worked").look_up
    'Which town is it where Ann Hale worked?'
    """
    relative = _RELATIVE.fullmatch(phrase)
    if relative:
        noun, word, clause = relative.groups()
        by_subject = word in ("that", "which") and not _SUBJECT.match(clause)
        clause = clause if by_subject else f"is it {word} {clause}"
        return Description(phrase, f"Which {noun} {clause}?", noun)
    passive = _PASSIVE.fullmatch(phrase)
    if passive:
        return Description(phrase, f"Which {passive[1]} was {passive[2]}?", passive[1])
    head = " ".join(phrase.split()[:4])
    asked = "Who" if _PERSON.search(head) else "What"
    verb = "are" if re.match(r"the \w+[^s\W]s\b", phrase) else "is"
    return Description(phrase, f"{asked} {verb} {phrase}?", "")


# ---- the kind of answer ----------------------------------------------------------------------


def _kinds(asked: str) -> Iterator[str]:
    flat = folded(asked)
    if re.search(
        r"\b(when|what year|which year|what date|which date)\b|何时|哪年|哪一年|几年|日期", flat
    ):
        yield "date"
    if re.search(
        r"\bhow (many|much|long|big|high|deep|tall|old|far|wide|heavy)\b|多少|几|多高|多深|多长",
        flat,
    ):
        yield "number"
    if re.search(r"^(who|whom|whose)\b|谁", flat):
        yield "person"


def fits(asked: str, answer: str) -> bool:
    """Whether the answer can be of the kind that the question word asks for."""
    numeric = bool(re.search(r"\d", answer) or _NUMBER_WORD.search(answer))
    for kind in _kinds(asked):
        if kind in ("date", "number") and not numeric:
            return False
        if kind == "person":
            named = any(letter.isupper() for letter in answer) or bool(_CJK.search(answer))
            if not named or re.search(r"\d", answer):
                return False
    return True
