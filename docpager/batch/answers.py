"""An answer as JSON, the same in `ask --json` and in a line of a batch's results.

Cheap to import, because every command that prints JSON takes `SCHEMA` from here.
"""

from __future__ import annotations

from docpager.types import Answer, Citation, JSONValue

SCHEMA = 1


def answer_record(answer: Answer) -> dict[str, JSONValue]:
    """An answer as `ask --json` prints it, keys in the contract's order."""
    return {
        "schema": SCHEMA,
        "run_id": answer.run_id,
        "question": answer.question,
        "status": answer.status,
        "answer": answer.answer,
        "citations": [citation_record(citation) for citation in answer.citations],
        "steps": answer.steps,
        "searches": answer.searches,
        "pages_read": answer.pages_read,
        "usage": {
            "prompt_tokens": answer.usage.prompt_tokens,
            "cached_tokens": answer.usage.cached_tokens,
            "completion_tokens": answer.usage.completion_tokens,
            "cost_usd": answer.usage.cost_usd,
        },
        "model": answer.model,
        "tool_mode": answer.tool_mode,
        "stopped_by": answer.stopped_by,
        "elapsed_s": round(answer.elapsed_s, 3),
        "error": answer.error,
    }


def citation_record(citation: Citation) -> dict[str, JSONValue]:
    """A citation; in files without pages `page` is null, and `section` and `line` say where."""
    return {
        "passage_id": citation.passage_id,
        "document": citation.document,
        "page": citation.page,
        "page_label": citation.page_label,
        "quote": citation.quote,
        "verified": citation.verified,
        "section": citation.section,
        "line": citation.line,
        "problem": citation.problem,
    }
