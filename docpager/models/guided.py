"""`GuidedChat`: lets a small model drive the same functions as any other, in steps it can do.

It is a `Chat` around another `Chat`, not an agent: given the messages it returns the next function
call. Small models (1-4B) repeat themselves when they run the loop, but read one passage well. So
the program plans (a few-shot call splits the question), searches, hands over one passage at a
time, accepts the first answer that passes checks in code, notes it in working context, and sends
the message. docs/guided.md has what was tried and measured.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from docpager.messages import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Message,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from docpager.models.guided_prompts import (
    COMPARE,
    COMPARE_EXAMPLE,
    DESCRIBED,
    DESCRIBED_EXAMPLES,
    PLAN,
    PLAN_EXAMPLES,
    READ,
    READ_EXAMPLES,
    REPHRASE,
    REPHRASE_EXAMPLES,
    as_json,
    comparing,
    reading,
)
from docpager.protocols import Chat
from docpager.types import JSONValue, ToolMode, Usage

MOST_LOOK_UPS = 4
PAGES_PER_LOOK_UP = 2
READS_PER_LOOK_UP = 8
"""Passages read for one look-up before it is given up: each takes some seconds."""
EXCERPT_CHARACTERS = 800
"""Of a passage, its best sentences: a CPU reads some 45 tokens a second."""
NAMES_NEEDED = 0.75
"""Share of a look-up's names and numbers that must stand in a passage for it to be believed."""
_ANSWER_TOKENS = 48
_PLAN_TOKENS = 160

