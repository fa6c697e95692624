"""The command line as a person and a script meet it: output, exit codes, bad input."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fpdf import FPDF
from rich.cells import cell_len

import docpager
from docpager.agent.runs import list_runs
from docpager.agent.trace import TraceFile
from docpager.cli import main
from docpager.cli.program import worst
from docpager.cli.questions import answer_exit_code
from docpager.config import load
from docpager.messages import AssistantMessage
from docpager.render import run_line
from docpager.testing import (
    LoopbackReply,
    LoopbackRequest,
    LoopbackServer,
    call,
    say,
    several,
    wire_reply,
)
from docpager.types import Answer, Usage
from tests.desk import Desk, parse
from tests.documents.making import mail

QUOTE = "The pump was made in Graz in 1987 by the firm Andritz."
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


@pytest.fixture
def empty_desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk with an archive of three files, one of which is no document."""
    folder = tmp_path_factory.mktemp("desk")
    corpus = folder / "corpus"
    (corpus / "reports").mkdir(parents=True)
    (corpus / "pump.md").write_text(f"# The pump\n\n{QUOTE}\n", encoding="utf-8")
    (corpus / "empty.txt").write_bytes(b"")
    pdf = FPDF()
    pdf.set_font("Helvetica")
    for text in ("Graz has a river, the Mur.", "The firm moved to Linz in 1990."):
        pdf.add_page()
        pdf.cell(text=text)
    pdf.output(str(corpus / "reports" / "firm.pdf"))
    made = Desk(folder)
    done = made("ingest", "corpus")
    assert done.exit_code == 3, done.output
    return made


def answering(*replies: AssistantMessage) -> Iterator[LoopbackReply]:
    return (wire_reply(reply, usage=Usage(50, 0, 10)) for reply in replies)


def cited(request: LoopbackRequest) -> LoopbackReply:
    """Answers with the passage that holds the quote, wherever the search put it."""
    shown = json.dumps(request.body["messages"], ensure_ascii=False)
    found = re.search(r"\[(P\d+)\] corpus/pump\.md", shown)
    assert found is not None
    reply = call(
        "send_message",
        message="In Graz.",
        citations=[{"passage_id": found[1], "quote": QUOTE}],
        not_found=False,
    )
    return wire_reply(reply, usage=Usage(50, 0, 10))


def ask(desk: Desk, server: LoopbackServer, *arguments: str, **variables: str) -> Result:
    return desk(
        "ask",
        "Where was the pump made?",
        *("--model", "loopback", "--base-url", server.base_url, "--tool-mode", "tools"),
        *arguments,
        **variables,
    )


def only_object(result: Result) -> dict[str, Any]:
    lines = result.stdout.splitlines()
    assert len(lines) == 1, result.output
    found = json.loads(lines[0])
    assert isinstance(found, dict)
    return found


# -- help -----------------------------------------------------------------------------------------


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


# -- usage ----------------------------------------------------------------------------------------


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


# -- archives -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [["ls"], ["status"], ["search", "x"], ["read", "x"], ["rm", "x"], ["ask", "x"]],
)
def test_without_an_archive_the_exit_code_is_3_and_ingest_is_named(
    empty_desk: Desk, arguments: list[str]
) -> None:
    result = empty_desk(*arguments)
    assert result.exit_code == 3, result.output
    assert "docpager ingest" in result.stderr
    assert not (empty_desk.folder / "docpager.duckdb").exists()
    assert not (empty_desk.folder / "docpager.duckdb.d").exists()


def test_a_file_that_is_no_archive_is_refused(empty_desk: Desk) -> None:
    (empty_desk.folder / "docpager.duckdb").write_text("not a database", encoding="utf-8")
    result = empty_desk("ls")
    assert result.exit_code == 3
    assert "Traceback" not in result.stderr


def test_an_empty_archive_has_nothing_to_ask(empty_desk: Desk) -> None:
    (empty_desk.folder / "corpus").mkdir()
    (empty_desk.folder / "corpus" / "empty.txt").write_bytes(b"")
    assert empty_desk("ingest", "corpus").exit_code == 3
    for arguments in (["ask", "x", "--model", "m", "--base-url", "http://h/v1"], ["search", "x"]):
        result = empty_desk(*arguments)
        assert result.exit_code == 6, result.output
        assert "docpager ingest" in result.stderr


