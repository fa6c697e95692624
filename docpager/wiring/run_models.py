"""The model side of one run: what is called, counted, bounded and traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docpager.clocks import WorkClock
from docpager.config import Config
from docpager.errors import Limit
from docpager.messages import ChatReply, ChatRequest
from docpager.wiring.chats import OpenModel, in_mode
from docpager.wiring.endpoints import EMBEDDED, price_of

if TYPE_CHECKING:
    from docpager.agent.trace import Trace
    from docpager.models.budget import BudgetedChat, SharedBudget
    from docpager.models.cache import CallCache
    from docpager.models.endpoint import TimeLeft
    from docpager.protocols import Chat, Clock, Embedder, Models

FORCED_ANSWER_SHARE = 0.1
"""Of the time allowed: kept back for the last, forced answer."""


class RunModels:
    """Makes the model side of one run."""

    def __init__(
        self,
        config: Config,
        model: OpenModel,
        embedder: Embedder,
        clock: Clock,
        cache: CallCache | None,
        budget: SharedBudget | None,
    ) -> None:
        self._config = config
        self._model = model
        self._embedder = embedder
        self._clock = clock
        self._cache = cache
        self._budget = budget
        self._budgeted: BudgetedChat | None = None

    @property
    def refused_by(self) -> Limit | None:
        """Which bound of the shared budget refused a call."""
        return self._budgeted.refused_by if self._budgeted else None

    def traced(self, trace: Trace) -> Models:
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
        embedder = self._embedder.for_run(work.exclude, time_left)
        if self._cache is None:
            return embedder
        from docpager.models.cache import CachedEmbedder

        return CachedEmbedder(embedder, self._cache)

    def _chat(self, work: WorkClock, time_left: TimeLeft) -> Chat:
        """What the meter calls: budget and cache around the wire, as far as there are any."""
        wire = self._model.wire.for_run(work.exclude, time_left)
        chat: Chat = wire
        if self._budget is not None:
            from docpager.models.budget import BudgetedChat

            chat = self._budgeted = BudgetedChat(wire, self._budget)
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


def _models(
    config: Config, model: OpenModel, chat: Chat, embedder: Embedder, clock: Clock, trace: Trace
) -> Models:
    from docpager.memory.summary import ExtractiveSummarizer, ModelSummarizer
    from docpager.models.meter import Meter, Reserve, RunLimits
    from docpager.protocols import Models

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
        limits=RunLimits(config.max_tokens, config.max_cost, config.timeout),
        reserve=Reserve(
            tokens=min((config.max_tokens or 0) // 4, info.context_window),
            cost=(config.max_cost or 0.0) / 4,
            seconds=config.timeout * FORCED_ANSWER_SHARE,
        ),
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
