"""What the README shows is run, and what it lists is complete.

A `console` block is run line by line in a folder that holds `sample_docs`; `…` in the output stands
for anything. A block under `<!-- not run: why -->` is only checked for commands and options that
exist.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from docpager import errors
from docpager.cli import main
from docpager.cli.program import BROKEN_PIPE, INTERNAL_FAULT, INTERRUPTED
from docpager.config import load, variables
from tests.desk import parse

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?P<mark><!-- not run: [^\n]+ -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)```", re.S)


@dataclass(frozen=True)
class Shown:
    """A command with the output under it."""

    command: str
    output: str


def blocks(kind: str, *, run: bool) -> list[str]:
    found = BLOCK.finditer(README)
    return [m["body"] for m in found if m["kind"] == kind and (m["mark"] is None) is run]


def commands(body: str) -> list[Shown]:
    parts = re.split(r"^\$ ", body, flags=re.M)
    assert not parts[0].strip(), f"output without a command: {parts[0]}"
    split = [part.partition("\n") for part in parts[1:]]
    return [Shown(command, output) for command, _, output in split]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("readme")
    (place / "sample_docs").symlink_to(ROOT / "sample_docs")
    return place


def environment(folder: Path) -> dict[str, str]:
    names = ("LANG", "LD_LIBRARY_PATH", "PYTHONPATH")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    binaries = str(Path(sys.executable).parent)
    return {**kept, "HOME": str(folder), "PATH": f"{binaries}:/usr/bin:/bin"}


def pattern(output: str) -> str:
    return re.escape(output).replace("…", ".*").replace(r"\…", ".*")


def test_the_console_blocks_do_what_they_show(folder: Path) -> None:
    shown = [item for body in blocks("console", run=True) for item in commands(body)]
    assert len(shown) >= 4
    for item in shown:
        done = subprocess.run(
            item.command,
            shell=True,
            cwd=folder,
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{item.command}\n{done.stdout}"
        assert re.fullmatch(pattern(item.output), done.stdout, re.S), (
            f"{item.command} says\n{done.stdout}\nand the README\n{item.output}"
        )


def test_the_python_blocks_run(folder: Path) -> None:
    script = "\n".join(blocks("python", run=True))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "sample_docs/" in done.stdout


def all_commands() -> list[str]:
    bodies = blocks("console", run=True) + blocks("console", run=False)
    return [item.command for body in bodies for item in commands(body)]


@pytest.mark.parametrize("command", [c for c in all_commands() if c.startswith("docpager ")])
def test_every_command_shown_can_be_parsed(command: str) -> None:
    parse(*shlex.split(command)[1:])


@pytest.mark.parametrize("command", [c for c in all_commands() if c.startswith("make ")])
def test_every_make_target_shown_exists(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{shlex.split(command)[1]}:", makefile, re.M)


CODES = sorted(
    {0, 1, INTERRUPTED, BROKEN_PIPE, INTERNAL_FAULT}
    | {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.DocpagerError)
    }
)
"""Every exit code that there is."""


def test_the_help_names_every_exit_code() -> None:
    told = " ".join(str(main.help).partition("Exit codes:")[2].split())
    assert [int(code) for code in re.findall(r"(?:^|, )(\d+) ", told)] == CODES


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_command_is_told_about(name: str) -> None:
    assert re.search(rf"^\| `docpager {name}\b", README, re.M)


@pytest.mark.parametrize("code", CODES)
def test_every_exit_code_is_told_about(code: int) -> None:
    assert re.search(rf"^\| {code} \|", README, re.M)


@pytest.mark.parametrize(("setting", "variable"), sorted(variables().items()))
def test_every_setting_is_told_about_with_its_variable_and_default(
    setting: str, variable: str, tmp_path: Path
) -> None:
    row = re.search(rf"^\| (.*) \| `{variable}`.* \| (.*) \|$", README, re.M)
    assert row is not None, f"{setting} is missing from the table of settings"
    assert row[1] == ("" if setting in ("api_key", "passwords") else f"`{setting}`")
    default = getattr(load({}, {"HOME": "/h"}, tmp_path), setting)
    if isinstance(default, bool):
        assert row[2] == f"`{str(default).lower()}`"
    elif isinstance(default, int | float):
        assert f"{default:g}" in row[2]


def test_the_picture_is_there_and_described() -> None:
    [(description, target)] = re.findall(r"!\[(.+?)\]\((.+?)\)", README)
    assert len(description) > 80
    assert (ROOT / target).read_text(encoding="utf-8").startswith("<svg")


def test_every_relative_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_test_in_the_docs_passes() -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
