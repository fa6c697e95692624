"""docs/ci.md is true: its commands run, as a pipeline of its own would run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from docpager.batch.questions import read_questions
from docpager.testing import LoopbackServer
from tests.batch.desks import FACTS, questions, right
from tests.desk import parse

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.M | re.S)


def commands(text: str) -> list[str]:
    """Every docpager command of a block, folded lines joined."""
    joined = re.sub(r">-\n\s+", "", text)
    joined = re.sub(r"\n\s+(--)", r" \1", joined)
    return re.findall(r"^\s*(?:\$|-|- run:|run:)\s+(docpager .*)$", joined, re.M)


RECORD = [command for block in blocks("console") for command in commands(block)]
GITHUB, LIVE, GITLAB = [commands(block) for block in blocks("yaml")]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "docs").mkdir()
    (folder / "qa").mkdir()
    for name, fact in FACTS.items():
        path = folder / "docs" / f"{name.replace(' ', '-')}.md"
        path.write_text(f"# About {name}\n\n{fact}\n", encoding="utf-8")
    lines = [json.dumps(question) for question in questions(3)]
    (folder / "qa" / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def shell(folder: Path, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(folder),
        "GITHUB_STEP_SUMMARY": str(folder / "step.md"),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        **variables,
    }
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_workflows_run_as_they_are_written(project: Path) -> None:
    assert (len(RECORD), len(GITHUB), len(LIVE), len(GITLAB)) == (2, 3, 1, 3)
    with LoopbackServer(lambda request: right(request, "docs")) as server:
        where = {"DOCPAGER_MODEL": "loopback", "OPENAI_BASE_URL": server.base_url}
        for command in RECORD:
            done = shell(project, command, **where)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
        (project / "results.jsonl").rename(project / "qa" / "main.jsonl")
        sent = len(server.requests)
        for command in (*GITHUB, *GITLAB):
            done = shell(project, command, **where)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert len(server.requests) == sent
    assert "nothing got worse" in (project / "step.md").read_text(encoding="utf-8")
    for name in ("junit.xml", "report.html", "summary.json"):
        assert (project / name).stat().st_size > 100


def test_the_live_command_can_be_parsed() -> None:
    for command in LIVE:
        parse(*shlex.split(command)[1:])


def test_the_questions_shown_are_questions(tmp_path: Path) -> None:
    [shown] = blocks("json")
    path = tmp_path / "q.jsonl"
    path.write_text(shown, encoding="utf-8")
    assert [question.id for question in read_questions(path)] == ["warranty", "price-2031"]
