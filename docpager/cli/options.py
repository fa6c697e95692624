"""Options that several commands take, and arguments as text."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    pass


F = TypeVar("F", bound=Callable[..., Any])


MODEL_SETTINGS = ("model", "base_url", "tool_mode", "context_window")
CACHE_SETTINGS = ("cache", "replay")


base_url_option = click.option(
    "--base-url", metavar="URL", help="An OpenAI-compatible endpoint's address."
)


def model_options(function: F) -> F:
    """Adds the options that choose a model; they are `MODEL_SETTINGS`."""
    for option in reversed(
        (
            click.option("--model", metavar="NAME", help="A model, `local`, or `local:FILE.gguf`."),
            base_url_option,
            click.option(
                "--tool-mode",
                type=click.Choice(["auto", "tools", "json", "text", "guided"]),
                help="How the model is made to call functions.",
            ),
            click.option(
                "--context-window", type=int, metavar="TOKENS", help="The model's window."
            ),
        )
    ):
        function = option(function)
    return function


def cache_options(function: F) -> F:
    """Adds the options of the cache of model calls; they are `CACHE_SETTINGS`."""
    for option in reversed(
        (
            click.option("--cache", metavar="FILE", help="Keep model calls here, and reuse them."),
            click.option(
                "--replay", is_flag=True, default=None, help="Call no model: use the cache alone."
            ),
        )
    ):
        function = option(function)
    return function


def as_text(text: str) -> str:
    """An argument as UTF-8 text, whatever the locale took its bytes for."""
    return os.fsencode(text).decode("utf-8", "replace") if _is_undecoded(text) else text


def _is_undecoded(text: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in text)
