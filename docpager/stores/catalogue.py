"""Documents as every store takes them in, and finds them: by name, unique end of it, or glob."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256

from docpager.errors import ArchiveError, UserError
from docpager.types import PAGE_SEPARATOR, Chunk, Document, EmbedderIdentity, ParsedDocument
from docpager.unicode import has_lone_surrogate, repaired

_SHOWN = 5
_UNREAD = "it was found and not read yet. Run `docpager ingest` again."


def check_chunks(document: Document, parsed: ParsedDocument, chunks: Sequence[Chunk]) -> None:
    """Refuse chunks that are not what stands in the document, so that offsets can be relied on.

    Raises:
        ArchiveError: a chunk's text or pages do not fit; nothing of the document may be stored.
    """
    text = PAGE_SEPARATOR.join(page.text for page in parsed.pages)
    if has_lone_surrogate(text):
        raise ArchiveError(f"The text of {document.name} holds lone surrogates. Repair it first.")
    last = max((page.page_number for page in parsed.pages), default=0)
    for at, chunk in enumerate(chunks):
        fits = chunk.text == text[chunk.start : chunk.end] and chunk.end > chunk.start >= 0
        if not fits or not 1 <= chunk.first_page <= chunk.last_page <= last:
            raise ArchiveError(
                f"Chunk {at} of {document.name} is not what stands at {chunk.start}-{chunk.end}, "
                f"pages {chunk.first_page}-{chunk.last_page} of {last}. Cut the document again."
            )


def storable(document: Document) -> Document:
    """A document of which every string can be stored."""
    return replace(
        document,
        name=repaired(document.name),
        root=repaired(document.root),
        title=document.title and repaired(document.title),
        author=document.author and repaired(document.author),
        message=document.message and repaired(document.message),
        duplicate_of=document.duplicate_of and repaired(document.duplicate_of),
    )


def inherited(documents: Sequence[Document], going: Collection[str]) -> dict[str, Document]:
    """What is attached to documents that go while a copy stays, as it is below the copy.

    Args:
        documents: All rows.
        going: Names of what is removed.

    Returns:
        The row that each takes on, by the name that it has now.
    """
    heirs: dict[str, Document] = {}
    for one in sorted(documents, key=lambda document: document.name):
        holder = one.duplicate_of
        if holder and holder in going and one.name not in going:
            heirs.setdefault(holder, one)
    if not heirs:
        return {}
    rows: dict[str, Document] = {}
    for one in documents:
        for slash in re.finditer("/", one.name):
            successor = heirs.get(one.name[: slash.start()])
            if successor is not None:
                name = successor.name + one.name[slash.start() :]
                rows[one.name] = replace(
                    one, name=name, root=successor.root, mtime_ns=successor.mtime_ns
                )
                break
    return rows


def content_hash(documents: Sequence[Document], embedder: EmbedderIdentity | None) -> str:
    """A hash of what can be found: the ready documents' names and bytes, and the embedder."""
    lines = sorted(
        f"{document.name}\0{document.content_hash}\n"
        for document in documents
        if document.state == "ready"
    )
    made_by = f"{embedder.name}\0{embedder.dimension}\n" if embedder else "\n"
    return sha256("".join([made_by, *lines]).encode()).hexdigest()


def no_such_page(document: Document, page_number: int) -> UserError:
    """The error for a page that a document does not have; it names the last one."""
    unit = "page" if document.paged else "section"
    return UserError(
        f"{document.name} has no {unit} {page_number}. Its last {unit} is {document.pages}."
    )


def find_document(documents: Sequence[Document], name: str) -> Document:
    """The ready document of that name, or of which it is a unique end after a `/`.

    A duplicate stands for the document it repeats. Case counts only where it decides.

    Raises:
        UserError: there is none, or there are several; the message lists the nearest names.
    """
    by_name = {document.name: document for document in documents}
    found = _matching(by_name, name)
    if len(found) > 1:
        raise UserError(
            f"{name!r} fits several documents: {_listed(found)}. Give more of the name."
        )
    if not found:
        raise UserError(f"There is no document {name!r}. {_nearest(by_name, name)}")
    document = by_name[found[0]]
    if document.state == "duplicate" and document.duplicate_of in by_name:
        document = by_name[document.duplicate_of]
    if document.state != "ready":
        reason = document.message or document.reason or _UNREAD
        raise UserError(f"{document.name!r} has no text in the archive: {reason}")
    return document


@lru_cache(maxsize=64)
def glob_pattern(glob: str) -> re.Pattern[str]:
    """A glob over whole document names: `*` and `?` fit a `/` too, `[…]` is a choice."""
    # `fnmatch` would fold backslashes and case by the system; names are the same on all of them.
    return re.compile(fnmatch.translate(glob))


def _matching(by_name: dict[str, Document], name: str) -> list[str]:
    if name in by_name:
        return [name]
    wanted = name.strip().removeprefix("./").lstrip("/")
    if not wanted:
        return []
    folds: tuple[Callable[[str], str], ...] = (str, str.casefold)
    for fold in folds:
        tail = fold(f"/{wanted}")
        found = [known for known in by_name if fold(f"/{known}").endswith(tail)]
        if found:
            return found
    return []


def _nearest(by_name: dict[str, Document], name: str) -> str:
    names = [known for known, document in by_name.items() if document.state == "ready"]
    if not names:
        return "The archive has no documents."
    # The last part weighs as much as the whole: what is mistyped is mostly the file's name.
    last = name.rsplit("/", 1)[-1].casefold()
    ends: dict[str, list[str]] = {}
    for known in names:
        ends.setdefault(known.rsplit("/", 1)[-1].casefold(), []).append(known)
    near = [
        known for end in difflib.get_close_matches(last, ends, _SHOWN, 0.5) for known in ends[end]
    ]
    near += difflib.get_close_matches(name, names, _SHOWN, 0.5)
    near = list(dict.fromkeys(near))[:_SHOWN]
    if near:
        return f"The nearest names are: {_listed(near)}."
    return f"There are {len(names)} documents, among them: {_listed(sorted(names))}."


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
