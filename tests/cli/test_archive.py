from __future__ import annotations

import subprocess
import sys
import time

import pytest

from docpager.testing import LoopbackServer
from tests.cli.desks import only_object
from tests.desk import Desk
from tests.documents.making import mail


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
