"""Answers a question set with a model and scores it, per kind of question.

    python benchmarks/questions.py sample                      # sample_docs, embedded, guided
    python benchmarks/questions.py sample --mode json --limit 6
    python benchmarks/questions.py hotpotqa --limit 15         # reads $DOCPAGER_SHARED/data
    python benchmarks/questions.py musique --limit 15

The archive is made once in build/bench and used again. Each answer is a line of
build/bench/NAME-MODE.jsonl as it comes; questions that are there already are not asked again
(--again forgets them). A question counts as right when F1 >= 0.6 against its best accepted
answer, or when its status is the expected one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from docpager import answer_question, ingest_paths
from docpager.scoring import best, exact_match, f1, recall
from docpager.types import Answer, PageRef

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "bench"
SHARED = Path(os.environ.get("DOCPAGER_SHARED", ROOT.parent / "shared"))
PASS_AT = 0.6


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what is expected of its answer."""

    id: str
    text: str
    kind: str
    expected: tuple[str, ...]
    pages: tuple[PageRef, ...]
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One answered question, as it is kept."""

    id: str
    kind: str
    question: str
    expected: tuple[str, ...]
    answer: str
    status: str
    right: bool
    exact_match: float
    f1: float
    read_recall: float
    verified: int
    steps: int
    searches: int
    pages_read: int
    seconds: float
    tokens: int
    stopped_by: str | None = None
    error: str | None = None
    miss: str = ""


def load_set(name: str, limit: int | None) -> tuple[Path, list[Question]]:
    """The folder to ingest and the questions; of a large set, `limit` evenly spaced ones."""
    if name == "sample":
        return ROOT / "sample_docs", _sample()[:limit]
    source = SHARED / "data" / f"multihop_{name}"
    questions = _multihop(source, name)
    step = len(questions) / min(limit or len(questions), len(questions))
    spaced = [questions[int(number * step)] for number in range(limit or len(questions))]
    return _as_folder(source, BUILD / f"{name}-corpus"), spaced


def _sample() -> list[Question]:
    lines = (ROOT / "sample_docs" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        Question(
            row["id"],
            row["question"],
            row["tags"][0],
            tuple(row.get("expected", ())),
            tuple(
                PageRef(page["document"], page["page"]) for page in row.get("expected_pages", ())
            ),
            row.get("expected_status"),
        )
        for row in map(json.loads, lines)
    ]


def _multihop(source: Path, name: str) -> list[Question]:
    lines = (source / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        Question(
            row["id"],
            row["question"],
            row["type"],
            tuple(row["answers"]),
            tuple(PageRef(f"{name}-corpus/{gold}.md", 1) for gold in row["gold_ids"]),
        )
        for row in map(json.loads, filter(None, lines))
    ]


def _as_folder(source: Path, folder: Path) -> Path:
    """A corpus of JSON lines as a folder of Markdown files, one for each paragraph."""
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        partial.mkdir(parents=True, exist_ok=True)
        for line in (source / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            text = f"# {row['title']}\n\n{row['text']}\n"
            (partial / f"{row['id']}.md").write_text(text, encoding="utf-8")
        partial.rename(folder)
    return folder


def score(question: Question, answer: Answer) -> Row:
    """The answer beside what was expected, and where a miss was lost."""
    overlap = best(f1, answer.answer, question.expected)
    said = answer.status in ("answered", "unsupported")
    if question.status is not None:
        right = answer.status == question.status
    else:
        right = said and overlap >= PASS_AT
    read = recall(answer.pages_shown, question.pages)
    return Row(
        id=question.id,
        kind=question.kind,
        question=question.text,
        expected=question.expected,
        answer=answer.answer,
        status=answer.status,
        right=right,
        exact_match=best(exact_match, answer.answer, question.expected) if said else 0.0,
        f1=overlap if said else 0.0,
        read_recall=read,
        verified=sum(citation.verified for citation in answer.citations),
        steps=answer.steps,
        searches=answer.searches,
        pages_read=answer.pages_read,
        seconds=answer.elapsed_s,
        tokens=answer.usage.total_tokens,
        stopped_by=answer.stopped_by,
        error=answer.error,
        miss="" if right else ("gold shown, answered wrong" if read == 1.0 else "gold not shown"),
    )


def table(rows: Sequence[Row]) -> str:
    """One line a kind, then all."""
    kinds: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        kinds[row.kind].append(row)
    if len(kinds) > 1:
        kinds["all"] = list(rows)
    lines = [
        "| kind | n | right | answered | exact match | F1 | gold pages read | s/question "
        "| tokens/question |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind, group in kinds.items():
        n = len(group)

        def mean(values: Sequence[float], n: int = n) -> float:
            return sum(values) / n

        lines.append(
            f"| {kind} | {n} | {sum(row.right for row in group)} "
            f"| {sum(row.status == 'answered' for row in group)} "
            f"| {mean([row.exact_match for row in group]):.2f} "
            f"| {mean([row.f1 for row in group]):.2f} "
            f"| {mean([row.read_recall for row in group]):.2f} "
            f"| {mean([row.seconds for row in group]):.0f} "
            f"| {mean([row.tokens for row in group]):.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Ask what is not answered yet, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("set", choices=["sample", "hotpotqa", "musique"])
    parser.add_argument("--mode", choices=["guided", "json", "text", "tools"], default="guided")
    parser.add_argument("--model", default="local")
    parser.add_argument("--base-url")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--window", type=int, default=8192)
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    folder, questions = load_set(options.set, options.limit)
    archive = BUILD / f"{options.set}.duckdb"
    if not archive.exists():
        print(f"ingesting {folder}", file=sys.stderr)
        ingest_paths([folder], archive=archive)
    kept = BUILD / f"{options.set}-{options.mode}.jsonl"
    if options.again:
        kept.unlink(missing_ok=True)
    rows = _kept_rows(kept)
    for number, question in enumerate(questions, 1):
        if question.id in rows:
            continue
        answer = answer_question(
            question.text,
            archive=archive,
            model=options.model,
            base_url=options.base_url,
            tool_mode=options.mode,
            context_window=options.window,
            timeout=options.timeout,
        )
        row = score(question, answer)
        with kept.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
        rows[row.id] = row
        mark = "right" if row.right else "wrong"
        print(
            f"{number}/{len(questions)} {mark} {row.id} {row.seconds:.0f} s: {row.answer!r} "
            f"({row.status}); expected {' / '.join(row.expected) or question.status}",
            file=sys.stderr,
        )
    asked = [rows[question.id] for question in questions if question.id in rows]
    print(table(asked))
    for row in asked:
        if not row.right:
            print(f"- {row.id}: {row.miss}; said {row.answer!r}, expected {row.expected}")


def _kept_rows(path: Path) -> dict[str, Row]:
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [Row(**{**row, "expected": tuple(row["expected"])}) for row in map(json.loads, lines)]
    return {row.id: row for row in rows}


if __name__ == "__main__":
    main()
