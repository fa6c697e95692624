"""Files with what is attached to them: each family's steps end with the file itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from docpager.documents.attachments import attached_to
from docpager.documents.loaders import AttachedFile, ParsedFile
from docpager.errors import DocumentError
from docpager.ingest.plan import Retries, Step, row_of, suffix
from docpager.ingest.walk import FoundFile, path_of
from docpager.types import Document, FileStatus


class Families:
    """Gives what is attached to files its own steps, each family ending with the file itself.

    So a file is never stored before all that is attached to it is: after a kill it is parsed
    again, and finds what was stored already unchanged.
    """

    def __init__(
        self, known: Iterable[Document], found: Iterable[FoundFile], retries: Retries
    ) -> None:
        rows = {document.name: document for document in known}
        self._retries = retries
        self._found = {file.name: file for file in found}
        names = self._found.keys()
        holders = {
            name: holder
            for name, holder in attached_to(rows, names).items()
            # A name that is a file's now was that of an attachment once, and is no more.
            if name not in names
        }
        self.files = {name: row for name, row in rows.items() if name not in holders}
        """Rows of files by name."""
        self._held: dict[str, dict[str, Document]] = {}
        """Of each file, the rows of what is attached to it, by what follows its own name."""
        for name, holder in sorted(holders.items()):
            self._held.setdefault(holder, {})[name[len(holder) :]] = rows[name]
        self._failed: dict[str, dict[str, str]] = {}
        """Content hash -> suffix -> name of what could not be read under it in this ingest."""
        self._text: dict[str, str] = {}
        """Content hash -> name of the copy that was read though another had failed."""
        self.unsettled = frozenset(
            holder
            for holder, held in self._held.items()
            if any(
                retries.completes(row) or (row.state == "failed" and retries.wants(row))
                for row in held.values()
            )
        )
        """Files of which something attached is worth another try."""

    def members(
        self, step: Step, result: ParsedFile | DocumentError | None
    ) -> Iterator[tuple[Step, ParsedFile | DocumentError | None]]:
        """The steps of a file's attachments, then its own."""
        step, result = self._told_apart(step, result)
        if step.successor:
            yield from self._moved(step.file.name, self._row(step.successor))
        in_vain = step.again and isinstance(result, DocumentError)
        if in_vain or step.status == "unchanged" or (step.status == "failed" and step.recorded):
            yield from self._kept(step)
            yield step, result
            return
        before = self._held.pop(step.file.name, {})
        if step.status == "moved":
            yield from self._moved(step.other, row_of(step, "ready"))
            for end in self._held[step.file.name]:
                before.pop(end, None)
        now = result.attachments if isinstance(result, ParsedFile) else ()
        for attached in now:
            yield self._attached(step, attached, before.pop(f"/{attached.name}", None))
        yield replace(step, gone=tuple(step.file.name + end for end in before)), result

    def _told_apart(
        self, step: Step, result: ParsedFile | DocumentError | None
    ) -> tuple[Step, ParsedFile | DocumentError | None]:
        """A copy of what failed under a name of another suffix is what reading itself gave."""
        failed = self._failed.get(step.content_hash, {})
        if step.status == "duplicate":
            holder = self._text.get(step.content_hash, step.other)
            holder = failed.get(suffix(step.file.name), holder)
            if result is None or holder not in failed.values():
                return replace(step, parse=False, other=holder), None
            row = self.files.get(step.file.name)
            had_text = row is not None and row.state in ("ready", "duplicate")
            step = replace(step, status="updated" if had_text else "added", other="")
            if isinstance(result, ParsedFile):
                self._text[step.content_hash] = step.file.name
        if isinstance(result, DocumentError) and step.parse and not step.again:
            names = self._failed.setdefault(step.content_hash, {})
            names[suffix(step.file.name)] = step.file.name
        return step, result

    def _row(self, name: str) -> Document:
        """The row of a file, which it may come to have in this ingest only."""
        known = self.files.get(name)
        return known or row_of(Step(self._found[name], "duplicate"), "ready")

    def _kept(self, step: Step) -> Iterator[tuple[Step, None]]:
        for end, row in self._held.get(step.file.name, {}).items():
            file = _member_of(step.file, step.file.name + end, row.size)
            error = None
            if row.state == "failed":
                error = DocumentError(row.reason or "damaged", row.message or "")
            status: FileStatus = "failed" if error else "unchanged"
            yield Step(file, status, row.content_hash, error=error, recorded=True), None

    def _moved(self, old: str, holder: Document) -> Iterator[tuple[Step, None]]:
        rows = self._held.pop(old, {})
        self._held[holder.name] = rows
        for end, row in rows.items():
            place = FoundFile(path_of(holder), holder.name, holder.root, 0, holder.mtime_ns)
            file = _member_of(place, holder.name + end, row.size)
            if row.state == "ready":
                yield Step(file, "moved", row.content_hash, other=old + end), None
            else:
                error = DocumentError(row.reason or "damaged", row.message or "")
                yield Step(file, "failed", row.content_hash, error=error, gone=(old + end,)), None

    def _attached(
        self, step: Step, attached: AttachedFile, row: Document | None
    ) -> tuple[Step, ParsedFile | DocumentError | None]:
        name = f"{step.file.name}/{attached.name}"
        file = _member_of(step.file, name, attached.size)
        ready = row is not None and row.state == "ready"
        if row and ready and row.content_hash == attached.content_hash:
            if not self._retries.completes(row):
                return Step(file, "unchanged", row.content_hash, recorded=True), None
            return Step(file, "updated", row.content_hash, again=True), attached.outcome
        status: FileStatus = "updated" if ready else "added"
        return Step(file, status, attached.content_hash, parse=True), attached.outcome


def _member_of(holder: FoundFile, name: str, size: int) -> FoundFile:
    return FoundFile(holder.path, name, holder.root, size, holder.mtime_ns)
