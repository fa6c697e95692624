from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.documents.loaders import parse_bytes
from tests.documents.reading import whole

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abc é", max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("xyz", min_size=1), inner),
    max_leaves=20,
)


@given(JSON.filter(bool))
@settings(max_examples=60, deadline=None)
def test_every_value_of_json_is_found(value: object) -> None:
    def leaves(value: object) -> list[str]:
        if isinstance(value, dict):
            return [leaf for inner in value.values() for leaf in leaves(inner)]
        if isinstance(value, list):
            return [leaf for inner in value for leaf in leaves(inner)]
        return ["null" if value is None else str(value)]

    found = whole(parse_bytes("a.json", json.dumps({"top": value}).encode())).lower()
    assert all(leaf.strip().lower() in found for leaf in leaves(value))


def test_paths_lead_to_values_and_numbers_stay_as_they_are_written() -> None:
    text = '{"lamps": [{"year": 1887, "cost": 0.10, "names": ["Ann", "Cy"]}, {"year": 1888}]}'
    assert whole(parse_bytes("a.json", text.encode())).split("\n") == [
        "lamps[0].year: 1887",
        "lamps[0].cost: 0.10",
        "lamps[0].names: Ann, Cy",
        "",
        "lamps[1].year: 1888",
    ]


def test_what_is_no_json_is_read_and_told() -> None:
    outlined = parse_bytes("a.json", b"{not json")
    assert whole(outlined) == "{not json" and "not valid JSON" in outlined.document.warnings[0]
    lines = parse_bytes("a.json", b'{"a": 1}\n{"a": 2}\n')
    assert [page.first_line for page in lines.document.pages] == [1, 2]
    torn = parse_bytes("a.jsonl", b'{"a": 1}\n{"a": ')
    assert "1 lines" in torn.document.warnings[0] and '{"a":' in whole(torn)
