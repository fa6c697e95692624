"""Runs step by step, while they go on and afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from docpager.render.terminal import fitted, printable, say
from docpager.types import (
    JSONValue,
)
from docpager.unicode import shortened

if TYPE_CHECKING:
    from docpager.agent.runs import Run

_LINES = 6
"""Lines of an event's text that are shown unless all are asked for."""


class StepLines:
    """A trace that tells a watching person each step on standard error as it happens."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown

    def event(self, name: str, /, **fields: object) -> None:
        """Say what was called and how it came out; messages of other kinds are left out."""
        if not self._shown or name != "message":
            return
        for call in _calls(fields):
            say(f"  step {fields.get('step')}: {call}")
        if fields.get("role") == "tool":
            say(f"    {shortened(str(fields.get('text', '')).partition(chr(10))[0], 100)}")


def event_text(event: Mapping[str, JSONValue], full: bool) -> str:
    """One event of a run: step and kind, then what it says; long texts are cut unless `full`."""
    step = event.get("step")
    prefix = "" if step is None else f"step {step}  "
    if event.get("event") == "message":
        return printable(prefix + _message_text(event, full))
    lines = [f"{prefix}{event.get('event', 'event')}"]
    for name, value in event.items():
        if name in ("event", "step") or value in (None, "", [], {}):
            continue
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"    {name}: {_block(shown, full)}")
    return printable("\n".join(lines))


def _message_text(event: Mapping[str, JSONValue], full: bool) -> str:
    role, text = event.get("role"), str(event.get("text") or "")
    heads = {
        "user": str(event.get("kind")),
        "assistant": "model",
        "tool": f"{event.get('name')} {'failed' if event.get('failed') else 'returned'}",
    }
    lines = [heads.get(str(role), str(role))]
    if text:
        lines.append(f"    {_block(text, full)}")
    lines += [f"    -> {call if full else shortened(call, 160)}" for call in _calls(event)]
    return "\n".join(lines)


def _calls(event: Mapping[str, object]) -> list[str]:
    """`archival_memory_search {"query": "x", "page": 0}` for each call of a message."""
    calls = event.get("calls")
    found = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [f"{call.get('name')} {call.get('arguments')}" for call in found]


def _block(text: str, full: bool) -> str:
    """`text` indented under its head."""
    lines = text.split("\n")
    if not full and len(lines) > _LINES:
        more = f"… {len(lines) - _LINES} more lines (-v shows them)"
        lines = [*lines[:_LINES], more]
    return "\n        ".join(line if full else shortened(line, 160) for line in lines)


def run_record(run: Run, events: Sequence[Mapping[str, JSONValue]]) -> dict[str, JSONValue]:
    """A run as `trace --json` lists it."""
    return {
        "run_id": run.run_id,
        "at": run.at.isoformat(timespec="seconds"),
        "finished": run.finished,
        "question": _of_first(events, "question"),
        "status": _of_last(events, "status"),
    }


def run_line(run: Run, events: Sequence[Mapping[str, JSONValue]]) -> str:
    """A run on one line: id, time, outcome, question, cut at a terminal's width."""
    status = _of_last(events, "status") or ("finished" if run.finished else "unfinished")
    question = " ".join(str(_of_first(events, "question") or "").split())
    at = run.at.astimezone().strftime("%Y-%m-%d %H:%M")
    return fitted(printable(f"{run.run_id}  {at}  {status:11}  {question}"))


def _of_first(events: Sequence[Mapping[str, JSONValue]], name: str) -> JSONValue:
    return next((event[name] for event in events if event.get(name)), None)


def _of_last(events: Sequence[Mapping[str, JSONValue]], name: str) -> JSONValue:
    return _of_first(events[::-1], name)
