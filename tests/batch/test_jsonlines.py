"""JSON lines: every surrogate is repaired, also where most lines are spared the walk."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.batch.jsonlines import decoded_object
from docpager.unicode import repaired_json

TEXT = st.text(st.characters() | st.sampled_from("\ud800\udfff灯\\u[{"), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # A character outside the first plane is a pair of escapes, and no lone surrogate.
    | TEXT
    | st.just("\U0001f600"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_an_object_is_read_with_its_lone_surrogates_repaired(value: dict[str, Any]) -> None:
    line = json.dumps(value).encode("ascii")
    assert decoded_object(line) == repaired_json(json.loads(line))


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_what_is_read_can_be_written(value: dict[str, Any]) -> None:
    read = decoded_object(json.dumps(value).encode("ascii"))
    line = json.dumps(read, ensure_ascii=False).encode("utf-8")
    assert decoded_object(line) == read


@pytest.mark.parametrize("depth", [700, 5000])
@pytest.mark.parametrize(("begin", "end"), ["[]", ('{"a":', "}")])
def test_what_is_nested_too_deeply_to_be_written_is_refused(
    depth: int, begin: str, end: str
) -> None:
    line = f'{{"a": {begin * depth}{"1" * (begin != "[")}{end * depth}}}'.encode()
    with pytest.raises(ValueError, match="nested too deeply"):
        decoded_object(line)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"\xff", "not UTF-8"),
        (b"{", "no JSON"),
        (b"[]", "no JSON object"),
        (b'{"a": NaN}', "NaN is no JSON"),
        (b'{"a": 1e999}', "too large a number"),
    ],
)
def test_what_is_no_object_is_named(line: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decoded_object(line)
