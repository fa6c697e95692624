"""What `import docpager` offers, and what it costs."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import docpager
from docpager.testing import ScriptedChat, call
from docpager.types import JSONValue

HEAVY = (
    "duckdb",
    "numpy",
    "openai",
    "pikepdf",
    "pydantic",
    "pypdf",
    "pypdfium2",
    "rich",
    "safetensors",
    "tiktoken",
    "tokenizers",
    "xllamacpp",
)


ROOT = Path(docpager.__file__).parent
WITH_EXAMPLES = sorted(
    ".".join(("docpager", *path.relative_to(ROOT).with_suffix("").parts))
    for path in ROOT.rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("examples") / "corpus"
    made.mkdir()
    (made / "mill.txt").write_text("The mill at Teme was built in 1887.", encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def archive(folder: Path) -> Iterator[docpager.Archive]:
    quote: JSONValue = {"passage_id": "P1", "quote": "The mill at Teme was built in 1887."}
    chat = ScriptedChat(lambda _: call("send_message", message="1887", citations=[quote]))
    with docpager.Archive(folder.with_name("mill.duckdb"), chat=chat) as opened:
        opened.ingest([folder])
        yield opened


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_in_docstrings_hold(
    name: str, archive: docpager.Archive, folder: Path
) -> None:
    given = {"archive": archive, "folder": folder}
    tried = doctest.testmod(importlib.import_module(name), extraglobs=given)
    assert tried.attempted and not tried.failed


CALLS = {name for name in vars(docpager.Archive) if not name.startswith("_")} - {"close"}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_every_call_on_an_archive_has_an_example(name: str) -> None:
    assert ">>> " in getattr(docpager.Archive, name).__doc__


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sorted(m.partition('.')[0] for m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_the_public_names_are_these() -> None:
    assert docpager.__all__ == [
        "Answer",
        "Archive",
        "ArchiveError",
        "ArchiveLocked",
        "ArchiveStatus",
        "BatchLimits",
        "BatchSummary",
        "BudgetReached",
        "Citation",
        "Comparison",
        "Config",
        "DocpagerError",
        "Document",
        "DocumentError",
        "DocumentText",
        "Estimate",
        "FileOutcome",
        "Grading",
        "Hit",
        "IngestReport",
        "Interrupt",
        "ModelAuthError",
        "ModelError",
        "NothingToDo",
        "PageRef",
        "Passage",
        "Price",
        "Removal",
        "Result",
        "ResultPage",
        "Scores",
        "Selection",
        "Settings",
        "Usage",
        "UserError",
        "answer_question",
        "compare_results",
        "estimate_batch",
        "ingest_paths",
        "load",
        "run_batch",
        "search",
    ]


@pytest.mark.parametrize("name", docpager.__all__)
def test_every_public_name_is_there_and_told_about(name: str) -> None:
    value = getattr(docpager, name)
    assert value.__doc__
    assert name in dir(docpager)
    assert value.__module__.startswith("docpager.")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        docpager.no_such_name  # noqa: B018


def test_the_package_is_typed() -> None:
    assert (Path(docpager.__file__).parent / "py.typed").is_file()


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not loaded_by("import docpager").intersection(HEAVY, {"click"})


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "--help"], ["--version"], ["asq"]])
def test_help_and_mistakes_load_nothing_heavy(arguments: list[str]) -> None:
    code = f"from docpager.cli import main\ntry:\n    main({arguments!r})\nexcept SystemExit: pass"
    assert not loaded_by(code).intersection(HEAVY)


def test_every_module_can_be_imported_alone() -> None:
    package = Path(docpager.__file__).parent
    for path in sorted(package.rglob("*.py")):
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        module = importlib.import_module(name.removesuffix(".__init__"))
        assert module.__doc__, f"{name} does not say what it is for"
