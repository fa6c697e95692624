from __future__ import annotations

import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from docpager.cli import main
from docpager.cli.program import worst
from docpager.config import load
from docpager.testing import LoopbackReply, LoopbackServer
from tests.desk import Desk, parse

COMMANDS = (
    "ask",
    "batch",
    "compare",
    "doctor",
    "ingest",
    "ls",
    "model",
    "read",
    "rm",
    "search",
    "status",
    "trace",
)


def test_the_commands_are_these() -> None:
    assert sorted(main.commands) == sorted([*COMMANDS, "bench"])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_the_help_of_every_command_has_an_example_that_parses(command: str, flag: str) -> None:
    result = CliRunner().invoke(main, [command, flag])
    assert result.exit_code == 0
    example = re.search(rf"Example:\n\s+docpager ({command} .*)", result.stdout + " ")
    if example is None:
        example = re.search(rf"Example:\n\s+docpager ({command})", result.stdout)
    assert example is not None, result.stdout
    parse(*shlex.split(example[1]))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_the_common_options(command: str) -> None:
    names = {name for parameter in main.commands[command].params for name in parameter.opts}
    assert names >= {
        "-a",
        "--archive",
        "--json",
        "-q",
        "--quiet",
        "-v",
        "--verbose",
        "--debug",
        "--no-progress",
        "--wait",
        "--version",
    }


@pytest.mark.parametrize("arguments", [["--version"], ["ls", "--version"]])
def test_the_version_is_told(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    assert re.fullmatch(r"docpager \d+\.\d+\.\d+\n", result.stdout)


def test_it_runs_as_a_module(empty_desk: Desk) -> None:
    process = empty_desk.start("--version")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("docpager ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["ls", "--frobnicate"],
        ["ask"],
        ["ask", "a", "b"],
        ["ingest"],
        ["rm"],
        ["search", "x", "--page", "-1"],
        ["search", "x", "--page-size", "0"],
        ["search", "x", "--mode", "magic"],
        ["read", "x", "--page", "0"],
        ["ask", "x", "--max-steps", "many"],
        ["ask", "x", "--max-steps", "0"],
        ["ask", "x", "--context-window", "100"],
        ["ask", "x", "--tool-mode", "magic"],
        ["ask", "x", "--timeout", "-1"],
        ["ask", "x", "--base-url", "localhost"],
        ["ask", "x", "--session", "../../x"],
        ["ingest", ".", "--workers", "0"],
        ["ingest", ".", "--embedder", "bert"],
        ["ask", ""],
        ["ask", " \n"],
        ["ask", "-"],
        ["search", ""],
        ["model", "--check", "--remove"],
        ["model", "--obtain", "no-such-file.gguf"],
    ],
)
def test_wrong_usage_is_exit_code_2_with_words_and_nothing_on_stdout(
    desk: Desk, arguments: list[str]
) -> None:
    result = desk(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.strip()
    assert "Traceback" not in result.stderr


def test_a_misspelt_key_in_the_file_is_usage(empty_desk: Desk) -> None:
    (empty_desk.folder / "docpager.toml").write_text("modle = 'x'\n", encoding="utf-8")
    result = empty_desk("ls")
    assert result.exit_code == 2
    assert "Did you mean 'model'?" in result.stderr


def test_common_options_may_stand_before_or_after_the_command(desk: Desk) -> None:
    archive = str(desk.folder / "docpager.duckdb")
    before = desk("-a", archive, "--json", "ls", DOCPAGER_ARCHIVE="other.duckdb")
    after = desk("ls", "-a", archive, "--json", DOCPAGER_ARCHIVE="other.duckdb")
    mixed = desk("-a", "other.duckdb", "ls", "-a", archive, "--json")
    assert before.exit_code == after.exit_code == mixed.exit_code == 0, before.output
    assert before.stdout == after.stdout == mixed.stdout


def test_no_model_configured_names_the_ways(desk: Desk) -> None:
    result = desk("ask", "Where?", "--model", "gpt-4o")
    assert result.exit_code == 2
    assert "OPENAI_API_KEY" in result.stderr and "--base-url" in result.stderr
    unnamed = desk("ask", "Where?", "--base-url", "http://127.0.0.1:9/v1")
    assert unnamed.exit_code == 2
    assert "--model" in unnamed.stderr


def test_a_failure_is_one_line_unless_debugged(empty_desk: Desk) -> None:
    result = empty_desk("ls")
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("docpager: There is no archive at ")
    debugged = empty_desk("ls", "--debug")
    assert debugged.exit_code == result.exit_code == 3
    assert "Traceback (most recent call last)" in debugged.stderr


def test_the_worst_exit_code_stands() -> None:
    order = [130, 2, 3, 4, 5, 1, 0]
    for first, second in itertools.pairwise(order):
        assert worst({first, second}) == first
    assert worst(set()) == 0


def test_an_interrupted_question_is_exit_code_130_and_keeps_its_trace(desk: Desk) -> None:
    slow = LoopbackReply({}, delay_s=60.0)
    with LoopbackServer(lambda request: slow) as server:
        options = ("--model", "m", "--base-url", server.base_url, "--tool-mode", "tools")
        process = desk.start("ask", "Interrupted?", *options)
        wait_until(lambda: bool(server.bodies()))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err and "interrupted" in err
    assert "Interrupted?" in desk("trace").stdout


@pytest.mark.parametrize(
    "module", ["docpager.cli", "click", "docpager.config", "docpager.archive", "duckdb"]
)
def test_ctrl_c_ends_quietly_whatever_is_being_imported(desk: Desk, module: str) -> None:
    code = (
        "import os, signal, sys\n"
        "def interrupt(event, arguments):\n"
        f"    if event == 'import' and arguments[0] == {module!r}:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.addaudithook(interrupt)\n"
        "sys.argv[1:] = ['ingest', '.', '-a', 'other.duckdb']\n"
        "from docpager.__main__ import run\n"
        "run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=desk.folder, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr == "docpager: interrupted. What was finished is kept.\n"


def test_a_reader_that_goes_away_is_no_failure(desk: Desk) -> None:
    process = desk.start("read", "firm.pdf")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    assert err == ""


def wait_until(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def test_a_password_in_an_address_is_never_shown(desk: Desk) -> None:
    address = "http://user:geheim@127.0.0.1:9/v1"
    for arguments in (("ask", "Who?"), ("ask", "Who?", "--model", "m"), ("doctor",)):
        result = desk(*arguments, "--base-url", address)
        assert "geheim" not in result.output
    assert "geheim" not in repr(load({"base_url": address}))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ingest", ""), "A path is empty"),
        (("status", "-a", "~no-such-user/x.duckdb"), "~"),
        (("ask", "Who?", "--model", "\udcff"), "UTF-8"),
    ],
)
def test_odd_values_are_usage_and_no_fault_of_docpager(
    desk: Desk, arguments: tuple[str, ...], words: str
) -> None:
    result = desk(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


def test_output_without_room_is_said(desk: Desk) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "docpager", "ls"],
            cwd=desk.folder,
            env={k: v for k, v in {**os.environ, **desk.environment({})}.items() if v is not None},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2 and "cannot be written" in done.stderr, done.stderr
