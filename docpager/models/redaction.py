"""The secrets of an endpoint, its key and those in its URL, are neither printed nor stored."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from docpager.unicode import shortened

_SHORTEST_SECRET = 4


def printable_url(base_url: str) -> str:
    """A URL without user, password or query: safe to print and to store."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class Redaction:
    """Knows the secrets of one endpoint: its key, its URL's password and query."""

    def __init__(self, base_url: str, key: str | None) -> None:
        self._base_url = base_url
        self._key = key

    def line(self, text: str) -> str:
        """One short line without secrets, for a message."""
        line = " ".join(self.of(text).split())
        return shortened(line, 300).rstrip(".")

    def of(self, text: str) -> str:
        """`text` with `[key]` for each secret."""
        if self._key is not None and len(self._key) >= _SHORTEST_SECRET:
            text = text.replace(self._key, "[key]")
        parts = urlsplit(self._base_url)
        for secret in (parts.password, parts.query):
            if secret:
                text = text.replace(secret, "[key]")
        # Endpoints like to repeat the key, or most of it, when they refuse it.
        return re.sub(r"\bsk-[\w*.-]+", "[key]", text)

    def in_place(self, error: BaseException) -> None:
        """Take the secrets out of an exception and its causes, which `--debug` and logs print."""
        at: BaseException | None = error
        while at is not None:
            at.args = tuple(self.of(item) if isinstance(item, str) else item for item in at.args)
            at = at.__cause__ or at.__context__
