"""The program around all commands: options of all, settings, failures and exit codes."""

from __future__ import annotations

import errno
import functools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from docpager.errors import DocpagerError, UserError

if TYPE_CHECKING:
    pass


INTERRUPTED = 130
BROKEN_PIPE = 141
INTERNAL_FAULT = 70
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PRECEDENCE = (INTERRUPTED, 2, 3, 4, 5, 1, 6, 0)
"""Which exit code stands where several apply."""
_INGESTING = ("docpager-writer", "docpager-embedder")
"""Threads of an ingest that may be in a call or a commit when the program ends."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True)
class Invocation:
    """What the seam around all commands must know of the one that runs."""

    debug: bool = False
    flags: dict[str, object] = field(default_factory=dict)


class Program(click.Group):
    """The one place where failures become a line on standard error and an exit code."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """As click does it, but Ctrl-C meanwhile is exit code 130."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except KeyboardInterrupt:
            # Click would take it for a question that was not answered.
            raise SystemExit(INTERRUPTED) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever it raises becomes a line and an exit code."""
        state = ctx.ensure_object(Invocation)
        try:
            return super().invoke(ctx)
        except DocpagerError as error:
            _fail(ctx, str(error), error.exit_code, state.debug)
        except KeyboardInterrupt:
            _fail(ctx, "interrupted. What was finished is kept.", INTERRUPTED, state.debug)
        except BrokenPipeError:
            # The reader went away, as `| head` does; Python would complain again at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(BROKEN_PIPE)
        except OSError as error:
            if error.errno not in _FULL:
                _fail_inside(ctx, error, state.debug)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            text = f"the output cannot be written: {error.strerror}. Make room for it."
            _fail(ctx, text, UserError.exit_code, state.debug)
        except (click.exceptions.Exit, click.exceptions.Abort, click.ClickException):
            raise
        except Exception as error:  # noqa: BLE001  # the seam: a fault of docpager itself
            _fail_inside(ctx, error, state.debug)


def _fail_inside(ctx: click.Context, error: Exception, debug: bool) -> None:
    text = f"an internal fault, {type(error).__name__}: {error}. "
    _fail(ctx, f"{text}Run it again with --debug and report it.", INTERNAL_FAULT, debug)


def _fail(ctx: click.Context, message: str, code: int, debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exc(file=sys.stderr)
    from docpager.render import say

    say(f"docpager: {' '.join(message.split())}")
    if any(thread.name in _INGESTING for thread in threading.enumerate()):
        # Python would end them in the middle of native code, which aborts the whole process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    ctx.exit(code)


def common_options(function: F) -> F:
    """What every command takes, before it and after it."""
    for option in reversed(
        (
            click.option("-a", "--archive", metavar="FILE", help="The archive to use."),
            click.option("--json", is_flag=True, default=None, help="Print JSON."),
            click.option("-q", "--quiet", is_flag=True, default=None, help="Say only what failed."),
            click.option(
                "-v", "--verbose", is_flag=True, default=None, help="Say what is being done."
            ),
            click.option(
                "--debug", is_flag=True, default=None, help="Show the traceback of a failure."
            ),
            click.option("--no-progress", is_flag=True, default=None, help="Show no progress."),
            click.option(
                "--wait",
                is_flag=True,
                default=None,
                help="Wait for an archive that another process holds.",
            ),
        )
    ):
        function = option(function)
    return click.version_option(
        package_name="docpager", prog_name="docpager", message="%(prog)s %(version)s"
    )(function)


_COMMON = ("archive", "json", "quiet", "verbose", "debug", "no_progress", "wait")


def _flags(params: dict[str, Any], names: Sequence[str]) -> dict[str, object]:
    """Takes the named options out of `params`; those that were not given are left out."""
    given = {name: params.pop(name) for name in names}
    if given.pop("no_progress", None):
        given["progress"] = False
    # An option that may be repeated is an empty tuple where it is not given.
    return {name: value for name, value in given.items() if value not in (None, ())}


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@common_options
@click.pass_context
def main(ctx: click.Context, /, **params: Any) -> None:
    """Ask questions of document folders that no context window can hold.

    \b
    docpager ingest ./reports
    docpager ask "Which plant made the part that failed in 2021?"

    Settings are taken from flags, then the environment, then docpager.toml in the current
    folder. Exit codes: 0 done, 1 no answer found, 2 usage, 3 documents or archive, 4 model,
    5 a bound was reached, 6 nothing to do, 70 a fault of docpager itself, 130 interrupted,
    141 the reader of the output went away.
    """
    begin(ctx, _flags(params, _COMMON))


def begin(ctx: click.Context, flags: dict[str, object]) -> None:
    """Keep the flags of the program or of its command, the later ones on top."""
    state = ctx.ensure_object(Invocation)
    state.flags.update(flags)
    state.debug = bool(state.flags.get("debug"))


def command(
    *settings: str, group: click.Group = main
) -> Callable[[Callable[..., int]], click.Command]:
    """A command whose function is given the Config and its own parameters, and returns the exit
    code. `settings` are those of its options that belong to the Config."""

    def make(function: Callable[..., int]) -> click.Command:
        @functools.wraps(function)
        @click.pass_context
        def run(ctx: click.Context, /, **params: Any) -> None:
            begin(ctx, _flags(params, (*_COMMON, *settings)))
            state = ctx.ensure_object(Invocation)
            from docpager.config import load

            config = load(state.flags)
            state.debug = config.debug
            ctx.exit(function(config, **params))

        return group.command(name=function.__name__.rpartition("_")[2])(common_options(run))

    return make


def worst(codes: set[int]) -> int:
    """The exit code that stands where several apply."""
    return min(codes or {0}, key=_PRECEDENCE.index)