def test_nothing_to_ingest_is_exit_code_6(empty_desk: Desk) -> None:
    (empty_desk.folder / "corpus").mkdir()
    result = empty_desk("ingest", "corpus")
    assert result.exit_code == 6, result.output


def test_a_path_that_is_not_there_is_named(empty_desk: Desk) -> None:
    result = empty_desk("ingest", "no-such-folder")
    assert result.exit_code == 2, result.output
    assert "no-such-folder" in result.stderr


def test_another_embedder_is_refused(desk: Desk) -> None:
    with LoopbackServer() as server:
        variables = {"OPENAI_BASE_URL": server.base_url, "DOCPAGER_EMBEDDER": "openai:e"}
        for arguments in (["search", "x"], ["ask", "x", "--model", "m"], ["ingest", "corpus"]):
            result = desk(*arguments, **variables)
            assert result.exit_code == 2, result.output
            assert "static" in result.stderr


def test_an_archive_that_is_held_names_the_holder(desk: Desk) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from docpager.stores.duckdb.writer import open_writer\n"
        "from docpager.clocks import SystemClock\n"
        "with open_writer(Path(sys.argv[1]), None, clock=SystemClock()):\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(desk.folder / "docpager.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None and holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        refused = desk("ls")
        waiting = desk.start("ls", "--wait")
        time.sleep(0.5)
        assert waiting.poll() is None
    finally:
        holder.stdin.close()
        holder.stdout.close()
        holder.wait(timeout=30)
    assert refused.exit_code == 3
    assert str(holder.pid) in refused.stderr and "--wait" in refused.stderr
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert "corpus/pump.md" in out


# -- ingest, ls, status, search, read, rm ----------------------------------------------------------


def test_ingest_tells_what_was_done_in_the_contracts_keys(desk: Desk) -> None:
    result = desk("ingest", "corpus", "--json")
    record = only_object(result)
    assert list(record) == [
        "schema",
        "added",
        "updated",
        "unchanged",
        "moved",
        "removed",
        "duplicate",
        "failed",
        "ignored",
        "passages",
        "pages",
        "elapsed_s",
        "files",
        "gone",
        "sections",
    ]
    # What is still failed from before is named again, and stays exit code 3.
    assert result.exit_code == 3
    assert (record["unchanged"], record["failed"]) == (2, 1)
    [failed] = [file for file in record["files"] if file["status"] == "failed"]
    assert (failed["path"], failed["reason"]) == ("corpus/empty.txt", "empty")


def test_failures_of_ingest_are_a_table_by_reason_on_stderr(desk: Desk) -> None:
    result = desk("ingest", "corpus", "-q")
    assert result.stdout == ""
    assert "empty (1)\n  corpus/empty.txt: " in result.stderr


def test_ls_lists_every_document_and_status_counts_them(desk: Desk) -> None:
    listed = only_object(desk("ls", "--json"))["documents"]
    assert [item["document"] for item in listed] == [
        "corpus/empty.txt",
        "corpus/pump.md",
        "corpus/reports/firm.pdf",
    ]
    assert [item["state"] for item in listed] == ["failed", "ready", "ready"]
    status = only_object(desk("status", "--json"))
    assert status["documents"] == {"ready": 2, "pending": 0, "failed": 1, "duplicate": 0}
    assert status["embedder"] == {"name": "static", "dimension": 256}
    assert status["failed"][0]["reason"] == "empty"
    text = desk("status").stdout
    assert "2 ready, 1 failed" in text and "corpus/empty.txt" in text
    assert "pages       2, and 1 section of files without pages" in text
    assert status["pages"] == 3


def test_search_pages_are_slices_of_one_ranking(desk: Desk) -> None:
    whole = only_object(desk("search", "Graz", "--json", "--page-size", "50"))
    ones = [
        only_object(desk("search", "Graz", "--json", "--page-size", "1", "--page", str(page)))
        for page in range(whole["page_count"] * whole["total"])
    ]
    assert [hit for one in ones for hit in one["hits"]] == whole["hits"]
    past = desk("search", "Graz", "--page", "99")
    assert past.exit_code == 2
    last = whole["total"] // 5
    assert f"The last page is {last}" in past.stderr and "Ask for" in past.stderr


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "vector"])
def test_search_takes_a_mode_and_a_glob(desk: Desk, mode: str) -> None:
    record = only_object(
        desk("search", "firm Graz", "--mode", mode, "--document", "*.pdf", "--json")
    )
    assert record["mode"] == mode
    assert {hit["document"] for hit in record["hits"]} == {"corpus/reports/firm.pdf"}


