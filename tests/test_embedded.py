"""One real question through the embedded model, from the command line to the checked citation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.embedded
@pytest.mark.timeout(900)
def test_a_sample_question_is_answered_with_a_verified_citation(tmp_path: Path) -> None:
    archive = str(tmp_path / "sample.duckdb")

    def docpager(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "docpager", *arguments, "-a", archive]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert docpager("ingest", "sample_docs").returncode == 0
    line = (ROOT / "sample_docs" / "questions.jsonl").read_text("utf-8").splitlines()[0]
    question = json.loads(line)
    asked = docpager("ask", question["question"], "--model", "local", "--json")
    assert asked.returncode == 0, asked.stderr
    answer = json.loads(asked.stdout)
    assert (answer["status"], answer["tool_mode"]) == ("answered", "guided")
    assert "438" in answer["answer"]
    wanted = {(page["document"], page["page"]) for page in question["expected_pages"]}
    found = {(item["document"], item["page"]) for item in answer["citations"] if item["verified"]}
    assert found & wanted
