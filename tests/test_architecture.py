"""docs/architecture.md is true: its picture is drawn from the imports, and its files exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_picture_is_what_the_imports_draw() -> None:
    tool = ROOT / "tools" / "draw_architecture.py"
    done = subprocess.run([sys.executable, tool, "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run `python tools/draw_architecture.py` and commit the picture"


def test_every_file_that_is_named_exists() -> None:
    named = re.findall(r"`((?:docpager|tests|tools|benchmarks|docs)/[\w/.]+)`", PAGE)
    assert len(named) > 50
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_room_is_told_of() -> None:
    rooms = {path.parent.name for path in (ROOT / "docpager").glob("*/__init__.py")}
    assert {room for room in rooms if f"docpager/{room}/" not in PAGE} == set()


def test_the_table_of_changes_has_at_least_25_rows() -> None:
    table = PAGE.split("| to change | open |", 1)[1]
    rows = [line for line in table.splitlines()[2:] if line.startswith("| ")]
    assert len(rows) >= 25


def test_the_files_that_a_newcomer_must_find_exist() -> None:
    lines = (ROOT / "benchmarks" / "newcomer.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 20
    assert [name for row in rows for name in row["files"] if not (ROOT / name).is_file()] == []
