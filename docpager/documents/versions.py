"""Which tools read documents here: what they could not read is worth another try by newer ones."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

_TOOLS = (
    "docpager",
    "pypdfium2",
    "pypdf",
    "pikepdf",
    "lxml",
    "selectolax",
    "charset-normalizer",
    "unstructured",
)
"""Distributions on which it depends what can be read."""
_RECOGNISERS = ("rapidocr-onnxruntime", "onnxruntime")
"""Distributions on which it depends what is recognised in pictures."""


def reader_versions() -> str:
    """Names and versions of the tools, such as `docpager 0.1.0, pypdfium2 5.15.2`."""
    return _versions(_TOOLS)


def recogniser_versions() -> str:
    """The same of what recognises pictures; empty where it is not installed."""
    return _versions(_RECOGNISERS)


def _versions(tools: tuple[str, ...]) -> str:
    found = ((tool, _version(tool)) for tool in tools)
    return ", ".join(f"{tool} {number}" for tool, number in found if number)


def _version(tool: str) -> str | None:
    try:
        return version(tool)
    except PackageNotFoundError:
        return None  # an extra that is not installed