@pytest.mark.parametrize("command", ["search", "ask"])
def test_another_embedder_is_refused_with_advice_that_the_command_takes(
    desk: Desk, command: str
) -> None:
    with LoopbackServer() as server:
        other = {"DOCPAGER_EMBEDDER": "openai:m", "OPENAI_BASE_URL": server.base_url}
        options = ("--model", "m") if command == "ask" else ()
        refused = desk(command, "Graz", *options, **other)
    assert refused.exit_code == 2, refused.output
    assert "static" in refused.stderr and "DOCPAGER_EMBEDDER" in refused.stderr
    assert "--embedder" not in refused.stderr


def test_read_prints_the_stored_text_and_nothing_else(desk: Desk) -> None:
    assert desk("read", "firm.pdf", "--page", "2").stdout == "The firm moved to Linz in 1990.\n"
    assert desk("read", "corpus/reports/firm.pdf").stdout.count("\f") == 1
    record = only_object(desk("read", "firm.pdf", "--page", "2", "--json"))
    assert (record["page"], record["pages"], record["engine"]) == (2, 2, "pdfium")
    past = desk("read", "firm.pdf", "--page", "3")
    assert past.exit_code == 2 and "2" in past.stderr
    unknown = desk("read", "frim.pdf")
    assert unknown.exit_code == 2 and "corpus/reports/firm.pdf" in unknown.stderr


def test_rm_forgets_documents_or_none_where_one_is_unknown(empty_desk: Desk) -> None:
    for name in ("a", "b"):
        (empty_desk.folder / f"{name}.md").write_text(f"# {name}\n\nText of {name}.\n")
    (empty_desk.folder / "c.md").write_bytes(b"")
    assert empty_desk("ingest", "a.md", "b.md", "c.md").exit_code == 3
    refused = empty_desk("rm", "a.md", "nothing.md")
    assert refused.exit_code == 2
    assert len(only_object(empty_desk("ls", "--json"))["documents"]) == 3
    record = only_object(empty_desk("rm", "a.md", "c.md", "--json"))
    assert list(record) == ["schema", "removed", "passages"]
    assert [name.rpartition("/")[2] for name in record["removed"]] == ["a.md", "c.md"]
    assert record["passages"] == 1
    assert len(only_object(empty_desk("ls", "--json"))["documents"]) == 1
    assert (empty_desk.folder / "a.md").exists()


def test_rm_leaves_what_is_attached_to_a_mail_to_its_copy(empty_desk: Desk) -> None:
    message = mail("See.", [("x.txt", b"Whales.")])
    for name in ("a", "b"):
        (empty_desk.folder / f"{name}.eml").write_bytes(message)
    assert empty_desk("ingest", "a.eml", "b.eml").exit_code == 0
    record = only_object(empty_desk("rm", "a.eml", "--json"))
    assert [name.rpartition("a.eml")[2] for name in record["removed"]] == ["", "/x.txt"]
    assert record["passages"] == 0
    assert empty_desk("read", "b.eml/x.txt").stdout == "Whales.\n"


# -- ask ------------------------------------------------------------------------------------------


def test_an_answer_is_on_stdout_and_the_model_on_stderr(desk: Desk) -> None:
    with LoopbackServer(cited) as server:
        result = ask(desk, server)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "In Graz."
    assert f'[1] corpus/pump.md § The pump, line 3 "{QUOTE}"' in result.stdout
    assert f"Model loopback at {server.base_url}, mode tools, window 8192" in result.stderr
    assert "\x1b" not in result.output


def test_an_answer_as_json_is_one_object_of_the_contracts_keys(desk: Desk) -> None:
    with LoopbackServer(cited) as server:
        result = ask(desk, server, "--json", "--seed", "7")
    record = only_object(result)
    assert record["status"] == "answered"
    assert record["citations"][0]["verified"] is True
    assert record["model"] == "loopback"
    assert record["usage"]["prompt_tokens"] == 50
    assert list(record)[:5] == ["schema", "run_id", "question", "status", "answer"]


