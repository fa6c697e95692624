"""The model of the settings, and the mode that it is called in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from docpager.clocks import SystemClock
from docpager.config import Config
from docpager.errors import BudgetReached, DocpagerError, ModelError, UserError
from docpager.messages import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    ModelInfo,
    UserMessage,
)
from docpager.types import ToolMode, Usage
from docpager.wiring.endpoints import (
    EMBEDDED,
    is_embedded,
    make_counter,
    make_endpoint,
    require_endpoint,
)
from docpager.wiring.stores import side_folder

if TYPE_CHECKING:
    from docpager.models.cache import CallCache
    from docpager.models.chat import OpenAIChat
    from docpager.models.endpoint import Endpoint, OnWait, TimeLeft
    from docpager.models.throttle import Throttle
    from docpager.protocols import Chat, TokenCounter

UNKNOWN_WINDOW = 8192
"""Assumed of a model of which nothing is known; small enough for nearly all that is served."""
# Of hosted models alone: open weights are served with whatever window their server was given.
# The longest prefix that fits decides.
_WINDOWS = {
    "claude-": 200_000,
    "command-a": 256_000,
    "deepseek-chat": 64_000,
    "deepseek-reasoner": 64_000,
    "gemini-": 1_000_000,
    "gpt-3.5-turbo": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4.1": 1_000_000,
    "gpt-4o": 128_000,
    "gpt-5": 272_000,
    "mistral-large-": 128_000,
    "mistral-medium-": 128_000,
    "mistral-small-": 32_000,
    "o1": 128_000,
    "o3": 200_000,
    "o4-mini": 200_000,
}


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A model that can be called: the chat on the wire, and what is known of it."""

    wire: OpenAIChat | GivenChat
    info: ModelInfo
    counter: TokenCounter
    window_known: bool
    """False where the window is assumed."""


class GivenChat:
    """A chat model of the caller's own, in the place of one on the wire; its faults are errors."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    @property
    def tool_mode(self) -> ToolMode:
        """That of the chat."""
        return self._chat.tool_mode

    def prompt_tokens(self, request: ChatRequest) -> int:
        """Tokens as the chat counts them.

        Raises:
            ModelError: it fails, or gives no number.
        """
        with own_faults(self._chat, "prompt_tokens"):
            tokens = self._chat.prompt_tokens(request)
        if not isinstance(tokens, int) or tokens < 0:
            raise _unfit(self._chat, "prompt_tokens", "a whole number of at least 0", tokens)
        return tokens

    def complete(self, request: ChatRequest) -> ChatReply:
        """The reply of the chat.

        Raises:
            ModelError: it fails, or gives no reply.
        """
        with own_faults(self._chat, "complete"):
            reply = self._chat.complete(request)
        if not isinstance(reply, ChatReply) or not isinstance(reply.message, AssistantMessage):
            raise _unfit(self._chat, "complete", "a ChatReply of an AssistantMessage", reply)
        return reply

    def for_run(self, _on_wait: OnWait, _time_left: TimeLeft | None = None) -> GivenChat:
        """Itself: it keeps nothing of a run."""
        return self

    def learn(self, _request: ChatRequest, _usage: Usage) -> None:
        """Does nothing: the chat counts for itself."""


@contextmanager
def own_faults(model: object, method: str) -> Iterator[None]:
    """Within it, what a model of the caller's own raises is a ModelError.

    An AssertionError stays one: by it a test fails.
    """
    try:
        yield
    except (DocpagerError, AssertionError):
        raise
    except Exception as error:
        name = type(model).__name__
        raise ModelError(
            f"{name}.{method} raised {type(error).__name__}: {error}. Mend it."
        ) from error


def _unfit(model: object, method: str, wanted: str, given: object) -> ModelError:
    name = type(model).__name__
    return ModelError(f"{name}.{method} must return {wanted}, not {given!r:.60}. Mend it.")


def given_model(config: Config, chat: Chat) -> OpenModel:
    """A chat model of the caller's own; name, window and mode may be given in the settings."""
    name = given_name(config, chat)
    mode = chat.tool_mode if config.tool_mode == "auto" else config.tool_mode
    info = ModelInfo(name, "python", mode, config.context_window or UNKNOWN_WINDOW)
    counter = make_counter(config, name)
    return OpenModel(GivenChat(chat), info, counter, window_known=config.context_window is not None)


def given_name(config: Config, chat: Chat) -> str:
    """What the settings call the caller's own chat model, else its class."""
    return config.model or type(chat).__name__


def known_window(model: str) -> int | None:
    """Tokens of a hosted model's window; None where it depends on who serves it."""
    name = model.rpartition("/")[2]
    found = [prefix for prefix in _WINDOWS if name.startswith(prefix)]
    return _WINDOWS[max(found, key=len)] if found else None


