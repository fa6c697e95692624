"""Commands about this machine: the embedded model, doctor, bench."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from docpager.errors import UserError

if TYPE_CHECKING:
    from docpager.config import Config
from docpager.cli.options import MODEL_SETTINGS, model_options
from docpager.cli.program import command, main, worst


@command()
@click.option("--check", is_flag=True, help="Read the whole file and compare its hash.")
@click.option("--obtain", metavar="parts|hub|FILE", help="Put the weights into the cache folder.")
@click.option("--remove", is_flag=True, help="Delete the weights from the cache folder.")
def model(config: Config, check: bool, obtain: str | None, remove: bool) -> int:
    """Show the embedded model; check, obtain or remove its weights. Nothing happens unasked.

    \b
    Example:
      docpager model --obtain parts
    """
    from docpager import render, wiring

    if check + remove + (obtain is not None) > 1:
        raise UserError("--check, --obtain and --remove exclude each other. Give one of them.")
    shown = config.progress and not config.quiet and not config.json
    label = "checking" if check else "obtaining"
    with render.BytesProgress(label, shown, config.color) as progress:
        if obtain is not None:
            wiring.obtain_weights(config, obtain, progress)
        elif remove:
            wiring.remove_weights(config)
        state = wiring.take_inventory(config, progress, checked=check)
    if config.json:
        render.write_json(render.inventory_record(state))
    else:
        render.write(render.inventory_text(state))
    return 0


@command(*MODEL_SETTINGS, "timeout", "embedder")
@model_options
@click.option("--timeout", type=float, metavar="SECONDS", help="Limit on time.")
@click.option("--embedder", metavar="NAME", help="`static`, or `openai:MODEL`.")
def doctor(config: Config) -> int:
    """Check archive, embedder, vocabulary, endpoint and model; each is ok, warn or fail.

    \b
    Example:
      docpager doctor --model qwen3 --base-url http://localhost:11434/v1
    """
    from docpager import render
    from docpager.doctor import examine

    checks = []
    for check in examine(config):
        checks.append(check)
        if not config.json:
            render.write(render.check_line(check.name, check.state, check.message))
    if config.json:
        rows = [render.check_record(check.name, check.state, check.message) for check in checks]
        render.write_json({"schema": render.SCHEMA, "checks": [*rows]})
    return worst({check.exit_code for check in checks})


@main.group()
def bench() -> None:
    """Measure docpager on this machine, with what it makes for the purpose.

    \b
    Example:
      docpager bench ingest
    """


@command("workers", group=bench)
@click.option("--workers", type=int, metavar="N", help="Parsing processes.")
@click.option("--files", type=click.IntRange(min=1), default=12, metavar="N", help="Of each kind.")
@click.option("--pages", type=click.IntRange(min=1), default=300, metavar="N", help="Of each file.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, metavar="N", help="Medians.")
def bench_ingest(config: Config, **sizes: int) -> int:
    """Time an ingest beside bare pypdfium2 text extraction, over PDFs made for it.

    Exit code 1 where it is slower than 60% of bare reading (bare up to 150 pages/s a process), or
    than 800 passages/s (where bare is faster).

    \b
    Example:
      docpager bench ingest --workers 2 --files 12 --pages 300
    """
    from docpager import render, wiring
    from docpager.bench.ingest import measure

    say = wiring.silent if config.quiet or config.json else render.say
    measured = measure(config, **sizes, say=say)
    if config.json:
        render.write_json(render.bench_record(measured))
    else:
        render.write(render.bench_text(measured))
    return 0 if all(item.passed for item in measured) else 1