def test_a_question_can_come_from_standard_input(desk: Desk) -> None:
    with LoopbackServer(cited) as server:
        options = ("--model", "loopback", "--base-url", server.base_url, "--tool-mode", "tools")
        result = desk("ask", "-", "--json", *options, input="Wo wurde die\nPumpe gebaut? ü\n")
    assert only_object(result)["question"] == "Wo wurde die\nPumpe gebaut? ü"


def test_a_question_in_another_locale_arrives_as_it_was_typed(desk: Desk) -> None:
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    process = desk.start("search", "河 in Graz", "--json", **locale)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert json.loads(out)["query"] == "河 in Graz"


@pytest.mark.parametrize("mode", ["tools", "json", "text"])
def test_the_mode_is_settled_by_trying_and_remembered(desk: Desk, mode: str) -> None:
    def model(request: LoopbackRequest) -> LoopbackReply:
        probing = "look_up" in json.dumps(request.body)
        if mode != "tools" and "tools" in request.body:
            return LoopbackReply({"error": {"message": "no tools here", "param": "tools"}}, 400)
        if mode == "text" and "response_format" in request.body:
            return wire_reply(say("I would rather chat."))
        if probing:
            return wire_reply(call("look_up", query="archive", page=0), mode)  # type: ignore[arg-type]
        reply = call("send_message", message="No.", citations=[], not_found=True)
        return wire_reply(reply, mode)  # type: ignore[arg-type]

    with LoopbackServer(model) as server:
        options = ("--model", f"m-{mode}", "--base-url", server.base_url, "--json")
        first = only_object(desk("ask", "What?", *options))
        calls = len(server.requests)
        second = only_object(desk("ask", "What?", *options))
        probes = [body for body in server.bodies()[calls:] if "look_up" in json.dumps(body)]
    assert first["tool_mode"] == second["tool_mode"] == mode
    assert first["run_id"] == second["run_id"]
    assert probes == []


@pytest.mark.parametrize(
    ("reply", "codes"),
    [
        (say(""), {4}),
        (say("It was probably Graz."), {1, 4}),
        (call("no_such_function", x=1), {1, 4}),
        (call("archival_memory_search", query=17, page="first"), {1, 4}),
        (call("archival_memory_search", query="pump", page=999), {1, 4}),
        (several(*[call("archival_memory_search", query="pump", page=0)] * 10), {1, 4}),
        (
            call(
                "send_message",
                message="Graz",
                citations=[{"passage_id": "P999", "quote": QUOTE}],
                not_found=False,
            ),
            {1},
        ),
    ],
)
def test_whatever_the_model_says_the_run_ends_and_its_trace_is_kept(
    desk: Desk, reply: AssistantMessage, codes: set[int]
) -> None:
    with LoopbackServer(lambda request: wire_reply(reply)) as server:
        result = ask(desk, server, "--json", "--max-steps", "4", "--timeout", "20")
    assert result.exit_code in codes, result.output
    record = only_object(result)
    assert record["status"] in ("unsupported", "not_found", "step_limit", "model_error")
    traced = desk("trace", record["run_id"], "--json")
    assert only_object(traced)["events"][-1]["event"] == "answer"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (LoopbackReply({"error": {"message": "wrong key"}}, 401), "wrong key|key"),
        (
            LoopbackReply({"error": {"message": "used up", "code": "insufficient_quota"}}, 429),
            "quota|used up",
        ),
        (LoopbackReply({"error": {"message": "oops"}}, 500), "oops|500"),
        (LoopbackReply("not json at all"), "."),
        (LoopbackReply({}, delay_s=30.0), "."),
    ],
)
def test_an_endpoint_that_fails_is_exit_code_4_with_its_words_and_a_trace(
    desk: Desk, fault: LoopbackReply, said: str
) -> None:
    with LoopbackServer(lambda request: fault) as server:
        result = ask(desk, server, "--json", "--timeout", "2")
    assert result.exit_code == 4, result.output
    record = only_object(result)
    assert record["status"] == "model_error"
    assert re.search(said, record["error"])
    assert desk("trace", record["run_id"]).exit_code == 0


