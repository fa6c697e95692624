"""A folder with an archive, and endpoints that answer questions about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from docpager import ingest_paths
from docpager.testing import (
    LoopbackReply,
    LoopbackRequest,
    call,
    wire_reply,
)
from docpager.types import Usage
from tests import desk

FACTS = {
    f"pump {n}": f"Pump {n} was made in the town of Graz{n} in the year {1900 + n}."
    for n in range(1, 9)
}


class Desk(desk.Desk):
    """A desk with files of one object a line."""

    def write(self, name: str, rows: Iterable[object]) -> Path:
        path = self.folder / name
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    def rows(self, name: str) -> list[dict[str, Any]]:
        text = (self.folder / name).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]


def make_desk(folder: Path) -> Desk:
    """A desk with one document of eight facts."""
    corpus = folder / "corpus"
    corpus.mkdir()
    for name, fact in FACTS.items():
        text = f"# About {name}\n\n{fact}\n"
        (corpus / f"{name.replace(' ', '-')}.md").write_text(text, encoding="utf-8")
    ingest_paths([corpus], archive=folder / "docpager.duckdb")
    return Desk(folder)


def questions(count: int = 8) -> list[dict[str, Any]]:
    """Questions about the facts, in order, each with its answer."""
    return [
        {
            "id": f"q{n}",
            "question": f"Where was pump {n} made?",
            "expected": f"Graz{n}",
            "expected_documents": [f"pump-{n}.md"],
            "tags": ["odd" if n % 2 else "even"],
        }
        for n in range(1, count + 1)
    ]


def right(request: LoopbackRequest, root: str = "corpus") -> LoopbackReply:
    """Answers with what the passage about the pump says."""
    text = " ".join(str(message["content"]) for message in request.body["messages"])
    asked = re.search(r"Where was pump (\d+) made", text)
    if asked is None:  # the probe for the tool mode
        return wire_reply(call("look_up", query="archive", page=0))
    n = asked[1]
    found = re.search(rf"\[(P\d+)\] {root}/pump-{n}\.md", text)
    assert found is not None, text[-2000:]
    reply = call(
        "send_message",
        message=f"Graz{n}",
        citations=[{"passage_id": found[1], "quote": FACTS[f"pump {n}"]}],
        not_found=False,
    )
    return wire_reply(reply, usage=Usage(100, 0, 10))


def model(base_url: str) -> tuple[str, ...]:
    """The options that name a loopback endpoint."""
    return ("--model", "loopback", "--base-url", base_url, "--tool-mode", "tools")