def model_name(config: Config) -> str:
    """The model that was asked for, else `local` where its runtime is installed.

    Raises:
        UserError: there is neither; the message names the ways.
    """
    from docpager.models.embedded.inventory import runtime_installed

    if config.model is not None:
        return config.model
    if config.base_url is not None:
        raise UserError(
            f"No model is named for the endpoint {make_endpoint(config).url}. "
            "Name one with --model or DOCPAGER_MODEL."
        )
    if runtime_installed():
        return EMBEDDED
    raise UserError(
        "No model is configured. Name one with --model and give OPENAI_API_KEY or --base-url, or "
        'install the embedded one with `pip install "docpager[local]"`.'
    )


@contextmanager
def open_model(
    config: Config, cache: CallCache | None = None, throttle: Throttle | None = None
) -> Iterator[OpenModel]:
    """The model of the settings, its tool mode settled; an embedded one runs until the end.

    To replay, neither weights nor a key are needed: nothing is called.

    Raises:
        UserError: none is configured, or its weights or runtime are missing.
        ModelError: the embedded one cannot be loaded.
    """
    name = model_name(config)
    if is_embedded(name) and config.replay:
        from docpager.models.embedded.weights import name_of

        yield _embedded(config, name_of(name), make_endpoint(config))
    elif is_embedded(name):
        with _embedded_model(config, name) as model:
            yield model
    else:
        if not config.replay:
            require_endpoint(config, f"The model {name}")
        yield _remote_model(config, name, cache, throttle)


@contextmanager
def _embedded_model(config: Config, name: str) -> Iterator[OpenModel]:
    from docpager.models.embedded.server import EmbeddedServer
    from docpager.models.embedded.weights import choose
    from docpager.models.endpoint import Endpoint

    clock = SystemClock()
    chosen = choose(name, config.cache_dir)
    window = config.context_window or UNKNOWN_WINDOW
    with EmbeddedServer(chosen.path, clock, window) as server:
        server.wait_until_ready()
        # It reads a whole window at some forty tokens a second before its first byte.
        endpoint = Endpoint(
            server.base_url, server.api_key, clock=clock, timeout_s=max(config.timeout, 600.0)
        )
        yield _embedded(config, chosen.name, endpoint)


def _embedded(config: Config, name: str, endpoint: Endpoint) -> OpenModel:
    from docpager.models.chat import OpenAIChat

    counter = make_counter(config, name)
    wire = OpenAIChat(name, endpoint, counter, seed=config.seed, extra_body={"cache_prompt": True})
    mode: ToolMode = "guided" if config.tool_mode == "auto" else config.tool_mode
    window = config.context_window or UNKNOWN_WINDOW
    return OpenModel(wire, ModelInfo(name, "embedded", mode, window), counter, window_known=True)


def _remote_model(
    config: Config, name: str, cache: CallCache | None, throttle: Throttle | None
) -> OpenModel:
    from docpager.models.chat import OpenAIChat

    endpoint = make_endpoint(config, throttle)
    counter = make_counter(config, name)
    wire = OpenAIChat(name, endpoint, counter, seed=config.seed)
    window = config.context_window or known_window(name)
    mode = _settled_mode(config, wire, endpoint.url, name, cache)
    info = ModelInfo(name, endpoint.url, mode, window or UNKNOWN_WINDOW)
    return OpenModel(wire, info, counter, window_known=window is not None)


MODES_FILE = "tool_modes.json"


def _settled_mode(
    config: Config, wire: OpenAIChat, endpoint: str, name: str, cache: CallCache | None
) -> ToolMode:
    from docpager.models.cache import cached_mode
    from docpager.models.probe import SettledMode, settle_tool_mode

    def settle() -> SettledMode:
        return settle_tool_mode(
            wire, endpoint=endpoint, model=name, remembered=side_folder(config) / MODES_FILE
        ).tool_mode

    if config.tool_mode != "auto":
        return config.tool_mode
    try:
        return settle() if cache is None else cached_mode(cache, name, settle)
    except (BudgetReached, ModelError):
        # The question's own first call will fail likewise, where it is traced and answered for.
        return "tools"


def greet(model: OpenModel) -> str:
    """One small call; says how it went.

    Raises:
        ModelError: the endpoint cannot be reached, refuses, or answers nonsense.
    """
    clock = SystemClock()
    began = clock.monotonic()
    model.wire.complete(ChatRequest((UserMessage("Say: ready"),), max_tokens=16))
    return f"{model.info.endpoint} answers, in {clock.monotonic() - began:.1f} s"


def in_mode(chat: Chat, mode: ToolMode, window: int) -> Chat:
    """`chat` wrapped so that functions are offered the way `mode` says."""
    match mode:
        case "tools":
            return chat
        case "json":
            from docpager.models.tool_modes import JsonChat

            return JsonChat(chat)
        case "text":
            from docpager.models.tool_modes import TextChat

            return TextChat(chat)
        case "guided":
            from docpager.models.guided.chat import GuidedChat

            return GuidedChat(chat, window)
        case _:
            assert_never(mode)
