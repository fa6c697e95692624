"""What must hold under load and violence, measured with real processes: `make bars`."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from docpager.testing import LoopbackReply, LoopbackRequest, LoopbackServer, call, wire_reply

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "sample_docs"

pytestmark = pytest.mark.bars


def command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DOCPAGER_", "OPENAI_"))
    }
    return subprocess.Popen(
        [sys.executable, "-m", "docpager", *arguments],
        cwd=folder,
        env={**kept, "HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def passages(folder: Path) -> list[tuple[str, str, str]]:
    """Every passage with its id and place, in order."""
    from docpager.clocks import SystemClock
    from docpager.stores.duckdb.reader import DuckDBReader

    with DuckDBReader.open(folder / "docpager.duckdb", clock=SystemClock()) as archive:
        ids = [f"P{number}" for number in range(1, 5000)]
        return [(item.passage_id, item.document, item.text) for item in archive.passages(ids)]


def test_an_ingest_killed_at_random_moments_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    began = time.monotonic()
    assert finished(command(whole, "ingest", str(SAMPLE)))[0] == 0
    lasted = time.monotonic() - began
    expected = passages(whole)

    draw = random.Random(20)
    killed = 0
    for attempt in range(20):
        folder = tmp_path / f"killed{attempt}"
        folder.mkdir()
        process = command(folder, "ingest", str(SAMPLE))
        time.sleep(draw.uniform(0.1, lasted))
        if process.poll() is None:
            killed += 1
            process.send_signal(signal.SIGKILL)
        finished(process)
        if (folder / "docpager.duckdb").exists():
            code, _, err = finished(command(folder, "status"))
            assert code == 0, err
        code, _, err = finished(command(folder, "ingest", str(SAMPLE)))
        assert code == 0, err
        assert passages(folder) == expected
        shutil.rmtree(folder)
    print(f"ingest killed {killed} times of 20, {len(expected)} passages each time")
    assert killed >= 10


def test_eight_ask_at_once_while_a_ninth_tries_to_ingest(tmp_path: Path) -> None:
    assert finished(command(tmp_path, "ingest", str(SAMPLE)))[0] == 0
    asked: set[str] = set()

    def model(request: LoopbackRequest) -> LoopbackReply:
        asked.add(json.dumps(request.body["messages"][1]["content"]))
        reply = call("send_message", message="No.", citations=[], not_found=True)
        # Slow enough for all eight to hold the archive at once.
        found = wire_reply(reply)
        return LoopbackReply(found.body, delay_s=6.0)

    new = tmp_path / "new"
    new.mkdir()
    (new / "note.md").write_text("# New\n\nThis came later.\n", encoding="utf-8")
    with LoopbackServer(model) as server:
        options = ("--model", "m", "--base-url", server.base_url, "--tool-mode", "tools", "--json")
        asking = [command(tmp_path, "ask", f"Question {n}?", *options) for n in range(8)]
        until = time.monotonic() + 120
        while len(asked) < 8:
            assert time.monotonic() < until
            time.sleep(0.05)
        refused = command(tmp_path, "ingest", "new")
        waiting = command(tmp_path, "ingest", "new", "--wait")
        answers = [finished(process) for process in asking]
    assert [code for code, _, _ in answers] == [1] * 8
    assert {json.loads(out)["status"] for _, out, _ in answers} == {"not_found"}
    code, _, err = finished(refused)
    assert code == 3 and any(str(process.pid) in err for process in asking), err
    code, _, err = finished(waiting)
    assert code == 0, err
    assert len(list((tmp_path / "docpager.duckdb.d" / "runs").glob("*.jsonl"))) == 8
