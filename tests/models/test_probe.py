from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from docpager.errors import ModelAuthError, ModelError
from docpager.models.chat import OpenAIChat
from docpager.models.endpoint import Endpoint
from docpager.models.probe import Probe, probe, settle_tool_mode
from docpager.testing import (
    CharacterCounter,
    FrozenClock,
    LoopbackReply,
    LoopbackRequest,
    LoopbackServer,
    call,
    say,
    wire_reply,
)
from docpager.types import Usage

Model = Callable[[LoopbackRequest], LoopbackReply]
LOOK = call("look_up", query="archive", page=0)
USAGE = Usage(50, 0, 5)


def refused(message: str = "no tools") -> LoopbackReply:
    return LoopbackReply({"error": {"message": message}}, 400)


def fluent(request: LoopbackRequest) -> LoopbackReply:
    """A model that calls functions natively."""
    return wire_reply(LOOK, usage=USAGE)


def by_schema(request: LoopbackRequest) -> LoopbackReply:
    """A server without tools that constrains replies."""
    if "tools" in request.body:
        return refused()
    return wire_reply(LOOK, "json", usage=USAGE)


def echoing(request: LoopbackRequest) -> LoopbackReply:
    """A model that answers tools in prose, and can do JSON."""
    if "tools" in request.body:
        return wire_reply(say('{"type": "function"}'), usage=USAGE)
    return wire_reply(LOOK, "json", usage=USAGE)


def crashing(request: LoopbackRequest) -> LoopbackReply:
    """A server that answers 500 to tools."""
    if "tools" in request.body:
        return LoopbackReply({"error": {"message": "tools need a template"}}, 500)
    return wire_reply(LOOK, "json", usage=USAGE)


def talking(request: LoopbackRequest) -> LoopbackReply:
    """A model that knows neither."""
    if "response_format" in request.body:
        return refused("no schemas")
    return wire_reply(say("Sure, I would look it up."), usage=USAGE)


def wrong_function(request: LoopbackRequest) -> LoopbackReply:
    return wire_reply(call("finish", message="no"), usage=USAGE)


def broken_arguments(request: LoopbackRequest) -> LoopbackReply:
    return wire_reply(call("look_up", query=["archive"]), usage=USAGE)


def probed(server: LoopbackServer) -> Probe:
    return probe(chat_at(server))


def chat_at(server: LoopbackServer) -> OpenAIChat:
    endpoint = Endpoint(server.base_url, None, clock=FrozenClock(), random=lambda: 0.0)
    return OpenAIChat("tiny", endpoint, CharacterCounter())


@pytest.mark.parametrize(
    ("model", "mode", "calls"),
    [
        (fluent, "tools", 1),
        (by_schema, "json", 2),
        (echoing, "json", 2),
        (talking, "text", 3),
        (wrong_function, "text", 2),
        (broken_arguments, "text", 2),
    ],
)
def test_the_best_mode_that_works_is_found(model: Model, mode: str, calls: int) -> None:
    with LoopbackServer(model) as server:
        found = probed(server)
        assert found.tool_mode == mode
        assert len(server.requests) == calls
        assert [line.split(":")[0] for line in found.seen] == ["tools", "json"][: len(found.seen)]


def test_a_server_that_fails_on_tools_only_can_still_do_json() -> None:
    with LoopbackServer(crashing) as server:
        found = probed(server)
        assert found.tool_mode == "json"
        assert "tools need a template" in found.seen[0]


def test_the_cost_of_all_tries_is_told() -> None:
    with LoopbackServer(echoing) as server:
        assert probed(server).usage == USAGE + USAGE


def test_the_model_chooses_freely_in_the_probe() -> None:
    with LoopbackServer(fluent) as server:
        probed(server)
        (body,) = server.bodies()
        assert "tool_choice" not in body
        assert body["max_tokens"] <= 200


@pytest.mark.parametrize(
    ("status", "error"), [(401, ModelAuthError), (500, ModelError), (404, ModelError)]
)
def test_an_endpoint_that_does_not_answer_settles_nothing(
    status: int, error: type[ModelError], tmp_path: Path
) -> None:
    file = tmp_path / "modes.json"
    with LoopbackServer(lambda request: LoopbackReply({}, status)) as server, pytest.raises(error):
        settle(server, file)
    assert not file.exists()


# ---- remembering -----------------------------------------------------------------------------


def settle(server: LoopbackServer, file: Path, model: str = "tiny") -> Probe:
    return settle_tool_mode(
        chat_at(server), endpoint="http://host/v1", model=model, remembered=file
    )


def test_a_mode_is_settled_once_for_each_endpoint_and_model(tmp_path: Path) -> None:
    file = tmp_path / "new" / "modes.json"
    with LoopbackServer(fluent) as server:
        first, second = settle(server, file), settle(server, file)
        assert (first.remembered, second.remembered) == (False, True)
        assert first.tool_mode == second.tool_mode == "tools"
        assert second.usage == Usage()
        assert len(server.requests) == 1
        assert not settle(server, file, model="other").remembered
    assert settled(file) == {"http://host/v1 tiny": "tools", "http://host/v1 other": "tools"}


def settled(file: Path) -> dict[str, str]:
    return json.loads(file.read_text(encoding="utf-8"))["tool_modes"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe\x00",
        b'{"tool_modes": 7}',
        b'{"tool_modes": {"http://host/v1 tiny": "guided"}}',
        b'{"tool_modes": {"http://host/v1 tiny": ["tools"]}}',
    ],
)
def test_a_damaged_file_is_probed_again_and_mended(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "modes.json"
    file.write_bytes(content)
    with LoopbackServer(fluent) as server:
        assert not settle(server, file).remembered
        assert settle(server, file).remembered


def test_a_place_that_cannot_be_written_to_costs_only_the_next_probe(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with LoopbackServer(fluent) as server:
        assert settle(server, tmp_path / "file" / "modes.json").tool_mode == "tools"


def test_several_may_settle_at_once(tmp_path: Path) -> None:
    file = tmp_path / "modes.json"
    with LoopbackServer(fluent) as server, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: settle(server, file, f"m{number}"), range(8)))
    assert {item.tool_mode for item in found} == {"tools"}
    assert set(settled(file).values()) == {"tools"}
    assert [path.name for path in tmp_path.iterdir()] == ["modes.json"]


def test_a_folder_in_the_place_of_the_file_costs_only_the_next_probe(tmp_path: Path) -> None:
    (tmp_path / "modes.json").mkdir()
    with LoopbackServer(fluent) as server:
        assert settle(server, tmp_path / "modes.json").tool_mode == "tools"
    assert [path.name for path in tmp_path.iterdir()] == ["modes.json"]
