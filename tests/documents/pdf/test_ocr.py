"""Recognised boxes become lines in reading order; with the extra, scans become documents."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
import pytest
from click.testing import CliRunner
from fpdf import FPDF
from hypothesis import given
from hypothesis import strategies as st

from docpager import wiring
from docpager.agent.citations import CitationChecker
from docpager.cli import main
from docpager.config import load
from docpager.documents.loaders import parse_bytes
from docpager.documents.pdf import ocr
from docpager.documents.pdf.ocr import Box, reading_lines
from docpager.documents.pdf.options import PdfOptions
from docpager.function_results import ProposedCitation
from tests.documents.making import mail

BOOK = Path(__file__).parents[3] / "sample_docs" / "books" / "life-of-hester-maravell.pdf"
SLOW = ("--workers", "1", "--page-timeout", "250")
"""A page takes seconds, or minutes where others use the machine."""
CHINESE = ("清江港年鉴记载一九三一年的货物", "港口共有十二名引水员")


def row(top: float, *cells: tuple[float, float, str]) -> list[Box]:
    return [Box(left, top, right, top + 20, text) for left, right, text in cells]


def scan(*pictures: Any) -> bytes:
    """A PDF of nothing but pictures."""
    pdf = FPDF()
    for picture in pictures:
        pdf.add_page()
        pdf.image(picture, x=0, y=0, w=pdf.w)
    return bytes(pdf.output())


def picture_of_page(path: Path, index: int) -> Any:
    document = pypdfium2.PdfDocument(path)
    try:
        return document[index].render(scale=2.8).to_pil().crop((0, 0, 1700, 900))
    finally:
        document.close()


def picture_of_chinese(*lines: str) -> Any:
    """Drawn with the font that comes with the extra: not every machine has one."""
    import cv2
    from PIL import Image

    canvas = np.full((120 * len(lines) + 80, 1400, 3), 255, np.uint8)
    font = cv2.FontFace("uni")
    for number, line in enumerate(lines):
        cv2.putText(canvas, line, (40, 100 + 120 * number), (0, 0, 0), font, 44)
    return Image.fromarray(canvas)


def test_pieces_of_one_line_are_put_together_from_left_to_right() -> None:
    boxes = [
        *row(100, (200, 300, "world")),
        *row(102, (10, 190, "hello")),
        *row(140, (10, 90, "end")),
    ]
    assert reading_lines(boxes) == ["hello world", "end"]


def test_columns_of_text_are_read_one_after_the_other_below_a_title() -> None:
    boxes = row(10, (150, 650, "A title over both columns"))
    for number in range(6):
        top = 80 + 30 * number
        boxes += row(top, (420, 790, f"right {number}"), (10, 380, f"left {number}"))
    wanted = [f"{side} {number}" for side in ("left", "right") for number in range(6)]
    assert reading_lines(boxes) == ["A title over both columns", *wanted]


def test_rows_of_a_table_stay_together() -> None:
    boxes = []
    for number in range(6):
        boxes += row(80 + 30 * number, (10, 80, f"n{number}"), (300, 360, "7"), (600, 660, "8"))
    assert reading_lines(boxes) == [f"n{number} 7 8" for number in range(6)]


@given(
    st.lists(
        st.builds(
            lambda left, top, width, height, text: Box(left, top, left + width, top + height, text),
            st.floats(0, 1000),
            st.floats(0, 1000),
            st.floats(0, 400),
            st.floats(0, 60),
            st.text("abc ", max_size=8).map(str.strip),
        ),
        max_size=40,
    )
)
def test_no_word_is_lost_or_doubled_wherever_the_boxes_are(boxes: list[Box]) -> None:
    lines = reading_lines(boxes)
    said = sorted(" ".join(lines).split())
    assert said == sorted(word for box in boxes for word in box.text.split())
    assert all(lines)


def test_asking_for_it_without_the_extra_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "MODULE", "docpager_has_no_such_module")
    (tmp_path / "a.txt").write_text("words", encoding="utf-8")
    done = CliRunner().invoke(
        main, ["ingest", str(tmp_path), "-a", str(tmp_path / "a.duckdb"), "--ocr"]
    )
    assert done.exit_code == 2 and "docpager[ocr]" in done.stderr
    assert not (tmp_path / "a.duckdb").exists()


@pytest.mark.ocr
def test_english_and_chinese_are_recognised_without_a_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    data = scan(picture_of_page(BOOK, 10), picture_of_chinese(*CHINESE))
    first, second = parse_bytes("scan.pdf", data, PdfOptions(ocr=True)).document.pages
    for page in (first, second):
        assert (page.engine, page.flags) == ("rapidocr", ("recognised",))
    letters = "".join(filter(str.isalnum, first.text))
    assert "Shewouldnothaveherlikenesstakenandtheonethatexists" in letters
    assert second.text.split("\n") == [*CHINESE]


@pytest.mark.ocr
def test_a_document_that_lacks_the_text_of_a_page_is_read_again_once(tmp_path: Path) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Helvetica")
    pdf.multi_cell(0, text="The keeper wrote what he saw.")
    pdf.add_page()
    pdf.image(picture_of_page(BOOK, 10), x=0, y=0, w=pdf.w)
    (folder / "mixed.pdf").write_bytes(bytes(pdf.output()))
    (folder / "mail.eml").write_bytes(mail(attachments=[("mixed.pdf", bytes(pdf.output()))]))
    archive = str(tmp_path / "a.duckdb")

    def ingested(*options: str) -> dict[str, str]:
        command = ["ingest", str(folder), "-a", archive, "--json", *SLOW, *options]
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.stderr
        files = json.loads(done.stdout)["files"]
        return {one["path"].removeprefix("scans/"): one["status"] for one in files}

    names = ("mail.eml", "mail.eml/mixed.pdf", "mixed.pdf")
    assert ingested() == dict.fromkeys(names, "added")
    assert ingested("--ocr") == dict.fromkeys(names, "updated")
    for name in names[1:]:
        with wiring.open_store(load({"archive": archive})) as opened:
            assert opened.page(f"scans/{name}", 2).flags == ("recognised",)
            assert "rapidocr-onnxruntime" in opened.document(f"scans/{name}").reader
    for options in ((), ("--ocr",)):
        assert ingested(*options) == dict.fromkeys(names, "unchanged")


@pytest.mark.ocr
def test_a_scan_is_refused_then_recognised_and_quoted(tmp_path: Path) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    (folder / "scan.pdf").write_bytes(scan(picture_of_page(BOOK, 10)))
    archive = tmp_path / "a.duckdb"
    arguments = ["ingest", str(folder), "-a", str(archive), "--json", *SLOW]
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 3
    assert json.loads(refused.stdout)["files"][0]["reason"] == "no_text_layer"
    done = CliRunner().invoke(main, [*arguments, "--ocr"])
    assert done.exit_code == 0, done.stderr
    assert "recognised" in json.loads(done.stdout)["files"][0]["warnings"][0]
    with wiring.open_store(load({"archive": archive})) as opened:
        page = opened.page("scans/scan.pdf", 1)
        passages = opened.page_passages("scans/scan.pdf", 1)
        passage_id, quote = next(
            (passage.passage_id, line)
            for passage in passages
            for line in page.text.split("\n")
            if len(line) > 40 and line in passage.text
        )
        checker = CitationChecker(opened, {passage_id})
        (citation,) = checker.check([ProposedCitation(passage_id, quote)])
    assert citation.verified and citation.page == 1
    assert page.flags == ("recognised",)
