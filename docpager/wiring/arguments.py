"""What a Python caller passes to an `Archive`, checked before anything is opened or spent.

Types alone do not stop a notebook: `mode="hybird"` would search, and a text in the place of a list
would be taken apart into letters. Values of settings are checked in `config`.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar, get_args

from docpager.errors import UserError
from docpager.types import ToolMode

T = TypeVar("T")
_MOST_SHOWN = 60
_CHAT = ("tool_mode", "prompt_tokens", "complete")
_EMBEDDER = ("identity", "batch_size", "embed")


def text(name: str, value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise _refusal(name, "a text", value)
    return value


def whole(name: str, value: object, least: int | None = None, most: int | None = None) -> int:
    """A whole number, of numpy too; True and False are none."""
    wanted = "a whole number"
    if least is not None:
        wanted += f" of at least {least}" if most is None else f" from {least} to {most}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]  # what it refuses is caught
    except TypeError:
        raise _refusal(name, wanted, value) from None
    if (least is not None and number < least) or (most is not None and number > most):
        raise _refusal(name, wanted, value)
    return number


def choice(name: str, value: T, choices: Sequence[T]) -> T:
    """One of the choices."""
    if value not in choices:
        raise _refusal(name, f"one of {', '.join(map(str, choices))}", value)
    return value


def instance(name: str, value: object, kind: type[T]) -> T:
    """A value of that class."""
    if not isinstance(value, kind):
        raise _refusal(name, f"a {kind.__module__.partition('.')[0]}.{kind.__name__}", value)
    return value


def function(name: str, value: T) -> T:
    """Something that can be called."""
    if not callable(value):
        raise _refusal(name, "a function", value)
    return value


def functions(name: str, value: Iterable[T]) -> tuple[T, ...]:
    """Several functions."""
    if not isinstance(value, Iterable):
        raise _refusal(name, "a list of functions", value)
    return tuple(function(f"each of {name}", item) for item in value)


def traces(name: str, value: Iterable[T]) -> tuple[T, ...]:
    """Several traces (`docpager.agent.trace.Trace`)."""
    if not isinstance(value, Iterable):
        raise _refusal(name, "a list of traces", value)
    given = tuple(value)
    for item in given:
        if not callable(getattr(item, "event", None)):
            raise _refusal(f"each of {name}", "an object with a method `event`", item)
    return given


def path(name: str, value: object) -> Path:
    """The path of a file; an empty one stands for the current folder, as everywhere."""
    if not isinstance(value, str | Path) or "\0" in str(value):
        raise _refusal(name, "the path of a file", value)
    return Path(value)


def texts(name: str, value: object) -> tuple[str, ...]:
    """Several texts; one alone is a list of one."""
    given = _several(name, value, "a list of texts")
    return tuple(text(f"each of {name}", item) for item in given)


def paths(name: str, value: object) -> tuple[str, ...]:
    """Several paths of files or folders; one alone is a list of one."""
    given = _several(name, value, "a list of paths")
    for item in given:
        if not isinstance(item, str | Path):
            raise _refusal(f"each of {name}", "a path", item)
    return tuple(map(str, given))


def chat(value: T) -> T:
    """A chat model (`docpager.protocols.Chat`), or None."""
    _require_members("chat", value, _CHAT, "protocols.Chat", "model")
    if value is not None:
        choice("chat.tool_mode", getattr(value, "tool_mode", None), get_args(ToolMode))
    return value


def embedder(value: T) -> T:
    """An embedder (`docpager.protocols.Embedder`), or None."""
    _require_members("text_embedder", value, _EMBEDDER, "protocols.Embedder", "embedder")
    return value


def _several(name: str, value: object, wanted: str) -> tuple[object, ...]:
    """The items of a list; a text or a path is one item, not its letters."""
    if isinstance(value, str | Path):
        return (value,)
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise _refusal(name, wanted, value)
    return tuple(value)


def _require_members(
    name: str, value: object, members: Sequence[str], protocol: str, setting: str
) -> None:
    lacking = [member for member in members if not _has(value, member)]
    if value is not None and lacking:
        raise UserError(
            f"{name} must be an object with {', '.join(members)} (docpager.{protocol}), and "
            f"{_shown(value)} has no {lacking[0]}. To name a model, use `{setting}`."
        )


def _has(value: object, member: str) -> bool:
    """Whether there is such a member, without asking a property, which may call a model."""
    missing = object()
    found = inspect.getattr_static(value, member, missing) is not missing
    return found or hasattr(type(value), "__getattr__")


def _refusal(name: str, wanted: str, value: object) -> UserError:
    return UserError(f"{name} must be {wanted}, not {_shown(value)}. Correct it.")


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"
