"""Who may import what is written down in .importlinter, and nobody is left out of it."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "docpager"


def contracts() -> dict[str, configparser.SectionProxy]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    return {name: parser[name] for name in parser.sections()}


def top_level_modules() -> set[str]:
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    return files | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_the_import_rules_hold() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_has_its_layer() -> None:
    lines = contracts()["importlinter:contract:layers"]["layers"].split("\n")
    placed = {name.strip() for line in lines for name in line.split("|") if name.strip()}
    assert placed == top_level_modules()


@pytest.mark.parametrize(
    ("contract", "allowed"),
    [
        ("duckdb", {"stores"}),
        ("models", {"models"}),
        ("documents", {"documents"}),
        ("terminal", {"cli", "render", "__main__"}),
    ],
)
def test_a_library_is_forbidden_to_all_but_its_seam(contract: str, allowed: set[str]) -> None:
    sources = contracts()[f"importlinter:contract:{contract}"]["source_modules"].split()
    assert {name.removeprefix("docpager.") for name in sources} == top_level_modules() - allowed
