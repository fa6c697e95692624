from __future__ import annotations

import json
import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from rich.cells import cell_len

import docpager
from docpager.agent.runs import list_runs
from docpager.agent.trace import TraceFile
from docpager.cli.questions import answer_exit_code
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
from tests.cli.desks import QUOTE, only_object
from tests.desk import Desk


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
