"""Answers a question set with a model and scores it, per kind of question.

    python benchmarks/questions.py sample                      # sample_docs, embedded, guided
    python benchmarks/questions.py sample --mode json --limit 6
    python benchmarks/questions.py hotpotqa --limit 15         # reads $DOCPAGER_SHARED/data
    python benchmarks/questions.py musique --limit 15

The archive is made once in build/bench and used again. Each answer is a line of
build/bench/NAME-MODE.jsonl as it comes; what is there already is not asked again
(--again forgets it). A question counts as right when F1 >= 0.6 against its best accepted
answer, or when its status is the expected one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docpager import Selection, ingest_paths, run_batch
from docpager.batch.metrics import Metric
from docpager.batch.result import Result
from docpager.batch.results import read_results

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "bench"
SHARED = Path(os.environ.get("DOCPAGER_SHARED", ROOT.parent / "shared"))

Row = dict[str, Any]
"""A line of a questions file."""


def load_set(name: str, limit: int | None) -> tuple[Path, list[Row]]:
    """The folder to ingest and the questions; of a large set, `limit` evenly spaced ones."""
    if name == "sample":
        lines = (ROOT / "sample_docs" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
        return ROOT / "sample_docs", [json.loads(line) for line in lines][:limit]
    source = SHARED / "data" / f"multihop_{name}"
    questions = _multihop(source, name)
    step = len(questions) / min(limit or len(questions), len(questions))
    spaced = [questions[int(number * step)] for number in range(limit or len(questions))]
    return _as_folder(source, BUILD / f"{name}-corpus"), spaced


def _multihop(source: Path, name: str) -> list[Row]:
    lines = (source / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        {
            "id": row["id"],
            "question": row["question"],
            "expected": row["answers"],
            "expected_pages": [
                {"document": f"{name}-corpus/{gold}.md", "page": 1} for gold in row["gold_ids"]
            ],
            "tags": [row["type"]],
        }
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


def table(results: Sequence[Result]) -> str:
    """A line for each kind of question, then one for all."""
    kinds: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        kinds[result.given.tags[0]].append(result)
    if len(kinds) > 1:
        kinds["all"] = list(results)
    lines = [
        "| kind | n | right | answered | exact match | F1 | gold pages read | s/question "
        "| tokens/question |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind, group in kinds.items():
        n = len(group)
        answers = [result.answer for result in group]
        tokens = sum(answer.usage.total_tokens for answer in answers)
        lines.append(
            f"| {kind} | {n} | {sum(result.scores.passed is True for result in group)} "
            f"| {sum(answer.status == 'answered' for answer in answers)} "
            f"| {_mean(group, 'exact_match')} | {_mean(group, 'f1')} "
            f"| {_mean(group, 'read_recall')} "
            f"| {sum(answer.elapsed_s for answer in answers) / n:.0f} | {tokens / n:.0f} |"
        )
    return "\n".join(lines)


def _mean(results: Sequence[Result], metric: Metric) -> str:
    scores = (result.scores.by(metric) for result in results)
    values = [score for score in scores if score is not None]
    return f"{sum(values) / len(values):.2f}" if values else "-"


def miss(result: Result) -> str:
    """Where a wrong answer was lost."""
    read = result.scores.read_recall
    lost = "gold shown, answered wrong" if read in (1.0, None) else "gold not shown"
    return f"- {result.id}: {lost}; said {result.answer.answer!r}, expected {result.given.expected}"


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
    asked = BUILD / f"{options.set}.questions.jsonl"
    lines = [json.dumps(question, ensure_ascii=False) for question in questions]
    asked.write_text("\n".join(lines) + "\n", encoding="utf-8")
    some = f"-{options.limit}" if options.limit else ""
    kept = BUILD / f"{options.set}-{options.mode}{some}.jsonl"
    if options.again:
        kept.unlink(missing_ok=True)
    summary = run_batch(
        asked,
        kept,
        selection=Selection(retry_errors=True),
        on_result=_say,
        archive=archive,
        model=options.model,
        base_url=options.base_url,
        tool_mode=options.mode,
        context_window=options.window,
        timeout=options.timeout,
    )
    if summary.stopped:
        print(summary.stopped, file=sys.stderr)
    results = [*read_results(kept).values()]
    print(table(results))
    for result in results:
        if not result.scores.passed:
            print(miss(result))


def _say(done: int, total: int, result: Result) -> None:
    answer, given = result.answer, result.given
    mark = "right" if result.scores.passed else "wrong"
    print(
        f"{done}/{total} {mark} {result.id} {answer.elapsed_s:.0f} s: {answer.answer!r} "
        f"({answer.status}); expected {given.expected or given.expected_status}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
