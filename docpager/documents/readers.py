"""Which tools read documents here: what they could not read is worth another try by newer ones."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

_TOOLS = ("docpager", "pypdfium2", "pypdf", "pikepdf", "charset-normalizer")
"""Distributions on which it depends what can be read."""


def reader_versions() -> str:
    """Names and versions of the tools, such as `docpager 0.1.0, pypdfium2 5.15.2`."""
    return ", ".join(f"{tool} {_version(tool)}" for tool in _TOOLS)


def _version(tool: str) -> str:
    try:
        return version(tool)
    except PackageNotFoundError:
        return "none"
