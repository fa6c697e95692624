"""The functions' schemas are the contract's, and arguments are checked against them."""

from __future__ import annotations

import pytest

from docpager.agent.executor import parse_arguments
from docpager.agent.functions import function_specs
from docpager.errors import FunctionError

CONTRACT = {
    "archival_memory_search": ["query", "page", "request_heartbeat"],
    "archival_memory_insert": ["content", "request_heartbeat"],
    "conversation_search": ["query", "start_date", "end_date", "page", "request_heartbeat"],
    "core_memory_append": ["section", "content", "request_heartbeat"],
    "core_memory_replace": ["section", "old_content", "new_content", "request_heartbeat"],
    "evict_messages": ["keep_last", "request_heartbeat"],
    "read_document": ["document", "page", "part", "request_heartbeat"],
    "send_message": ["message", "citations", "not_found"],
}


def test_names_and_parameters_are_those_of_the_contract() -> None:
    assert {spec.name: list(spec.parameters["properties"]) for spec in function_specs()} == CONTRACT


def test_every_function_is_described_in_one_line() -> None:
    for spec in function_specs():
        assert spec.description
        assert "\n" not in spec.description


def test_required_parameters_are_those_without_a_default() -> None:
    required = {spec.name: spec.parameters["required"] for spec in function_specs()}
    assert required["archival_memory_search"] == ["query"]
    assert required["read_document"] == ["document", "page"]
    assert required["send_message"] == ["message"]


@pytest.mark.parametrize("raw", ["{", "[1]", '"x"', "null", "{'a': 1}"])
def test_arguments_that_are_no_object_are_refused_with_advice(raw: str) -> None:
    with pytest.raises(FunctionError, match="Send one"):
        parse_arguments(raw)


def test_no_arguments_at_all_are_an_empty_object() -> None:
    assert parse_arguments("") == {}


def test_lone_surrogates_in_arguments_are_repaired_at_every_depth() -> None:
    parsed = parse_arguments('{"content": "a\\ud800", "citations": [{"quote": "\\udc00"}]}')
    assert parsed == {"content": "a\ufffd", "citations": [{"quote": "\ufffd"}]}
