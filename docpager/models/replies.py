"""The decoded JSON of a reply, which may lack anything."""

from __future__ import annotations

from typing import Any

from docpager.errors import ModelError


class UnusableReply(ModelError):
    """The endpoint answered 200 with something that is no reply; trying again may help."""


def field(body: object, *path: str | int) -> Any:
    """What stands at `path` of decoded JSON, or None: endpoints leave out what they like."""
    for step in path:
        if isinstance(body, dict) and isinstance(step, str):
            body = body.get(step)
        elif isinstance(body, list) and isinstance(step, int) and step < len(body):
            body = body[step]
        else:
            return None
    return body