def test_an_endpoint_that_is_down_is_exit_code_4(desk: Desk) -> None:
    options = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--timeout", "1")
    result = desk("ask", "Where?", *options)
    assert result.exit_code == 4, result.output
    assert "127.0.0.1:9" in result.stdout + result.stderr
    assert "Traceback" not in result.output


def test_a_bound_on_tokens_is_exit_code_5(desk: Desk) -> None:
    searching = call("archival_memory_search", query="pump", page=0)
    with LoopbackServer(lambda request: wire_reply(searching, usage=Usage(1500, 0, 50))) as server:
        result = ask(desk, server, "--json", "--max-tokens", "6000")
    assert result.exit_code == 5, result.output
    assert only_object(result)["stopped_by"] == "tokens"


def test_a_question_beyond_the_window_is_refused_with_both_numbers(desk: Desk) -> None:
    with LoopbackServer() as server:
        options = ("--model", "m", "--base-url", server.base_url, "--tool-mode", "tools")
        result = desk("ask", "why " * 5000, *options, "--context-window", "2048")
    assert result.exit_code == 2
    assert len(re.findall(r"\d{3,}", result.stderr)) >= 2
    assert server.requests == []


def test_a_session_remembers_and_a_trace_can_be_kept_elsewhere(desk: Desk) -> None:
    with LoopbackServer(cited) as server:
        options = ("--session", "audit", "--trace", "here.jsonl", "--json")
        first = only_object(ask(desk, server, *options))
        second = only_object(ask(desk, server, *options))
    assert first["run_id"] != second["run_id"]
    assert (desk.folder / "docpager.duckdb.d" / "sessions" / "audit.duckdb").exists()
    lines = (desk.folder / "here.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0])["run_id"] == second["run_id"]


def test_a_key_never_appears(desk: Desk) -> None:
    with LoopbackServer(lambda request: LoopbackReply({"error": {"message": "no"}}, 401)) as server:
        result = ask(desk, server, "--debug", "-v", OPENAI_API_KEY="sk-sesame-secret")
    assert "sesame" not in result.output
    for path in (desk.folder / "docpager.duckdb.d").rglob("*.jsonl"):
        assert "sesame" not in path.read_text(encoding="utf-8")


def make_answer(**changes: object) -> Answer:
    fields: dict[str, Any] = {
        "run_id": "r",
        "question": "q",
        "status": "answered",
        "answer": "a",
        "citations": (),
        "steps": 1,
        "searches": 1,
        "pages_read": 1,
        "usage": Usage(),
        "model": "m",
        "tool_mode": "tools",
        "stopped_by": None,
        "elapsed_s": 0.0,
    }
    return Answer(**{**fields, **changes})


@pytest.mark.parametrize(
    ("status", "stopped_by", "code"),
    [
        ("answered", None, 0),
        ("answered", "tokens", 0),
        ("unsupported", None, 1),
        ("unsupported", "time", 5),
        ("not_found", None, 1),
        ("not_found", "steps", 1),
        ("step_limit", "steps", 1),
        ("budget", "tokens", 5),
        ("model_error", None, 4),
        ("model_error", "time", 4),
    ],
)
def test_the_exit_code_tells_the_outcome(status: str, stopped_by: str | None, code: int) -> None:
    assert answer_exit_code(make_answer(status=status, stopped_by=stopped_by)) == code


def test_the_worst_exit_code_stands() -> None:
    order = [130, 2, 3, 4, 5, 1, 0]
    for first, second in itertools.pairwise(order):
        assert worst({first, second}) == first
    assert worst(set()) == 0


# -- trace, model, doctor -------------------------------------------------------------------------


def test_runs_are_listed_newest_first_and_found_by_a_prefix(empty_desk: Desk) -> None:
    assert empty_desk("trace").exit_code == 6
    folder = empty_desk.folder / "docpager.duckdb.d" / "runs"
    folder.mkdir(parents=True)
    for at, run_id in enumerate(["aa11", "aa22", "bb33"]):
        path = folder / f"{run_id}.jsonl"
        path.write_text(f'{{"event": "run", "question": "Q{at}"}}\n{{"torn', encoding="utf-8")
        os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))
    listed = only_object(empty_desk("trace", "--json"))["runs"]
    assert [run["run_id"] for run in listed] == ["bb33", "aa22", "aa11"]
    assert [run["question"] for run in listed] == ["Q2", "Q1", "Q0"]
    assert "Q2" in empty_desk("trace", "b").stdout
    several_fit = empty_desk("trace", "aa")
    assert several_fit.exit_code == 2 and "aa11, aa22" in several_fit.stderr
    assert empty_desk("trace", "cc").exit_code == 2


