"""A batch around its questions: its files are checked before, its subscribers called after."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from docpager.config import Config
from docpager.errors import UserError
from docpager.wiring.batches import BatchFiles, check_files
from tests.batch.test_reports import ASKED, ROWS, finished


def files(folder: Path, **reports: Path) -> BatchFiles:
    return BatchFiles(folder / "q.jsonl", folder / "r.jsonl", **reports)


def test_every_report_that_is_named_subscribes_to_the_end(tmp_path: Path) -> None:
    named = {
        "junit_xml": tmp_path / "junit.xml",
        "report": tmp_path / "report.html",
        "summary": tmp_path / "summary.json",
    }
    batch = finished(ASKED, ROWS, runs=tmp_path)
    for subscriber in files(tmp_path, **named).subscribers():
        subscriber(batch)
    begins = {path.name: path.read_bytes()[:9] for path in tmp_path.iterdir()}
    assert begins == {
        "junit.xml": b"<?xml ver",
        "report.html": b"<!doctype",
        "summary.json": b'{\n "schem',
    }


@pytest.mark.parametrize("name", ["junit_xml", "report", "summary"])
def test_a_report_that_is_not_named_does_not_subscribe(tmp_path: Path, name: str) -> None:
    assert [*files(tmp_path).subscribers()] == []
    [subscriber] = files(tmp_path, **{name: tmp_path / "out"}).subscribers()
    subscriber(finished(ASKED, ROWS, runs=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_files_that_can_be_written_are_not_left_behind(tmp_path: Path) -> None:
    link = tmp_path / "link.xml"
    link.symlink_to(tmp_path / "not-there.xml")
    check_files(Config(), files(tmp_path, summary=tmp_path / "new" / "s.json", junit_xml=link))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.xml", "new"]
    assert not [*(tmp_path / "new").iterdir()]


@pytest.mark.parametrize("linked", ["same path", "symbolic", "hard"])
def test_two_options_for_one_file_are_refused(tmp_path: Path, linked: str) -> None:
    results, other = tmp_path / "r.jsonl", tmp_path / "s.json"
    results.write_text("kept", encoding="utf-8")
    if linked == "symbolic":
        other.symlink_to(results)
    elif linked == "hard":
        os.link(results, other)
    else:
        other = results
    with pytest.raises(UserError, match="-o and --summary name the same file"):
        check_files(Config(), files(tmp_path, summary=other))
    assert results.read_text(encoding="utf-8") == "kept"


def test_a_device_may_be_named_more_than_once(tmp_path: Path) -> None:
    null = Path(os.devnull)
    check_files(Config(), files(tmp_path, summary=null, junit_xml=null, report=null))


def test_a_report_that_cannot_be_written_is_refused_before(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        check_files(Config(), files(tmp_path, report=tmp_path))
