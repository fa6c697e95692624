"""What the archive of a desk holds, and how the output of a command is read."""

from __future__ import annotations

import json
from typing import Any

from click.testing import Result

QUOTE = "The pump was made in Graz in 1987 by the firm Andritz."


def only_object(result: Result) -> dict[str, Any]:
    lines = result.stdout.splitlines()
    assert len(lines) == 1, result.output
    found = json.loads(lines[0])
    assert isinstance(found, dict)
    return found
