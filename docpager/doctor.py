"""Whether archive, embedder, vocabulary, endpoint and model are fit for a question.

Each check is ok, warn or fail, and says what was seen. What a failed check stands in the way of is
left out rather than guessed at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from docpager import wiring
from docpager.config import Config
from docpager.errors import DocpagerError, UserError
from docpager.types import EmbedderIdentity

State = Literal["ok", "warn", "fail"]
_SAMPLE = "The vocabulary is here: 1914, 数据."


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, and how it stands; `exit_code` is 0 unless it failed."""

    name: str
    state: State
    message: str
    exit_code: int = 0


def examine(config: Config) -> Iterator[Check]:
    """Every check, one at a time as it is done, the quick ones first."""
    archive = _attempt("archive", lambda: _archive(config))
    yield archive
    if archive.state != "fail":
        yield _attempt("embedder", lambda: _embedder(config))
    yield _attempt("vocabulary", lambda: _vocabulary(config))
    model = _attempt("model", lambda: _model(config))
    yield model
    if model.state != "fail":
        yield from _open_model(config)
    yield _attempt("network", lambda: _network(config))


def _attempt(name: str, look: Callable[[], tuple[State, str]]) -> Check:
    try:
        state, message = look()
    except DocpagerError as error:
        return Check(name, "fail", str(error), error.exit_code)
    return Check(name, state, message)


def _archive(config: Config) -> tuple[State, str]:
    if not config.archive.exists():
        return "warn", f"there is none at {config.archive} yet. Run `docpager ingest PATH`."
    with wiring.open_store(config) as archive:
        status = archive.status()
    counts = f"{status.ready} documents, {status.passages} passages"
    if status.passages == 0:
        return "warn", f"{config.archive.name} is empty. Run `docpager ingest PATH`."
    if status.failed:
        return "warn", f"{counts}; {len(status.failed)} files failed, see `docpager status`"
    return "ok", counts


def _embedder(config: Config) -> tuple[State, str]:
    """The archive's own embedder still makes the vectors that it made."""
    kept = _kept_identity(config)
    embedder = wiring.matching_embedder(config, kept)
    identity = wiring.probed_identity(embedder)
    if kept is not None:
        wiring.check_same_model(kept, identity)
    compared = ", as in the archive" if kept else ""
    return "ok", f"{identity.name}, {identity.dimension} dimensions{compared}"


def _kept_identity(config: Config) -> EmbedderIdentity | None:
    """Which embedder made the archive; None where there is none."""
    if not config.archive.exists():
        return None
    with wiring.open_store(config) as archive:
        return archive.embedder_identity()


def _vocabulary(config: Config) -> tuple[State, str]:
    count = wiring.make_counter(config, "gpt-4o").count(_SAMPLE)
    return "ok", f"available offline ({count} tokens in a sample)"


def _model(config: Config) -> tuple[State, str]:
    name = wiring.model_name(config)
    if name != wiring.EMBEDDED:
        return "ok", name
    inventory = wiring.take_inventory(config, None, checked=False)
    if not inventory.runtime_installed:
        raise UserError(
            "the embedded model's runtime is not installed. "
            'Run `pip install "docpager[local]"`, or configure another model.'
        )
    if not inventory.present:
        raise UserError("the embedded model's weights are missing. See `docpager model`.")
    return "ok", f"{inventory.weights.name}, embedded"


def _open_model(config: Config) -> Iterator[Check]:
    """Endpoint, mode and window: three checks from one small call."""
    try:
        with wiring.open_model(config) as model:
            answers = _attempt("endpoint", lambda: ("ok", wiring.greet(model)))
            yield answers
            if answers.state == "fail":
                return
            mode = model.info.tool_mode
            how = "settled by trying" if config.tool_mode == "auto" else "as asked for"
            how = "the way for small models" if mode == "guided" else how
            yield Check("mode", "ok", f"{mode}, {how}")
            window = f"{model.info.context_window} tokens"
            if model.window_known:
                yield Check("window", "ok", window)
            else:
                yield Check("window", "warn", f"{window}, assumed. Say --context-window.")
    except DocpagerError as error:
        yield Check("endpoint", "fail", str(error), error.exit_code)


def _network(config: Config) -> tuple[State, str]:
    name = wiring.model_name(config)
    remote = [] if wiring.is_embedded(name) else [f"questions and passages shown go to {name}"]
    kept = _kept_identity(config)
    embedder = config.embedder or (kept.name if kept else "")
    if embedder.startswith("openai:"):
        remote.append(f"every passage and every query goes to {embedder}")
    if not remote:
        return "ok", "nothing leaves this machine"
    return "ok", f"{'; '.join(remote)}, at {wiring.make_endpoint(config).url}; nowhere else"
