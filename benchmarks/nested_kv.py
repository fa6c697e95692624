"""Nested key-value look-ups (paper, section 3.2.2): chains of 1 to 8 among 20,000 UUID pairs.

A scripted caller that makes no mistakes answers over HTTP in each tool mode, in a window of 4,096
tokens. What is measured is therefore the memory: whether every value can be paged in, whether the
notes survive eviction, and whether any request outgrows the window.

    python benchmarks/nested_kv.py [--pairs 20000] [--window 4096]
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from docpager import answer_question, ingest_paths
from docpager.config import load
from docpager.messages import AssistantMessage
from docpager.models.tokens import counter_for
from docpager.prompts import SUMMARIZE
from docpager.testing import LoopbackReply, LoopbackRequest, LoopbackServer, call, say, wire_reply
from docpager.types import Answer, Usage

Mode = Literal["tools", "json", "text"]
LEVELS = range(1, 9)
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_QUESTION = re.compile(rf"key ({_UUID}) and look up (\d+) times")
_NOTE = re.compile(rf"(\d+) look-ups done \[(P\d+)\] Key ({_UUID}) has the value ({_UUID})\.")
_CUT = re.compile(r'\(cut; for the rest: read_document document="([^"]+)" page=(\d+) part=(\d+)\)')
_PART = re.compile(r"(?:Page|Section) \d+ of \d+, part (\d+)/(\d+)")
_ONWARD = re.compile(r"\(\[(P\d+)\] goes on: page=(\d+) part=0\)")
_RESULT = re.compile(r"Result of \w+: (.*)", re.DOTALL)
_ITEM = re.compile(r"^\[(P\d+)\]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Chain:
    """A question and its answer."""

    level: int
    start: str
    last: str

    @property
    def question(self) -> str:
        """Worded so that the caller can read start and length out of it."""
        return (
            f"Begin with the key {self.start} and look up {self.level} times, "
            "each value being the next key. What is the last value?"
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """One chain in one mode."""

    mode: Mode
    level: int
    right: bool
    steps: int
    largest_request: int
    """Tokens of prompt and reply reserve, counted from what came over the wire."""
    seconds: float


def make_pairs(count: int, seed: int) -> tuple[list[tuple[str, str]], list[Chain]]:
    """`count` pairs in random order, and one chain of each level through them."""
    drawn = random.Random(seed)

    def fresh() -> str:
        return str(uuid.UUID(int=drawn.getrandbits(128), version=4))

    pairs: list[tuple[str, str]] = []
    chains = []
    for level in LEVELS:
        keys = [fresh() for _ in range(level + 1)]
        pairs += itertools.pairwise(keys)
        chains.append(Chain(level, keys[0], keys[-1]))
    while len(pairs) < count:
        pairs.append((fresh(), fresh()))
    drawn.shuffle(pairs)
    return pairs, chains


class Hunt:
    """Where one key was looked for so far: pages of results, and parts of cut passages."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._page = -1
        self._passage = self._document = ""
        self._number = 1

    def next_call(self, last_result: str) -> AssistantMessage:
        """Read on in a passage that was cut, else turn to the next page of results."""
        cut = _CUT.search(last_result)
        if self._page >= 0 and cut is not None:
            self._passage = _ITEM.findall(last_result)[-1]
            self._document, self._number = cut.group(1), int(cut.group(2))
            return self._read(int(cut.group(3)))
        part = _PART.match(last_result)
        if part is not None and self._passage in _ITEM.findall(last_result):
            if part.group(1) != part.group(2):
                return self._read(int(part.group(1)) + 1)
            onward = _ONWARD.search(last_result)
            if onward is not None and onward.group(1) == self._passage:
                self._number = int(onward.group(2))
                return self._read(0)
        self._page += 1
        return self._search()

    def _search(self) -> AssistantMessage:
        page = max(0, self._page)
        return call("archival_memory_search", query=self._key, page=page, request_heartbeat=True)

    def _read(self, part: int) -> AssistantMessage:
        return call(
            "read_document",
            document=self._document,
            page=self._number,
            part=part,
            request_heartbeat=True,
        )


def perfect_reply(body: dict[str, Any], hunts: dict[str, Hunt]) -> AssistantMessage:
    """The next right call; what was found is known from this prompt alone, its notes included."""
    texts = [str(message.get("content") or "") for message in body["messages"]]
    if texts[0].startswith(SUMMARIZE[:40]):
        # Nothing of a summary is needed: what counts stands in the notes.
        return say("Earlier searches.")
    prompt = "\n".join(texts)
    found = _QUESTION.search(prompt)
    if found is None:
        raise ValueError("the question is not in the prompt")
    start, wanted = found.group(1), int(found.group(2))
    notes = _NOTE.findall(texts[-1])
    done, passage_id, key, value = notes[-1] if notes else ("0", "", "", start)
    if int(done) == wanted:
        quote = f"Key {key} has the value {value}."
        citation = {"passage_id": passage_id, "quote": quote}
        return call("send_message", message=value, citations=[citation], not_found=False)
    for shown_id, text in _shown(prompt):
        line = re.search(rf"Key {value} has the value {_UUID}\.", text)
        if line is not None:
            note = f"{int(done) + 1} look-ups done [{shown_id}] {line.group()}"
            return _noted(note, notes)
    return hunts.setdefault(value, Hunt(value)).next_call(_last_result(body))


