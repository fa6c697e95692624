"""Working context: the small notes that the model edits and always sees (paper, section 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from docpager.errors import FunctionError

Section = Literal["persona", "user", "notes"]
SECTIONS: tuple[Section, ...] = get_args(Section)


@dataclass(frozen=True, slots=True)
class WorkingContextVersion:
    """One state of the notes; states are never changed, only followed by others."""

    persona: str = ""
    user: str = ""
    notes: str = ""

    def with_section(self, section: Section, text: str) -> WorkingContextVersion:
        """The state that differs in one section."""
        sections: dict[Section, str] = {name: self.section(name) for name in SECTIONS}
        sections[section] = text
        return WorkingContextVersion(**sections)

    def section(self, name: Section) -> str:
        """The text of one section."""
        text: str = getattr(self, name)
        return text

    @property
    def text(self) -> str:
        """All sections, which is what counts against the limit."""
        return "\n".join(self.section(name) for name in SECTIONS)


class WorkingContext:
    """Sections of notes within `limit` tokens; every edit keeps the version before it.

    `count` gives the tokens of a text. `on_edit` is called with each new version, so that a
    session can keep it.
    """

    def __init__(
        self,
        *,
        limit: int,
        count: Callable[[str], int],
        versions: tuple[WorkingContextVersion, ...] = (),
        on_edit: Callable[[WorkingContextVersion], None] | None = None,
    ) -> None:
        self.limit = limit
        self._count = count
        self._versions = list(versions) or [WorkingContextVersion()]
        self._on_edit = on_edit

    @property
    def current(self) -> WorkingContextVersion:
        """The notes as they are."""
        return self._versions[-1]

    @property
    def versions(self) -> tuple[WorkingContextVersion, ...]:
        """Every state there was, oldest first."""
        return tuple(self._versions)

    @property
    def used(self) -> int:
        """Tokens of all sections."""
        return self._count(self.current.text)

    def append(self, section: str, content: str) -> None:
        """Add a line to a section.

        Raises:
            FunctionError: the section does not exist, the content is empty or there already, or
                the limit would be passed.
        """
        name = _section_name(section)
        line = content.strip()
        if not line:
            raise FunctionError("content is empty. Give the text to add.")
        before = self.current.section(name)
        if line in before.splitlines():
            raise FunctionError(f"{name} already holds this line. Nothing to do.")
        self._edit(name, f"{before}\n{line}" if before else line)

    def replace(self, section: str, old_content: str, new_content: str) -> None:
        """Put `new_content` in the place of the one occurrence of `old_content`; empty deletes.

        Raises:
            FunctionError: the section does not exist, `old_content` does not stand there exactly
                once, or the limit would be passed.
        """
        name = _section_name(section)
        before = self.current.section(name)
        occurrences = before.count(old_content) if old_content else 0
        if occurrences != 1:
            raise FunctionError(
                f"old_content stands {occurrences} times in {name}. "
                "Copy a text that stands there exactly once."
            )
        lines = before.replace(old_content, new_content.strip()).splitlines()
        self._edit(name, "\n".join(line for line in lines if line.strip()))

    def undo(self) -> bool:
        """Go back by one edit; False if there is none. The undone state stays in `versions`."""
        earlier = [version for version in self._versions[:-1] if version != self.current]
        if not earlier:
            return False
        self._keep(earlier[-1])
        return True

    def fit(self) -> None:
        """Drop the oldest notes until the limit holds: for notes kept from a larger window."""
        while self.used > self.limit:
            lines = self.current.notes.splitlines()
            if not lines:
                self._keep(WorkingContextVersion())
                return
            self._keep(self.current.with_section("notes", "\n".join(lines[1:])))

    def _edit(self, section: Section, text: str) -> None:
        version = self.current.with_section(section, text)
        size = self._count(version.text)
        if size > self.limit:
            raise FunctionError(
                f"working context holds {self.limit} tokens and would need {size}. "
                "Shorten it with core_memory_replace first."
            )
        self._keep(version)

    def _keep(self, version: WorkingContextVersion) -> None:
        self._versions.append(version)
        if self._on_edit is not None:
            self._on_edit(version)


def _section_name(section: str) -> Section:
    by_name: Mapping[str, Section] = {name: name for name in SECTIONS}
    if section not in by_name:
        raise FunctionError(f"there is no section {section!r}. Use one of: {', '.join(SECTIONS)}.")
    return by_name[section]
