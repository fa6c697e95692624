"""A worker that dies, hangs or grows costs one item, and the order stays."""

from __future__ import annotations

import importlib
import operator
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from docpager.documents.loaders import ParseTask
from docpager.documents.sandbox import Limits, Sandbox
from docpager.errors import DocumentError, UserError
from docpager.testing import CharacterCounter


def reasons(outcomes: Iterator[object]) -> list[object]:
    return [item.reason if isinstance(item, DocumentError) else item for item in outcomes]


def test_results_keep_the_order_of_the_items() -> None:
    sandbox: Sandbox[float, None] = Sandbox(time.sleep, 3)
    began = time.monotonic()
    assert list(sandbox.map([0.6, 0.0, 0.6, 0.0, 0.6])) == [None] * 5
    assert time.monotonic() - began < 60
    doubled: Sandbox[str, str] = Sandbox(operator.itemgetter(0), 2)
    assert list(doubled.map("abcdef")) == list("abcdef")


def test_an_item_past_its_deadline_is_killed_and_the_next_go_on() -> None:
    sandbox: Sandbox[float, None] = Sandbox(time.sleep, 1, Limits(seconds=1.0))
    assert reasons(sandbox.map([0.0, 600.0, 0.0])) == [None, "timed_out", None]


SLOW_PAGES = """
import time
from docpager.documents.progress import page_begun, pages_over

def read(times):
    for number, seconds in enumerate(times[:-1], 1):
        page_begun(number)
        time.sleep(seconds)
    pages_over()
    time.sleep(times[-1])
    return len(times)
"""


def test_a_page_past_its_deadline_is_named_and_other_times_are_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_pages.py").write_text(SLOW_PAGES)
    monkeypatch.syspath_prepend(str(tmp_path))
    read = importlib.import_module("slow_pages").read
    limits = Limits(seconds=600.0, page_seconds=1.5)
    sandbox: Sandbox[list[float], int] = Sandbox(read, 1, limits)
    late, many, after = sandbox.map([[0.2, 600.0, 0.0], [0.3] * 8, [0.0, 2.5]])
    assert isinstance(late, DocumentError) and late.reason == "timed_out"
    assert "page 2 took more than 1.5 s" in str(late)
    assert (many, after) == (8, 2)


SLOW_RECOGNITION = """
import time
from docpager.documents.progress import page_recognised

def read(times):
    for number, seconds in enumerate(times, 1):
        page_recognised(number, len(times))
        time.sleep(seconds)
    return len(times)
"""


def test_a_page_that_is_recognised_is_told_and_has_time_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_recognition.py").write_text(SLOW_RECOGNITION)
    monkeypatch.syspath_prepend(str(tmp_path))
    read = importlib.import_module("slow_recognition").read
    told: list[tuple[int, int]] = []
    sandbox: Sandbox[list[float], int] = Sandbox(
        read,
        1,
        Limits(seconds=1.0, page_seconds=3.0),
        lambda item, page, pages: told.append((page, pages)),
    )
    many, late = sandbox.map([[0.6] * 4, [0.1, 600.0]])
    assert many == 4 and told[:4] == [(number, 4) for number in range(1, 5)]
    assert isinstance(late, DocumentError) and "page 2 took more than 3 s" in str(late)


def test_an_item_that_was_late_costs_the_next_nothing() -> None:
    sandbox: Sandbox[float, None] = Sandbox(time.sleep, 1, Limits(seconds=0.4))
    for outcome in sandbox.map([0.3, 0.35, 0.4, 0.45, 0.5, 0.0, 0.38, 0.42, 0.0]):
        assert outcome is None or (
            isinstance(outcome, DocumentError) and outcome.reason == "timed_out"
        )


def test_light_items_are_worked_on_while_a_slow_one_is_waited_for() -> None:
    asked: list[float] = []

    def items() -> Iterator[float]:
        for seconds in [1.0] + [0.0] * 99:
            asked.append(seconds)
            yield seconds

    sandbox: Sandbox[float, None] = Sandbox(time.sleep, 2)
    results = sandbox.map(items(), weight=lambda item: 1)
    next(results)
    assert 5 < len(asked) <= 65
    assert len(list(results)) == 99


def test_a_worker_that_dies_is_one_failed_item() -> None:
    sandbox: Sandbox[int, None] = Sandbox(signal.raise_signal, 2)
    items = [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGCONT]
    assert reasons(sandbox.map(items)) == ["damaged", "out_of_memory", "out_of_memory", None]
    left: Sandbox[int, None] = Sandbox(os._exit, 1)
    assert reasons(left.map([0, 1])) == ["damaged", "damaged"]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is held on Linux only")
def test_an_item_past_its_memory_is_one_failed_item() -> None:
    sandbox: Sandbox[int, bytearray] = Sandbox(bytearray, 1, Limits(memory_bytes=1 << 30))
    outcomes = list(sandbox.map([1, 2 << 30, 2]))
    assert reasons(iter(outcomes)) == [bytearray(1), "out_of_memory", bytearray(2)]
    assert str(outcomes[1]).startswith("Reading the file needs more than 1,024 MB of memory. ")


def test_an_unforeseen_error_is_one_failed_item_that_names_it() -> None:
    sandbox: Sandbox[object, int] = Sandbox(len, 1)
    bad, good = sandbox.map([7, "four"])
    assert isinstance(bad, DocumentError) and "TypeError" in str(bad) and good == 4


def test_what_work_prints_does_not_get_between_the_answers() -> None:
    sandbox: Sandbox[str, None] = Sandbox(print, 1)
    assert list(sandbox.map(["noise", "more noise"])) == [None, None]


def test_items_are_asked_for_only_a_little_ahead() -> None:
    asked: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            asked.append(number)
            yield number

    sandbox: Sandbox[int, int] = Sandbox(abs, 2)
    results = sandbox.map(items())
    assert next(results) == 0 and len(asked) <= 5
    results.close()


def test_closing_kills_what_still_runs() -> None:
    sandbox: Sandbox[float, None] = Sandbox(time.sleep, 2)
    results = sandbox.map([0.0, 600.0, 600.0, 600.0])
    next(results)
    began = time.monotonic()
    results.close()
    assert time.monotonic() - began < 20


def test_a_worker_that_cannot_start_is_no_documents_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def work(item: int) -> int:
        return item

    here = types.ModuleType("a_module_of_this_process")
    work.__module__, work.__qualname__ = here.__name__, "work"
    here.__dict__["work"] = work
    monkeypatch.setitem(sys.modules, here.__name__, here)
    sandbox: Sandbox[int, int] = Sandbox(work, 1)
    with pytest.raises(UserError, match="cannot be started"):
        list(sandbox.map([1]))


def test_parsing_gives_the_same_whatever_the_number_of_workers(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}.md").write_text(f"# T{number}\n\n" + "Words here. " * number * 40)
    paths = [str(path) for path in sorted(tmp_path.iterdir())] + [str(tmp_path / "gone.md")]
    task = ParseTask(CharacterCounter())
    alone, together = (
        [str(item) if isinstance(item, DocumentError) else item for item in run.map(paths)]
        for run in (Sandbox(task, 1), Sandbox(task, 3))
    )
    assert alone == together and "cannot be read" in str(alone[-1])
    assert alone[1] == task(paths[1])


def test_workers_load_neither_the_database_nor_a_model_client() -> None:
    code = (
        "import sys; import docpager.documents.sandbox, docpager.documents.loaders, "
        "docpager.documents.pdf.reader, docpager.documents.text.reader; "
        "print(sorted({'duckdb', 'openai', 'click', 'rich', 'xllamacpp'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"
