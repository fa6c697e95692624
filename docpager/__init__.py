"""Ask questions of document folders that no context window can hold.

    import docpager

    with docpager.Archive("reports.duckdb") as archive:
        archive.ingest(["./reports"])
        answer = archive.ask("Who signed it?")
    for citation in answer.citations:
        print(citation.document, citation.page, citation.quote, citation.verified)

Every name is loaded when it is first used, so that `import docpager` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docpager.archive import (
        Archive,
        answer_question,
        estimate_batch,
        ingest_paths,
        run_batch,
        search,
    )
    from docpager.batch import BatchLimits, Grading, Interrupt, Selection
    from docpager.batch.comparison import Comparison, compare_results
    from docpager.batch.estimate import Estimate
    from docpager.batch.result import Result, Scores
    from docpager.batch.summary import BatchSummary
    from docpager.config import Config, Settings, load
    from docpager.errors import (
        ArchiveError,
        ArchiveLocked,
        BudgetReached,
        DocpagerError,
        DocumentError,
        ModelAuthError,
        ModelError,
        NothingToDo,
        UserError,
    )
    from docpager.types import (
        Answer,
        ArchiveStatus,
        Citation,
        Document,
        DocumentText,
        FileOutcome,
        Hit,
        IngestReport,
        PageRef,
        Passage,
        Price,
        Removal,
        ResultPage,
        Usage,
    )

__all__ = [
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

_HOMES = {
    "docpager.archive": (
        "Archive",
        "answer_question",
        "estimate_batch",
        "ingest_paths",
        "run_batch",
        "search",
    ),
    "docpager.batch": ("BatchLimits", "Grading", "Interrupt", "Selection"),
    "docpager.batch.comparison": ("Comparison", "compare_results"),
    "docpager.config": ("Config", "Settings", "load"),
    "docpager.errors": (
        "ArchiveError",
        "ArchiveLocked",
        "BudgetReached",
        "DocpagerError",
        "DocumentError",
        "ModelAuthError",
        "ModelError",
        "NothingToDo",
        "UserError",
    ),
    "docpager.batch.estimate": ("Estimate",),
    "docpager.batch.result": ("Result", "Scores"),
    "docpager.batch.summary": ("BatchSummary",),
    "docpager.types": (
        "Answer",
        "ArchiveStatus",
        "Citation",
        "Document",
        "DocumentText",
        "FileOutcome",
        "Hit",
        "IngestReport",
        "PageRef",
        "Passage",
        "Price",
        "Removal",
        "ResultPage",
        "Usage",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'docpager' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
