"""Commands about one question: ask, and trace, which replays it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from docpager.errors import NothingToDo, UserError

if TYPE_CHECKING:
    from docpager.config import Config
    from docpager.types import Answer
from docpager.cli.options import (
    CACHE_SETTINGS,
    MODEL_SETTINGS,
    as_text,
    cache_options,
    model_options,
)
from docpager.cli.program import command, worst


@command(
    *MODEL_SETTINGS,
    *CACHE_SETTINGS,
    *("max_steps", "max_tokens", "max_cost", "timeout", "seed", "session", "trace", "keep_runs"),
)
@click.argument("question", metavar="QUESTION")
@model_options
@cache_options
@click.option("--timeout", type=float, metavar="SECONDS", help="Limit on time.")
@click.option("--max-steps", type=int, metavar="N", help="Limit on steps.")
@click.option("--max-tokens", type=int, metavar="N", help="Limit on tokens.")
@click.option("--max-cost", type=float, metavar="USD", help="Limit on money.")
@click.option("--seed", type=int, metavar="N", help="Passed to the model.")
@click.option("--session", metavar="NAME", help="Keep notes and recall under this name.")
@click.option("--trace", metavar="FILE", help="Write the run's trace here too.")
@click.option("--keep-runs", type=int, metavar="N", help="How many traces to keep.")
def ask(config: Config, question: str) -> int:
    """Answer one question, with citations that were checked. `-` reads standard input.

    \b
    Example:
      docpager ask "Who signed the contract that replaced the one of 2019?"
    """
    from docpager import render
    from docpager.archive import Archive

    text = _question(question)
    shown = config.verbose or (
        config.progress and not config.quiet and not config.json and sys.stderr.isatty()
    )
    with Archive(config=config) as archive:
        answer = archive.ask(text, say=render.say, watchers=[render.StepLines(shown)])
    if config.json:
        render.write_json(render.answer_record(answer))
    else:
        if text := render.answer_text(answer):
            render.write(text)
        if answer.error is not None:
            render.say(f"docpager: {answer.error}")
    return answer_exit_code(answer)


def _question(question: str) -> str:
    text = as_text(question)
    if question == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise UserError("The question is empty. Say what you want to know.")
    return text.strip()


def answer_exit_code(answer: Answer) -> int:
    """0 with a verified citation; else what stopped it, by the contract's precedence."""
    if answer.status == "answered":
        return 0
    codes = {1}
    if answer.status == "model_error":
        codes.add(4)
    if answer.status == "budget" or answer.stopped_by in ("tokens", "money", "time"):
        codes.add(5)
    return worst(codes)


@command()
@click.argument("run", metavar="RUN", required=False)
def trace(config: Config, run: str | None) -> int:
    """Replay a run step by step, or list the runs, the newest first.

    \b
    Example:
      docpager trace 3f9a
    """
    from docpager import render
    from docpager.archive import Archive

    archive = Archive(config=config)
    if run is None:
        kept = archive.traces()
        if config.json:
            rows = [render.run_record(item, item.events) for item in kept]
            render.write_json({"schema": render.SCHEMA, "runs": [*rows]})
        elif kept:
            render.write("\n".join(render.run_line(item, item.events) for item in kept))
        else:
            raise NothingToDo("No runs are kept yet. `docpager ask` makes one.")
        return 0
    found = archive.trace(run)
    if config.json:
        render.write_json(
            {"schema": render.SCHEMA, "run_id": found.run_id, "events": [*found.events]}
        )
    else:
        render.write("\n".join(render.event_text(event, config.verbose) for event in found.events))
    return 0
