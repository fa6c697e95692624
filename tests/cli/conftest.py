from __future__ import annotations

from pathlib import Path

import pytest
from fpdf import FPDF

from tests.cli.desks import QUOTE
from tests.desk import Desk


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