def test_a_place_that_cannot_be_written_sends_traces_to_the_state_folder(desk: Desk) -> None:
    runs = desk.folder / "docpager.duckdb.d"
    elsewhere = desk.folder / "state"
    runs.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        # Nothing is closed to the superuser: a file in the folder's place is.
        moved = desk.folder / "kept-aside"
        runs.rename(moved)
        runs.write_bytes(b"")
    else:
        moved = None
        runs.chmod(0o500)
    try:
        with LoopbackServer(cited) as server:
            result = ask(desk, server, "--json", DOCPAGER_STATE_DIR=str(elsewhere))
    finally:
        if moved is not None:
            runs.unlink()
            moved.rename(runs)
        else:
            runs.chmod(0o700)
    record = only_object(result)
    assert list(elsewhere.rglob(f"{record['run_id']}.jsonl"))
    shown = desk("trace", record["run_id"], DOCPAGER_STATE_DIR=str(elsewhere))
    assert "Where was the pump made?" in shown.stdout


def test_model_tells_that_the_weights_are_not_here(empty_desk: Desk) -> None:
    result = empty_desk("model", "--json")
    record = only_object(result)
    assert result.exit_code == 0
    assert record["present"] is False
    assert record["path"].startswith(str(empty_desk.folder))
    assert empty_desk("model", "--check").exit_code == 2
    assert empty_desk("model", "--remove").exit_code == 0


def test_weights_with_a_wrong_hash_are_refused(empty_desk: Desk) -> None:
    fake = empty_desk.folder / "model.gguf"
    fake.write_bytes(b"GGUF, but another one")
    result = empty_desk("model", "--obtain", str(fake))
    assert result.exit_code == 2
    assert only_object(empty_desk("model", "--json"))["present"] is False


def test_doctor_reports_each_check(desk: Desk) -> None:
    ready = wire_reply(say("ready"))
    with LoopbackServer(lambda request: ready) as server:
        options = ("--model", "m", "--base-url", server.base_url, "--tool-mode", "json")
        result = desk("doctor", "--json", *options)
        text = desk("doctor", *options, "--context-window", "9000").stdout
    checks = {check["name"]: check for check in only_object(result)["checks"]}
    assert list(checks) == [
        "archive",
        "embedder",
        "vocabulary",
        "model",
        "endpoint",
        "mode",
        "window",
        "network",
    ]
    states = {name: check["state"] for name, check in checks.items()}
    assert states["archive"] == states["window"] == "warn"
    assert set(states.values()) == {"ok", "warn"}
    assert result.exit_code == 0
    assert "ok    window      9000 tokens" in text


def test_doctor_exits_with_the_code_of_the_worst_check(empty_desk: Desk) -> None:
    (empty_desk.folder / "docpager.duckdb").write_bytes(b"damaged")
    options = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--timeout", "1")
    result = empty_desk("doctor", *options, "--json")
    states = {check["name"]: check["state"] for check in only_object(result)["checks"]}
    assert (states["archive"], states["endpoint"]) == ("fail", "fail")
    assert result.exit_code == 3
    assert empty_desk("doctor", *options, "-a", "none.duckdb").exit_code == 4


# -- signals and pipes ----------------------------------------------------------------------------


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


# -- Python ---------------------------------------------------------------------------------------


def test_the_functions_of_the_package_do_what_the_commands_do(desk: Desk) -> None:
    archive = desk.folder / "docpager.duckdb"
    page = docpager.search("Graz", archive=archive, page_size=2)
    assert [hit.rank for hit in page.hits] == [0, 1]
    report = docpager.ingest_paths([desk.folder / "corpus"], archive=archive)
    assert (report.unchanged, report.failed) == (2, 1)
    with LoopbackServer(cited) as server:
        answer = docpager.answer_question(
            "Where was the pump made?",
            archive=archive,
            model="loopback",
            base_url=server.base_url,
            tool_mode="tools",
        )
    assert answer.status == "answered"
    with pytest.raises(docpager.UserError):
        docpager.search("Graz", archive=archive, page=99)


