"""`GuidedChat`: lets a small model drive the same functions as any other, in steps it can do.

It is a `Chat` around another `Chat`, not an agent: given the messages it returns the next function
call. Small models (1-4B) repeat themselves when they run the loop, but read one passage well. So
the program plans (a few-shot call splits the question), searches, hands over one passage at a
time, accepts the first answer that passes checks in code, notes it in working context, and sends
the message. docs/guided.md has what was tried and measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from docpager.function_results import FunctionResult, SearchPage
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
from docpager.models.guided.evidence import (
    NAMES_NEEDED,
    NAMES_TOGETHER,
    SeenPassage,
    accepted_quote,
    coverage,
    excerpt,
    in_context,
    is_heading,
    is_named,
    seen_passages,
    shared,
)
from docpager.models.guided.prompts import (
    COMPARE,
    COMPARE_EXAMPLES,
    CONFIRM,
    CONFIRM_EXAMPLES,
    DESCRIBED,
    DESCRIBED_EXAMPLES,
    PLAN,
    PLAN_EXAMPLES,
    READ,
    READ_EXAMPLES,
    REPHRASE,
    REPHRASE_EXAMPLES,
    SIDE,
    SIDE_EXAMPLES,
    as_json,
    claiming,
    comparing,
    reading,
)
from docpager.models.guided.questions import (
    Description,
    descriptions,
    filled,
    is_chinese,
    is_comparison,
    is_sound,
    names,
    two_sides,
)
from docpager.protocols import Chat
from docpager.types import JSONValue, ToolMode, Usage

MOST_LOOK_UPS = 4
PAGES_PER_LOOK_UP = 3
READS_PER_LOOK_UP = 8
"""Passages read for one look-up before it is given up: each takes some seconds."""
_ANSWER_TOKENS = 48
_PLAN_TOKENS = 160
_VERDICT_TOKENS = 16

_NOT_THERE = re.compile(r"[;,] none$")
"""What it says of the second half of a question, where the passage has the first alone."""

_Results: TypeAlias = dict[str, FunctionResult | None]
"""What each query found, so that none is searched for twice."""
_Found = TypeVar("_Found")
_Script: TypeAlias = Generator[ToolCall, FunctionResult | None, _Found]
"""Makes calls, is sent the result of each, and returns what it found."""


@dataclass(frozen=True, slots=True)
class _Fact:
    """An accepted answer to one look-up, with the words that state it."""

    look_up: str
    answer: str
    passage_id: str
    quote: str


class GuidedChat:
    """Mode `guided` around a small model whose replies a JSON schema can constrain.

    `context_window` bounds the small prompts; those of the agent are never sent to the model.
    """

    def __init__(self, inner: Chat, context_window: int = 8192) -> None:
        self._inner = inner
        self._window = context_window
        self._question = ""
        self._script: _Script[None] | None = None
        self._facts: list[_Fact] = []
        self._is_answered = False
        """Whether the last of the facts is what the question asks for."""
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
            # A limit was reached. A fact on the way to the answer is no answer.
            return self._reply(self._send(self._facts[-1:] if self._is_answered else []))
        question = _question_of(request.messages)
        result = _last_result(request.messages)
        if self._script is None or question != self._question:
            self._question = question
            self._facts, self._is_answered = [], False
            self._script = self._answer(question, result)
            return self._reply(next(self._script))
        try:
            return self._reply(self._script.send(result))
        except StopIteration:
            # The answer was sent and came back: it is sent again as it is.
            return self._reply(self._send(self._facts))

    # ---- the script --------------------------------------------------------------------------

    def _answer(self, question: str, first_result: FunctionResult | None) -> _Script[None]:
        shown = {_query(question): first_result}
        plan = self._sides(question) or (self._plan(question) if is_chinese(question) else ())
        if plan:
            found = yield from self._follow(plan, shown)
        else:
            found = yield from self._unfold(question, shown)
        yield self._send(self._facts if found else [], comparison=is_comparison(plan))

    def _follow(self, plan: Sequence[str], shown: _Results) -> _Script[bool]:
        """Each look-up of a plan in turn; whether all were answered."""
        for look_up in plan:
            fact = yield from self._look_up(
                filled(look_up, [fact.answer for fact in self._facts]), shown
            )
            if fact is None:
                return False
            self._is_answered = look_up == plan[-1] and not is_comparison(plan)
            yield from self._note(fact)
        return True

    def _unfold(self, question: str, shown: _Results) -> _Script[bool]:
        """Find out what the question only describes, put it in, and ask what is left."""
        asked = question
        for _ in range(MOST_LOOK_UPS - 1):
            description = self._description(asked)
            if description is None:
                break
            fact = yield from self._look_up(description.look_up, shown)
            if fact is None:
                break
            yield from self._note(fact)
            asked = description.named(asked, fact.answer)
        last = yield from self._look_up(asked, shown)
        if last is not None:
            self._is_answered = True
            yield from self._note(last)
        return last is not None

    def _note(self, fact: _Fact) -> _Script[None]:
        self._facts.append(fact)
        note = f"{fact.look_up} {fact.answer} [{fact.passage_id}]"
        yield self._call("core_memory_append", section="notes", content=note)

    def _look_up(self, asked: str, shown: _Results) -> _Script[_Fact | None]:
        """Search as asked and in other words, page by page, and read passages one by one.

        The first answer that its own sentence confirms; else, of those that are confirmed by more
        of their passage, the one whose surroundings share most words with the look-up.
        """
        read: set[str] = set()
        seen: dict[str, SeenPassage] = {}
        possible: list[tuple[int, _Fact]] = []
        queries = [_query(asked)]
        last_page: dict[str, int] = {}
        for page in range(PAGES_PER_LOOK_UP):
            for at in range(2):
                if at == len(queries):
                    queries.append(_query(self._rephrased(asked)))
                query = queries[at]
                if len(read) >= READS_PER_LOOK_UP or page > last_page.get(query, page):
                    continue
                result = shown.get(query) if page == 0 else None
                if result is None:
                    result = yield self._call("archival_memory_search", query=query, page=page)
                last_page[query] = _last_page(result)
                passages = seen_passages(result)
                for passage in passages:
                    seen.setdefault(passage.passage_id, passage)
                fact = self._first_confirmed(
                    asked, self._promising(asked, passages, read), possible
                )
                if fact is not None:
                    return fact
        if not possible:
            # The names of a question may stand apart: each in a passage of its own.
            rest = self._nearest(asked, [*seen.values()], read)
            fact = self._first_confirmed(asked, rest, possible, naming=True)
            if fact is not None:
                return fact
        return max(possible, key=lambda pair: pair[0])[1] if possible else None

    def _first_confirmed(
        self,
        asked: str,
        passages: Iterable[SeenPassage],
        possible: list[tuple[int, _Fact]],
        *,
        naming: bool = False,
    ) -> _Fact | None:
        """The first that its own sentence confirms; one that needs more text is `possible`.

        With `naming`, only what is stated of something that the look-up names.
        """
        for passage in passages:
            fact = self._stated(asked, passage)
            if fact is None or (naming and not is_named(asked, fact.answer, fact.quote, passage)):
                continue
            if self._confirmed(fact, f"{passage.title}: {fact.quote}"):
                return fact
            around = in_context(fact.quote, passage)
            if self._confirmed(fact, around):
                possible.append((shared(asked, around), fact))
        return None

    def _promising(
        self, asked: str, passages: Sequence[SeenPassage], read: set[str]
    ) -> Iterator[SeenPassage]:
        """What is worth reading and not `read` yet, with more of the names first; marks it read."""
        unread = [passage for passage in passages if passage.passage_id not in read]
        shares = {passage: coverage(asked, passage) for passage in unread}
        promising = [passage for passage in unread if shares[passage] >= NAMES_NEEDED]
        promising.sort(key=lambda passage: (is_heading(passage), -shares[passage]))
        for passage in promising[: READS_PER_LOOK_UP - len(read)]:
            read.add(passage.passage_id)
            yield passage

    def _nearest(
        self, asked: str, passages: Sequence[SeenPassage], read: set[str]
    ) -> Sequence[SeenPassage]:
        """Those not `read` that hold half of the names, the most of them first."""
        shares = {p: coverage(asked, p) for p in passages if p.passage_id not in read}
        near = [passage for passage, share in shares.items() if share >= NAMES_TOGETHER]
        near.sort(key=lambda passage: -shares[passage])
        return near[: READS_PER_LOOK_UP - len(read)]

    def _stated(self, asked: str, passage: SeenPassage) -> _Fact | None:
        """What the model reads out of a passage, if it passes the checks in code."""
        answer = self._read(asked, passage)
        quote = accepted_quote(asked, answer, passage)
        return _Fact(asked, answer, passage.passage_id, quote) if quote else None

    # ---- the small calls ---------------------------------------------------------------------

    def _plan(self, question: str) -> tuple[str, ...]:
        """Look-ups that together drop no name or number of the question; empty without any."""
        examples = [(text, as_json("steps", list(steps))) for text, steps in PLAN_EXAMPLES]
        steps: JSONValue = {"type": "array", "items": {"type": "string"}, "maxItems": MOST_LOOK_UPS}
        said = self._ask(PLAN, examples, question, "steps", steps, _PLAN_TOKENS)
        plan = tuple(str(step).strip() for step in said) if isinstance(said, list) else ()
        # A single look-up is the question itself, for which there are results already.
        return plan if len(plan) > 1 and is_sound(plan, question) else ()

    def _sides(self, question: str) -> tuple[str, ...]:
        """The same look-up for each of two things compared: asked for one, put for the other."""
        sides = two_sides(question)
        if sides is None:
            return ()
        examples = [(text, as_json("look_up", one)) for text, one in SIDE_EXAMPLES]
        said = self._ask(SIDE, examples, question, "look_up", {"type": "string"}, _ANSWER_TOKENS)
        look_up = said.strip() if isinstance(said, str) else ""
        for one, other in (sides, sides[::-1]):
            if one in look_up and other not in look_up.replace(one, ""):
                pair = (look_up, look_up.replace(one, other))
                return pair if one == sides[0] else pair[::-1]
        return ()

    def _description(self, asked: str) -> Description | None:
        """What the question describes instead of naming it; the model chooses where it ends."""
        found = {description.phrase: description for description in descriptions(asked)}
        if not found:
            return None
        examples = [(text, as_json("description", phrase)) for text, phrase in DESCRIBED_EXAMPLES]
        choice: JSONValue = {"type": "string", "enum": [*found]}
        said = self._ask(DESCRIBED, examples, asked, "description", choice, _ANSWER_TOKENS)
        return found.get(said) if isinstance(said, str) else None

    def _rephrased(self, asked: str) -> str:
        """The look-up in other words, after those of its names that they dropped."""
        examples = [(given, as_json("question", other)) for given, other in REPHRASE_EXAMPLES]
        said = self._ask(
            REPHRASE, examples, asked, "question", {"type": "string"}, 2 * _ANSWER_TOKENS
        )
        other = said.strip() if isinstance(said, str) and said.strip() != asked else ""
        kept = names(f"x {other}")
        dropped = [name for name in names(asked) if name not in kept]
        return " ".join([*dropped, other]).strip() or asked

    def _read(self, asked: str, passage: SeenPassage) -> str:
        examples = [(reading(p, q), as_json("answer", a)) for p, q, a in READ_EXAMPLES]
        text = reading(f"{passage.title}\n{excerpt(asked, passage.text)}", asked)
        said = self._ask(READ, examples, text, "answer", {"type": "string"}, _ANSWER_TOKENS)
        return _NOT_THERE.sub("", said.strip()).strip(".。") if isinstance(said, str) else ""

    def _confirmed(self, fact: _Fact, sentence: str) -> bool:
        """Whether the model confirms the answer when it is shown the sentence that states it.

        Of 33 pairs that the sample questions led to, 11 of them wrong, it let 2 wrong ones pass by
        the sentence alone and turned 7 right ones away, which a longer context gave back.
        """
        examples = [
            (claiming(stated, question, given), as_json("answered", verdict))
            for stated, question, given, verdict in CONFIRM_EXAMPLES
        ]
        text = claiming(sentence, fact.look_up, fact.answer)
        choice: JSONValue = {"type": "string", "enum": ["yes", "no"]}
        return self._ask(CONFIRM, examples, text, "answered", choice, _VERDICT_TOKENS) == "yes"

    def _compared(self, facts: Sequence[_Fact]) -> str:
        lines = "\n".join(f"{fact.look_up} {fact.answer}" for fact in facts)
        examples = [
            (comparing(known, asked), as_json("answer", answer))
            for known, asked, answer in COMPARE_EXAMPLES
        ]
        text = comparing(lines, self._question)
        said = self._ask(COMPARE, examples, text, "answer", {"type": "string"}, _ANSWER_TOKENS)
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


def _last_result(messages: Sequence[Message]) -> FunctionResult | None:
    results = [message.result for message in messages if isinstance(message, ToolResult)]
    return results[-1] if results else None


def _last_page(result: FunctionResult | None) -> int:
    return result.last_page if isinstance(result, SearchPage) else 0


def _query(text: str) -> str:
    return " ".join(text.split())
