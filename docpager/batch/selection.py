"""Which questions of a batch are asked: those without a valid result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from docpager.batch.answerer import Answerer
from docpager.batch.fingerprint import changed_parts, fingerprint
from docpager.batch.questions import Question
from docpager.batch.results import Entry, ResultsFile
from docpager.errors import UserError

_LONG_QUESTION = 1000
"""Characters; shorter questions fit into every window and are not checked."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which questions are asked: those without a result, and those selected here."""

    tags: tuple[str, ...] = ()
    """Only questions that have one of these."""
    retry_errors: bool = False
    """Also questions whose result is a model error."""
    redo: bool = False
    """Also questions that have an answer."""

    def __post_init__(self) -> None:
        """Refuse one text in the place of several: it would be taken for its letters.

        Raises:
            UserError: `tags` are not several texts.
        """
        if isinstance(self.tags, str) or not all(isinstance(tag, str) for tag in self.tags):
            raise UserError(f"tags must be several texts, not {self.tags!r}. Correct it.")

    def has(self, question: Question) -> bool:
        """Whether the question has one of `tags`; True if there are none."""
        return not self.tags or not frozenset(self.tags).isdisjoint(question.tags)

    def opens(self, entry: Entry | None, settings: Mapping[str, object]) -> bool:
        """Whether a selected question with this result is asked; `settings` hold its limits."""
        if self.redo or entry is None or entry.skipped is not None:
            return True
        if entry.has_larger_limit(settings):
            return True
        return entry.status == "model_error" and self.retry_errors


def select(
    questions: Sequence[Question], results: ResultsFile, selection: Selection, answerer: Answerer
) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
    """The questions selected, and those of them to ask; no result is changed.

    Raises:
        UserError: the results belong to other questions, or depend on what has changed since, or
            a question is too long for the model.
    """
    chosen = [question for question in questions if selection.has(question)]
    _check_same_questions(questions, results)
    outdated = _outdated(chosen, results, answerer)
    if outdated and not selection.redo:
        raise _outdated_error(outdated, results)
    if outdated:
        # A redo that ended early resumes: what it has redone is not paid for again.
        selection = replace(selection, redo=False, retry_errors=True)
    asked = tuple(
        question
        for question in chosen
        if question.id in outdated
        or selection.opens(results.entries.get(question.id), answerer.settings)
    )
    _check_lengths(asked, answerer)
    return tuple(chosen), asked


def open_questions(
    questions: Iterable[Question],
    results: ResultsFile,
    selection: Selection,
    settings: Mapping[str, object],
) -> tuple[Question, ...]:
    """The selected questions without a valid result; `settings` hold a question's limits."""
    return tuple(
        question
        for question in questions
        if selection.has(question) and selection.opens(results.entries.get(question.id), settings)
    )


def unasked_notice(questions: Sequence[Question], results: ResultsFile) -> str | None:
    """A message about results whose questions were removed from the file; None without any."""
    others = results.ids_except(question.id for question in questions)
    if not others:
        return None
    return (
        f"{results.path} holds {len(others)} results of questions that {questions[0].file} does "
        f"not hold any more ({some_ids(others)}). They stay at its end and do not count."
    )


def some_ids(ids: Sequence[str]) -> str:
    """The first three ids, for a message."""
    return ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")


def _check_same_questions(questions: Sequence[Question], results: ResultsFile) -> None:
    others = results.ids_except(question.id for question in questions)
    if others and len(others) == len(results.entries):
        raise UserError(
            f"{results.path} holds results of other questions ({some_ids(others)}), and of none "
            "that is asked. Name another file with -o, or delete it."
        )


def _check_lengths(questions: Sequence[Question], answerer: Answerer) -> None:
    for question in questions:
        if len(question.text) > _LONG_QUESTION:
            try:
                answerer.check(question.text)
            except UserError as error:
                raise UserError(f"{question.location}: {error}") from error


def _outdated(
    questions: Sequence[Question], results: ResultsFile, answerer: Answerer
) -> dict[str, tuple[str, ...]]:
    """By id, what changed since an answer was made: question, settings, model or archive."""
    settings = answerer.settings
    found: dict[str, tuple[str, ...]] = {}
    for question in questions:
        entry = results.entries.get(question.id)
        if entry is None or entry.rank < 2:
            continue
        now = fingerprint(question.text, settings, answerer.content_hash)
        if entry.fingerprint != now:
            found[question.id] = changed_parts(entry.fingerprint, now)
    return found


def _outdated_error(outdated: Mapping[str, tuple[str, ...]], results: ResultsFile) -> UserError:
    parts = sorted({part for changed in outdated.values() for part in changed})
    return UserError(
        f"{results.path} holds {len(outdated)} results made with another "
        f"{' and another '.join(parts)} ({some_ids([*outdated])}). Ask these again with --redo, "
        "or name another file with -o."
    )