def test_a_model_that_fails_is_an_answer_and_one_that_cannot_be_loaded_an_exception(
    desk: Desk, tmp_path: Path
) -> None:
    archive = desk.folder / "docpager.duckdb"
    refusing = LoopbackReply({"error": {"message": "wrong key"}}, 401)
    with LoopbackServer(lambda request: refusing) as server:
        answer = docpager.answer_question(
            "Where?", archive=archive, model="m", base_url=server.base_url, tool_mode="tools"
        )
    assert (answer.status, "wrong key" in str(answer.error)) == ("model_error", True)
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\x00" * 100)
    with pytest.raises(docpager.ModelError, match="cannot load"):
        docpager.answer_question("Where?", archive=archive, model=f"local:{broken}")
    raised = str(docpager.Archive.ask.__doc__).partition("Raises:")[2]
    assert "ModelError: the embedded model cannot be loaded" in raised


def test_an_archive_can_be_sent_elsewhere(desk: Desk) -> None:
    with LoopbackServer(cited) as server:
        config = docpager.load(
            {
                "archive": desk.folder / "docpager.duckdb",
                "model": "loopback",
                "base_url": server.base_url,
                "tool_mode": "tools",
            }
        )
        with docpager.Archive(config=config) as archive:
            archive.status()  # what is open stays behind
            sent = pickle.loads(pickle.dumps(archive))
        with sent:
            assert sent.ask("Where was the pump made?").status == "answered"


# ---- what must not happen to a person ------------------------------------------------------------


def test_a_trace_is_never_written_over_something_else(desk: Desk) -> None:
    precious = desk.folder / "precious.md"
    precious.write_text("Words that are nowhere else.", encoding="utf-8")
    with LoopbackServer(answering(say("x"))) as server:
        result = ask(desk, server, "--trace", "precious.md")
    assert result.exit_code == 2 and "is not a trace" in result.stderr
    assert precious.read_text(encoding="utf-8") == "Words that are nowhere else."


def test_a_trace_is_written_over_an_older_one(desk: Desk) -> None:
    for _ in range(2):
        with LoopbackServer([cited] * 3) as server:
            assert ask(desk, server, "--trace", "again.jsonl").exit_code == 0
    lines = (desk.folder / "again.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["event"] for line in lines].count("answer") == 1


def test_what_a_model_failed_with_is_no_output(desk: Desk) -> None:
    result = desk("ask", "Who?", "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "127.0.0.1:9" in result.stderr


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


def test_a_session_folder_that_cannot_be_made_is_said(desk: Desk, tmp_path: Path) -> None:
    (desk.folder / "docpager.duckdb.d").mkdir(exist_ok=True)
    blocked = desk.folder / "docpager.duckdb.d" / "sessions"
    moved = blocked.rename(tmp_path / "sessions") if blocked.exists() else None
    blocked.write_text("a file", encoding="utf-8")
    try:
        with LoopbackServer(answering(say("x"))) as server:
            result = ask(desk, server, "--session", "s")
    finally:
        blocked.unlink()
        if moved:
            moved.rename(blocked)
    assert result.exit_code == 2 and "cannot be made" in result.stderr


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


@pytest.mark.parametrize("question", ["Why? " * 100, "为什么" * 100, "Why?"])
def test_a_terminal_shows_each_run_on_one_line(empty_desk: Desk, question: str) -> None:
    (empty_desk.folder / "docpager.duckdb").touch()
    folder = empty_desk.folder / "docpager.duckdb.d" / "runs"
    with TraceFile(folder, "r1", None) as trace:
        trace.event("run", run_id="r1", question=question)
    piped = empty_desk("trace").stdout
    assert piped.strip().endswith(question.strip())
    [line] = empty_desk.on_terminal("trace", columns=60).splitlines()
    assert cell_len(line) <= 60
    assert line.startswith("r1  ") and line.endswith("Why?" if question == "Why?" else "…")


def test_an_interrupted_run_is_listed_as_stopped(desk: Desk) -> None:
    with pytest.raises(KeyboardInterrupt), TraceFile(desk.folder / "runs", "r2", None) as trace:
        trace.event("run", question="q")
        raise KeyboardInterrupt
    [line] = [
        run_line(run, run.events) for run in list_runs([desk.folder / "runs"]) if run.run_id == "r2"
    ]
    assert "stopped" in line