_HEADER = re.compile(r"^\[([PN]\d+)\] ?(.*)$", re.MULTILINE)
_FIRST_LINE = re.compile(r"^Showing \d+ of \d+ results \(page (\d+)/(\d+)\)")
_CUT_NOTE = re.compile(r"^\((?:cut\b|\[[PN]\d+\] goes on:).*\)$", re.MULTILINE)
"""What a result says about itself below a passage: no words of the document."""
_REFERENCE = re.compile(r"#(\d)")
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_SENTENCE_END = re.compile(
    r"(?<=[.!?;])[\"')\u201d\u2019]*\s+(?=[\"'(\u201c]?[A-Z0-9])|(?<=[。！？；])"
)
_SHORT_LINE = 48
_COMPARES = re.compile(r"\b(or|than|both|same)\b|还是|哪个|更|比|和")
_DESCRIBES = re.compile(
    r"\b(?:that|which|who|whom|whose|where)\b|\b\w+(?:ed|t|n|de) by\b"
    r"|\b\w+(?:er|or|ist|ect|ian)s? of\b",
    re.IGNORECASE,
)
"""A relative clause, a passive with its agent, or the doer of something."""
_PERSON = re.compile(
    r"\b(?:who|whom|man|woman|person|captain|\w+(?:er|or|ist|ect|ian))\b", re.IGNORECASE
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

_Script = Generator[ToolCall, str, None]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A passage as a result shows it."""

    passage_id: str
    place: str
    text: str


@dataclass(frozen=True, slots=True)
class _Fact:
    """An accepted answer to one look-up, with the words that state it."""

    look_up: str
    answer: str
    passage_id: str
    quote: str


class GuidedChat:
    """Mode `guided` around a small model that can be held to a JSON schema.

    `context_window` bounds the small prompts; those of the agent are never sent to the model.
    """

    def __init__(self, inner: Chat, context_window: int = 8192) -> None:
        self._inner = inner
        self._window = context_window
        self._question = ""
        self._script: _Script | None = None
        self._facts: list[_Fact] = []
        self._usage = Usage()
        self._calls = 0

    @property
    def tool_mode(self) -> ToolMode:
        """Always `guided`."""
        return "guided"

    def prompt_tokens(self, request: ChatRequest) -> int:
        """Tokens of the request as given, though only small parts of it are ever sent."""
        return self._inner.prompt_tokens(request)

    def complete(self, request: ChatRequest) -> ChatReply:
        """The next call, after as many small calls as it takes to decide on it."""
        self._usage = Usage()
        if not request.functions:
            return self._inner.complete(request)
        if len(request.functions) == 1:
            # A bound was reached: what is known is the answer.
            return self._reply(self._send(self._facts[-1:]))
        question = _question_of(request.messages)
        result = _last_result(request.messages)
        if self._script is None or question != self._question:
            self._question = question
            self._facts = []
            self._script = self._answer(question, result)
            return self._reply(next(self._script))
        try:
            return self._reply(self._script.send(result))
        except StopIteration:
            # The answer was sent and came back: it is sent again as it is.
            return self._reply(self._send(self._facts))

    # ---- the script --------------------------------------------------------------------------

    def _answer(self, question: str, first_result: str) -> _Script:
        shown = {_query(question): first_result}
        plan: tuple[str, ...] = ()
        if _COMPARES.search(_folded(question)) or _CJK.search(question):
            plan = self._plan(question)
        if plan:
            found = yield from self._follow(plan, shown)
        else:
            found = yield from self._unfold(question, shown)
        yield self._send(self._facts if found else [], comparison=_is_comparison(plan))

    def _follow(self, plan: Sequence[str], shown: dict[str, str]) -> Generator[ToolCall, str, bool]:
        """Each look-up of a plan in turn; whether all were answered."""
        for look_up in plan:
            fact = yield from self._look_up(_filled(look_up, self._facts), shown)
            if fact is None:
                return False
            yield from self._note(fact)
        return True

    def _unfold(self, question: str, shown: dict[str, str]) -> Generator[ToolCall, str, bool]:
        """Find out what the question only describes, put it in, and ask what is left."""
        asked = question
        for _ in range(MOST_LOOK_UPS - 1):
            description = self._description(asked)
            if not description:
                break
            fact = yield from self._look_up(asking_for(description), shown)
            if fact is None:
                break
            yield from self._note(fact)
            asked = asked.replace(description, fact.answer)
        last = yield from self._look_up(asked, shown)
        if last is not None:
            yield from self._note(last)
        return last is not None

    def _note(self, fact: _Fact) -> Generator[ToolCall, str, None]:
        self._facts.append(fact)
        note = f"{fact.look_up} {fact.answer} [{fact.passage_id}]"
        yield self._call("core_memory_append", section="notes", content=note)

    def _look_up(self, asked: str, shown: dict[str, str]) -> Generator[ToolCall, str, _Fact | None]:
        """Search, then read passages one by one; once more in other words."""
        read: set[str] = set()
        for again in (False, True):
            query = _query(self._rephrased(asked) if again else asked)
            page, last = 0, 0
            while page <= last and page < PAGES_PER_LOOK_UP and len(read) < READS_PER_LOOK_UP:
                result = shown.get(query, "") if page == 0 else ""
                if not result:
                    result = yield self._call("archival_memory_search", query=query, page=page)
                last = _last_page(result)
                fact = self._read_page(asked, _passages(result), read)
                if fact is not None:
                    return fact
                page += 1
        return None

    def _read_page(self, asked: str, passages: Sequence[_Seen], read: set[str]) -> _Fact | None:
        """The first acceptable answer; passages that hold more of the names are read first."""
        promising = [
            (coverage, passage)
            for passage in passages
            if passage.passage_id not in read and (coverage := _coverage(asked, passage)) > 0
        ]
        promising.sort(key=lambda pair: -pair[0])
        for coverage, passage in promising:
            if coverage < NAMES_NEEDED or len(read) >= READS_PER_LOOK_UP:
                continue
            read.add(passage.passage_id)
            answer = self._read(asked, passage)
            quote = accepted_quote(asked, answer, passage.text)
            if quote:
                return _Fact(asked, answer, passage.passage_id, quote)
        return None

    # ---- the small calls ---------------------------------------------------------------------

    def _plan(self, question: str) -> tuple[str, ...]:
        """Look-ups that together drop no name or number of the question; empty without any."""
        examples = [(text, as_json("steps", list(steps))) for text, steps in PLAN_EXAMPLES]
        steps: JSONValue = {"type": "array", "items": {"type": "string"}, "maxItems": MOST_LOOK_UPS}
        said = self._ask(PLAN, examples, question, "steps", steps, _PLAN_TOKENS)
        plan = tuple(str(step).strip() for step in said) if isinstance(said, list) else ()
        # A single look-up is the question itself, for which there are results already.
        return plan if len(plan) > 1 and _sound(plan, question) else ()

    def _description(self, asked: str) -> str:
        """What the question describes instead of naming it; the model chooses where it ends."""
        candidates: list[JSONValue] = [*descriptions(asked)]
        if not candidates:
            return ""
        examples = [(text, as_json("description", phrase)) for text, phrase in DESCRIBED_EXAMPLES]
        choice: JSONValue = {"type": "string", "enum": candidates}
        said = self._ask(DESCRIBED, examples, asked, "description", choice, _ANSWER_TOKENS)
        return said if isinstance(said, str) and said in candidates else ""

    def _rephrased(self, asked: str) -> str:
        """The look-up in other words, with all of its names; else the names alone."""
        examples = [(given, as_json("question", other)) for given, other in REPHRASE_EXAMPLES]
        said = self._ask(
            REPHRASE, examples, asked, "question", {"type": "string"}, 2 * _ANSWER_TOKENS
        )
        other = said.strip() if isinstance(said, str) else ""
        if other and other != asked and set(_names(asked)) <= set(_names(f"x {other}")):
            return other
        return " ".join(_names(asked)) or asked

    def _read(self, asked: str, passage: _Seen) -> str:
        examples = [(reading(p, q), as_json("answer", a)) for p, q, a in READ_EXAMPLES]
        title = passage.place.rsplit(" p. ", 1)[0].rsplit("/", 1)[-1]
        text = reading(f"{title}\n{excerpt(asked, passage.text)}", asked)
        said = self._ask(READ, examples, text, "answer", {"type": "string"}, _ANSWER_TOKENS)
        return said.strip().strip(".。") if isinstance(said, str) else ""

    def _compared(self, facts: Sequence[_Fact]) -> str:
        lines = "\n".join(f"{fact.look_up} {fact.answer}" for fact in facts)
        example = (comparing(COMPARE_EXAMPLE[0], COMPARE_EXAMPLE[1]), COMPARE_EXAMPLE[2])
        said = self._ask(
            COMPARE,
            [(example[0], as_json("answer", example[1]))],
            comparing(lines, self._question),
            "answer",
            {"type": "string"},
            _ANSWER_TOKENS,
        )
        return said.strip().strip(".。") if isinstance(said, str) else ""

    def _ask(
        self,
        instructions: str,
        examples: Sequence[tuple[str, str]],
        text: str,
        key: str,
        schema: JSONValue,
        max_tokens: int,
    ) -> JSONValue:
        """One constrained call; None where the reply is unusable or the prompt too long."""
        messages: list[Message] = [SystemMessage(instructions)]
        for given, wanted in examples:
            messages += [UserMessage(given), AssistantMessage(wanted)]
        request = ChatRequest(
            (*messages, UserMessage(text)),
            response_schema={
                "type": "object",
                "properties": {key: schema},
                "required": [key],
                "additionalProperties": False,
            },
            max_tokens=max_tokens,
        )
        if self._inner.prompt_tokens(request) + max_tokens > self._window:
            return None
        reply = self._inner.complete(request)
        self._usage += reply.usage
        try:
            said = json.loads(reply.message.text)
        except ValueError:
            return None
        value: JSONValue = said.get(key) if isinstance(said, dict) else None
        return value

    # ---- calls -------------------------------------------------------------------------------

    def _send(self, facts: Sequence[_Fact], *, comparison: bool = False) -> ToolCall:
        if not facts:
            return self._call("send_message", message="", citations=[], not_found=True)
        answer = (comparison and self._compared(facts)) or facts[-1].answer
        citations: list[JSONValue] = [
            {"passage_id": fact.passage_id, "quote": fact.quote} for fact in facts
        ]
        return self._call("send_message", message=answer, citations=citations, not_found=False)

    def _call(self, name: str, **arguments: JSONValue) -> ToolCall:
        self._calls += 1
        if name != "send_message":
            arguments["request_heartbeat"] = True
        return ToolCall(f"g{self._calls}", name, json.dumps(arguments, ensure_ascii=False))

    def _reply(self, call: ToolCall) -> ChatReply:
        return ChatReply(AssistantMessage("", (call,)), self._usage, "calls")


# ---- what is in the messages ---------------------------------------------------------------------


def _question_of(messages: Sequence[Message]) -> str:
    asked = [m.text for m in messages if isinstance(m, UserMessage) and m.kind == "question"]
    return asked[-1] if asked else ""


def _last_result(messages: Sequence[Message]) -> str:
    results = [message.text for message in messages if isinstance(message, ToolResult)]
    return results[-1] if results else ""


def _passages(result: str) -> list[_Seen]:
    headers = [*_HEADER.finditer(result)]
    starts = [header.start() for header in headers] + [len(result)]
    return [
        _Seen(
            header.group(1), header.group(2), _CUT_NOTE.sub("", result[header.end() : end]).strip()
        )
        for header, end in zip(headers, starts[1:], strict=True)
    ]


def _last_page(result: str) -> int:
    first = _FIRST_LINE.match(result)
    return int(first.group(2)) if first else 0


# ---- words and names -----------------------------------------------------------------------------


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _terms(text: str) -> set[str]:
    """Words that carry meaning, and pairs of CJK characters."""
    folded = _folded(text)
    pairs = {run[at : at + 2] for run in _CJK.findall(folded) for at in range(len(run) - 1)}
    words = {word for word in _WORD.findall(_CJK.sub(" ", folded)) if word not in _STOP}
    return pairs | {word for word in words if len(word) > 1 or word.isdigit()}


def _names(text: str) -> list[str]:
    """Capitalised words but a sentence's first, words with a digit, and what is quoted."""
    words = re.findall(r"[^\W_][\w'\u2019.-]*", _CJK.sub(" ", text))
    named = [
        word.strip(".-'\u2019").removesuffix("'s").removesuffix("\u2019s")
        for position, word in enumerate(words)
        if any(letter.isdigit() for letter in word) or (position and word[:1].isupper())
    ]
    return [word for word in dict.fromkeys(named) if word.casefold() not in _STOP]


def _query(text: str) -> str:
    return " ".join(text.split())


def _coverage(asked: str, passage: _Seen) -> float:
    """Share of the names (else of all terms) of a look-up that the passage or its title holds."""
    there = _terms(f"{passage.place} {passage.text}")
    names = {term for name in _names(asked) for term in _terms(name)}
    if names:
        return len(names & there) / len(names)
    wanted = _terms(asked)
    share = len(wanted & there) / len(wanted) if wanted else 0.0
    # Without names (in Chinese mostly) there is nothing that must stand there: the ranking decides
    # what is read, and the overlap in which order.
    return max(NAMES_NEEDED, share) if share else 0.0


def _sound(plan: Sequence[str], question: str) -> bool:
    """Whether a plan is one chain or one comparison, and drops no name or number.

    A look-up beside the chain would be answered by whatever passes first, and be taken for the end
    of it.
    """
    if not plan or not all(plan) or _REFERENCE.search(plan[0]):
        return False
    chained = all(_REFERENCE.search(step) for step in plan[1:])
    if not chained and not (_is_comparison(plan) and _COMPARES.search(_folded(question))):
        return False
    for position, step in enumerate(plan):
        if any(not 1 <= int(number) <= position for number in _REFERENCE.findall(step)):
            return False
    names = {name.casefold() for name in _names(question)}
    return names <= set(_WORD.findall(_folded(" ".join(plan)))) | {
        name.casefold() for name in _names("x " + " ".join(plan))
    }


def _filled(look_up: str, facts: Sequence[_Fact]) -> str:
    """The look-up with the answers found so far in the place of #1, #2, …"""

    def answer(reference: re.Match[str]) -> str:
        number = int(reference.group(1)) - 1
        return facts[number].answer if number < len(facts) else reference.group()

    return _REFERENCE.sub(answer, look_up)


def _is_comparison(plan: Sequence[str]) -> bool:
    """Several look-ups of which none needs another's answer."""
    return len(plan) > 1 and not any(_REFERENCE.search(step) for step in plan)


# ---- descriptions --------------------------------------------------------------------------------


def descriptions(asked: str) -> list[str]:
    """Phrases of a question that describe a thing by one fact, with every end they may have.

    The innermost ones alone: what is described within a description has to be known first.

        >>> descriptions("When was the mill built that Ann Hale drew?")
        ['the mill built that Ann Hale', 'the mill built that Ann Hale drew']
        >>> descriptions("When was the mill at Orrin Ford opened?")
        []
    """
    words = list(re.finditer(r"\S+", asked))
    found: dict[str, None] = {}
    for first, start in enumerate(words):
        if start.group().casefold() not in ("the", "a", "an"):
            continue
        for end in range(first + 3, min(len(words), first + _LONGEST_DESCRIPTION)):
            phrase = asked[start.start() : words[end].end()].rstrip("?.,;:!").removesuffix("'s")
            outside = len(words) - (end - first + 1)
            broken = end + 1 < len(words) and all(
                words[at].group()[0].isupper() for at in (end, end + 1)
            )
            if outside >= 2 and not broken and _describes_once(phrase):
                found[phrase] = None
    return list(found)[:_MOST_DESCRIPTIONS]


def _describes_once(phrase: str) -> bool:
    """Whether the phrase is one description that is whole and has a name or number in it."""
    describing = [*_DESCRIBES.finditer(phrase)]
    if len(describing) != 1 or phrase.split()[-1].casefold() in _STOP or " what " in phrase:
        return False
    before, after = phrase[: describing[0].start()], phrase[describing[0].end() :]
    nested = re.search(r"\s(?:the|an?)\s", before)
    return not nested and any(letter.isupper() or letter.isdigit() for letter in after)


def asking_for(description: str) -> str:
    """The look-up for a described thing.

    >>> asking_for("the engineer who drew the Hallow Bridge")
    'Who is the engineer who drew the Hallow Bridge?'
    """
    head = " ".join(description.split()[:4])
    return f"{'Who' if _PERSON.search(head) else 'What'} is {description}?"


# ---- sentences -----------------------------------------------------------------------------------


def _sentences(text: str) -> list[tuple[int, int]]:
    """Spans that together are the text: sentences, and lines too short to be running prose."""
    cuts = {0, len(text)}
    cuts.update(match.end() for match in _SENTENCE_END.finditer(text))
    start = 0
    for line in text.splitlines(keepends=True):
        if len(line) < _SHORT_LINE:
            cuts.update((start, start + len(line)))
        start += len(line)
    ordered = sorted(cuts)
    return [(begin, end) for begin, end in itertools.pairwise(ordered) if text[begin:end].strip()]


def excerpt(asked: str, text: str) -> str:
    """The sentences nearest to the look-up, in order, about 800 characters."""
    if len(text) <= EXCERPT_CHARACTERS:
        return text
    spans = _sentences(text)
    wanted = _terms(asked)
    scores = [len(wanted & _terms(text[begin:end])) for begin, end in spans]
    around = [2 * score + sum(scores[max(0, at - 1) : at + 2]) for at, score in enumerate(scores)]
    kept: set[int] = set()
    room = EXCERPT_CHARACTERS
    for at in sorted(range(len(spans)), key=lambda at: (-around[at], at)):
        size = spans[at][1] - spans[at][0]
        if size <= room or not kept:
            kept.add(at)
            room -= size
    return " ".join(text[begin:end].strip() for at, (begin, end) in enumerate(spans) if at in kept)


def accepted_quote(asked: str, answer: str, text: str) -> str:
    """The words of the passage that state the answer, or nothing where a check in code fails.

    The answer stands in the passage, is not taken from the look-up, and is of the kind that was
    asked for. The quote is verbatim, with at least four words or six CJK characters.
    """
    wanted = " ".join(answer.split())
    if not wanted or _folded(wanted) in ("none", "unknown", "not stated", "无", "没有"):
        return ""
    if not _terms(wanted) - _terms(asked) or not _fits(asked, wanted):
        return ""
    spans = _sentences(text)
    holding = [at for at, span in enumerate(spans) if _stands_in(wanted, text[span[0] : span[1]])]
    if not holding:
        return ""
    terms = _terms(asked)

    def nearness(at: int) -> tuple[int, int, int]:
        own = text[spans[at][0] : spans[at][1]]
        return len(terms & _terms(own)), len(terms & _terms(_around(text, spans, at))), -at

    return _long_enough(text, spans, max(holding, key=nearness))


def _stands_in(answer: str, text: str) -> bool:
    flat = " ".join(_folded(text).split())
    found = re.search(rf"(?<![^\W_]){re.escape(_folded(answer))}(?![^\W_])", flat)
    return found is not None or (bool(_CJK.search(answer)) and _folded(answer) in flat)


def _around(text: str, spans: Sequence[tuple[int, int]], at: int) -> str:
    return text[spans[max(0, at - 1)][0] : spans[min(len(spans) - 1, at + 1)][1]]


def _long_enough(text: str, spans: Sequence[tuple[int, int]], at: int) -> str:
    first = last = at
    while True:
        quote = text[spans[first][0] : spans[last][1]].strip()
        whole = first == 0 and last == len(spans) - 1
        if whole or len(quote.split()) >= 4 or len("".join(_CJK.findall(quote))) >= 6:
            return quote
        first, last = (first - 1, last) if first else (first, last + 1)


def _kinds(asked: str) -> Iterator[str]:
    folded = _folded(asked)
    if re.search(
        r"\b(when|what year|which year|what date|which date)\b|何时|哪年|哪一年|几年|日期", folded
    ):
        yield "date"
    if re.search(
        r"\bhow (many|much|long|big|high|deep|tall|old|far|wide|heavy)\b|多少|几|多高|多深|多长",
        folded,
    ):
        yield "number"
    if re.search(r"^(who|whom|whose)\b|谁", folded):
        yield "person"


def _fits(asked: str, answer: str) -> bool:
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