def _last_result(body: dict[str, Any]) -> str:
    """The newest function result, whichever way the mode shows it."""
    for message in reversed(body["messages"]):
        text = str(message.get("content") or "")
        if message["role"] == "tool":
            return text
        shown = _RESULT.search(text)
        if message["role"] == "user" and shown is not None:
            return shown.group(1)
    return ""


def _noted(note: str, notes: list[tuple[str, str, str, str]]) -> AssistantMessage:
    if not notes:
        return call("core_memory_append", section="notes", content=note, request_heartbeat=True)
    done, passage_id, key, value = notes[-1]
    old = f"{done} look-ups done [{passage_id}] Key {key} has the value {value}."
    return call(
        "core_memory_replace",
        section="notes",
        old_content=old,
        new_content=note,
        request_heartbeat=True,
    )


def _shown(prompt: str) -> Iterator[tuple[str, str]]:
    """Passages in the prompt: id and text."""
    marks = list(_ITEM.finditer(prompt))
    starts = [mark.start() for mark in marks] + [len(prompt)]
    for mark, end in zip(marks, starts[1:], strict=True):
        yield mark.group(1), prompt[mark.end() : end]


class Caller:
    """Answers every request rightly and measures it."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._counter = counter_for("gpt-4o", load().cache_dir / "vocabularies")
        self.largest = 0
        self._hunts: dict[str, Hunt] = {}

    def __call__(self, request: LoopbackRequest) -> LoopbackReply:
        """One reply, with the token counts that a server would send."""
        body = request.body
        texts = [json.dumps(body.get("tools", ""), separators=(",", ":"))]
        for message in body["messages"]:
            texts.append(str(message.get("content") or ""))
            texts.append(json.dumps(message["tool_calls"]) if message.get("tool_calls") else "")
        tokens = sum(self._counter.count(text) for text in texts) + 4 * len(body["messages"])
        self.largest = max(self.largest, tokens + int(body["max_tokens"]))
        return wire_reply(
            perfect_reply(body, self._hunts), self._mode, usage=Usage(prompt_tokens=tokens)
        )


def run(folder: Path, pairs: int, window: int, seed: int = 7) -> list[Outcome]:
    """Every chain in every mode, over one archive of `pairs` pairs made in `folder`."""
    lines, chains = make_pairs(pairs, seed)
    corpus = folder / "corpus"
    corpus.mkdir()
    text = "\n".join(f"Key {key} has the value {value}." for key, value in lines)
    (corpus / "pairs.txt").write_text(text, encoding="utf-8")
    archive = folder / "pairs.duckdb"
    ingest_paths([corpus], archive=archive)
    outcomes = []
    for mode in get_args(Mode):
        caller = Caller(mode)
        with LoopbackServer(caller) as server:
            for chain in chains:
                caller.largest = 0
                began = time.perf_counter()
                answer = _ask(chain, archive, server, mode, window)
                outcomes.append(
                    Outcome(
                        mode,
                        chain.level,
                        answer.status == "answered" and answer.answer == chain.last,
                        answer.steps,
                        caller.largest,
                        time.perf_counter() - began,
                    )
                )
    return outcomes


def _ask(chain: Chain, archive: Path, server: LoopbackServer, mode: Mode, window: int) -> Answer:
    return answer_question(
        chain.question,
        archive=archive,
        model="loopback",
        base_url=server.base_url,
        tool_mode=mode,
        context_window=window,
        max_steps=200,
    )


def main() -> None:
    """Print one line a chain and mode, then the share that is right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--window", type=int, default=4096)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run(Path(folder), options.pairs, options.window)
    print("mode   level  right  steps  largest request  seconds")
    for outcome in outcomes:
        print(
            f"{outcome.mode:5} {outcome.level:6} {outcome.right!s:>6} {outcome.steps:6} "
            f"{outcome.largest_request:16} {outcome.seconds:8.2f}"
        )
    right = sum(outcome.right for outcome in outcomes)
    over = sum(outcome.largest_request > options.window for outcome in outcomes)
    print(f"{right} of {len(outcomes)} right; {over} with a request over {options.window} tokens")
    sys.exit(right < len(outcomes) or over > 0)


if __name__ == "__main__":
    main()
