"""docs/python.md: every example runs as it stands, in the order of the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.S
)


def test_the_tour_runs_and_shows_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sample_docs").symlink_to(ROOT / "sample_docs")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "tour"}
    assert len(BLOCKS) == 7
    for block in BLOCKS:
        exec(compile(block, "docs/python.md", "exec"), names)
    printed = capsys.readouterr().out
    for said in (
        "answered FirstSentence [True]",
        "not_found tide",
        "['Thornsand: 2.4 m at 9:00']",
        "letters 26",
        "speed answered\n1 asked, {'answered': 1}",
    ):
        assert said in printed
