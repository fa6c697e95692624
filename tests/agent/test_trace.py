"""Traces: whole lines, safe beside each other, and old ones let go."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from docpager.agent.trace import TraceFile
from docpager.errors import ModelError, UserError


def test_a_trace_is_readable_while_it_grows_and_has_its_name_at_the_end(tmp_path: Path) -> None:
    with TraceFile(tmp_path / "runs", "abc", keep_runs=5) as trace:
        trace.event("run", question="why?\ud800")
        partial = tmp_path / "runs" / f"abc.jsonl.{os.getpid()}-{threading.get_native_id()}"
        assert json.loads(partial.read_text(encoding="utf-8"))["event"] == "run"
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["abc.jsonl"]


def test_a_run_that_fails_keeps_its_trace(tmp_path: Path) -> None:
    with pytest.raises(ModelError), TraceFile(tmp_path, "abc", keep_runs=5) as trace:
        trace.event("run")
        raise ModelError("down")
    assert (tmp_path / "abc.jsonl").exists()


def test_only_the_newest_runs_are_kept(tmp_path: Path) -> None:
    for number in range(6):
        with TraceFile(tmp_path, f"run{number}", keep_runs=3) as trace:
            trace.event("run")
        os.utime(tmp_path / f"run{number}.jsonl", (number + 1, number + 1))
    with TraceFile(tmp_path, "last", keep_runs=3) as trace:
        trace.event("run")
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["last", "run4", "run5"]


def test_a_place_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be written"):
        TraceFile(tmp_path / "runs", "abc", keep_runs=3).__enter__()
