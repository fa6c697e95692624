"""What of the embedded model is on this machine: its runtime, its weights, their parts."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from docpager.models.embedded.weights import (
    EMBEDDED_MODEL,
    Progress,
    Weights,
    check,
    installed_parts,
    locate,
    weights_path,
)

RUNTIME = "xllamacpp"


@dataclass(frozen=True, slots=True)
class Inventory:
    """Whose the weights are, and what is there."""

    weights: Weights
    path: Path
    """Where the weights belong, there or not."""
    present: bool
    checked: bool
    """Whether the file was compared with the publisher's hash."""
    runtime_installed: bool
    parts_installed: bool


def runtime_installed() -> bool:
    """Whether the extra `local` is installed; it is looked for, not imported."""
    return importlib.util.find_spec(RUNTIME) is not None


def take_inventory(
    cache: Path,
    progress: Progress | None = None,
    *,
    checked: bool = False,
    weights: Weights = EMBEDDED_MODEL,
) -> Inventory:
    """What is there; the weights' hash is compared only where `checked` asks for it.

    Raises:
        UserError: the weights are not there although they are to be checked, or are other ones.
    """
    path = weights_path(cache, weights)
    if checked:
        check(path, progress, weights)
    return Inventory(
        weights=weights,
        path=path,
        present=locate(cache, weights) is not None,
        checked=checked,
        runtime_installed=runtime_installed(),
        parts_installed=bool(installed_parts(weights)),
    )
