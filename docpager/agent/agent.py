"""The agent: one loop that lets a model page evidence in until it answers or must.

    question -> first search (by the program) -> [ prompt -> model -> functions ]* -> answer

Source: MemGPT (arXiv 2310.08560), sections 2.2 to 2.4; what it leaves open (bounds, forced
answers, refused early endings) is decided here.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace

from docpager.agent.archival import ArchivalMemory
from docpager.agent.citations import CitationChecker
from docpager.agent.executor import Executor
from docpager.agent.functions import (
    CallerFunctionError,
    Function,
    MemoryFunctions,
    function_specs,
    functions_of,
)
from docpager.agent.trace import Trace
from docpager.errors import BudgetReached, FunctionError, Limit, ModelError, UserError
from docpager.function_results import (
    DocumentPage,
    FunctionResult,
    ProposedAnswer,
    SearchPage,
    passage_ids,
)
from docpager.memory.fifo import FifoQueue
from docpager.memory.queue_manager import RESULT_SHARE, Flush, Frame, QueueManager
from docpager.memory.session import Memory
from docpager.memory.summary import ExtractiveSummarizer
from docpager.memory.working_context import WorkingContext, WorkingContextVersion
from docpager.messages import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Message,
    ToolCall,
    ToolResult,
    Turn,
    UserMessage,
    without_reasoning,
)
from docpager.prompts import (
    DEFAULT_PERSONA,
    FORCED_ANSWER,
    NUDGE_CITATIONS,
    NUDGE_NOT_FOUND,
    NUDGE_YIELD,
    SYSTEM_INSTRUCTIONS,
    UPLOAD_FINISHED,
    WORKING_CONTEXT,
)
from docpager.protocols import Clock, Models
from docpager.types import Answer, AnswerStatus, Citation, PageRef

MOST_IDLE_REPLIES = 2
"""Replies in a row without a usable call before an answer is demanded."""
_FIRST_CALL = "c00000000"


@dataclass(slots=True)
class _Progress:
    """What a run has done so far."""

    steps: int = 0
    calls: int = 0
    idle: int = 0
    searches: int = 0
    result_pages: int = 0
    generation: int = 0
    refused_not_found: bool = False
    refused_citations: bool = False


class Agent:
    """Answers one question over an archive, within a session; made anew for each run.

    `own` are functions of the caller, offered after those of the memory.
    """

    def __init__(
        self,
        models: Models,
        memory: Memory,
        max_steps: int,
        clock: Clock,
        trace: Trace,
        run_id: str,
        own: Sequence[Function] = (),
    ) -> None:
        store, session, counter = memory.store, memory.session, models.counter
        self._chat = models.chat
        self._model = models.info
        self._store = store
        self._session = session
        self._counter = counter
        self._meter = models.meter
        self._max_steps = max_steps
        self._clock = clock
        self._trace = trace
        self._run_id = run_id
        self._own = {function.spec.name: function for function in own}
        self._specs = (*function_specs(), *(function.spec for function in own))
        self._progress = _Progress(generation=store.generation)
        self._pages: dict[PageRef, None] = {}
        self._manager = QueueManager(
            chat=models.chat,
            frame=Frame(
                SYSTEM_INSTRUCTIONS, self._specs, self._context, models.info.context_window
            ),
            queue=FifoQueue(session.summary),
            recall=session,
            summarizer=models.summarizer,
            counter=counter,
            on_flush=self._on_flush,
        )
        self._working_context = self._fitted_notes()
        self._executor = Executor(
            functions=functions_of(self._functions(models)) | self._own,
            queue_manager=self._manager,
            refusal_of=self._refusal_of,
            on_shown=self._on_shown,
            on_failed=self._on_failed,
        )
        self._citations = CitationChecker(store, session.shown)

    def _functions(self, models: Models) -> MemoryFunctions:
        budget = self._manager.budget
        return MemoryFunctions(
            archival=ArchivalMemory(self._store, models.embedder, self._session, budget),
            working_context=self._working_context,
            session=self._session,
            evict=lambda keep_last: self._manager.flush(keep_last, share=0.0),
            budget=budget,
        )

    def run(self, question: str) -> Answer:
        """Answer the question; failures of the model become an Answer that says so.

        Raises:
            UserError: the question takes more than a quarter of the usable window.
        """
        started = self._clock.monotonic()
        self._session.begin(self._run_id)
        self._trace.event(
            "run",
            run_id=self._run_id,
            question=question,
            model=self._model.model,
            endpoint=self._model.endpoint,
            tool_mode=self._model.tool_mode,
            context_window=self._model.context_window,
            passages=self._store.passage_count,
        )
        self.check_size(question)
        error: str | None = None
        stopped_by: Limit | None = None
        proposed: ProposedAnswer | None = None
        try:
            proposed, stopped_by = self._loop(question)
        except ModelError as failure:
            error = str(failure)
        answer = self._answer(question, proposed, stopped_by, error)
        answer = replace(answer, elapsed_s=round(self._clock.monotonic() - started, 3))
        self._summarize_run(answer)
        self._trace_answer(answer)
        return answer

    def _loop(self, question: str) -> tuple[ProposedAnswer | None, Limit | None]:
        """Step until there is an answer, or a limit forces one."""
        try:
            self._enqueue_question(question)
        except BudgetReached as reached:
            return self._forced_answer(reached.stopped_by), reached.stopped_by
        while True:
            if self._progress.calls >= self._max_steps:
                return self._forced_answer("steps"), "steps"
            request = self._prompt()
            prompt_tokens = self._chat.prompt_tokens(request)
            limit = self._meter.limit_reached(prompt_tokens, request.max_tokens)
            if limit is not None:
                return self._forced_answer(limit), limit
            try:
                answer = self._step(request)
            except BudgetReached as reached:
                return self._forced_answer(reached.stopped_by), reached.stopped_by
            if answer is not None:
                return answer, None
            if self._progress.idle > MOST_IDLE_REPLIES:
                return self._forced_answer(None), None

    def _prompt(self) -> ChatRequest:
        """The next prompt, made after pending events are queued and the queue is flushed."""
        self._notice_upload()
        warning = self._manager.relieve_pressure()
        if warning is not None:
            self._append(warning)
        return self._manager.request()

    def _step(self, request: ChatRequest) -> ProposedAnswer | None:
        """One model call with what it executes; the answer, if it gave one that stands."""
        reply = self._complete(self._chat.complete(request))
        if not reply.message.calls:
            self._nudge(reply)
            return None
        self._progress.steps += 1
        self._progress.idle = 0
        execution = self._executor.run(reply.message)
        self._append(execution.turn)
        if execution.answer is None and not execution.heartbeat:
            self._append(Turn((UserMessage(NUDGE_YIELD, "nudge"),)))
        return execution.answer

    def _enqueue_question(self, question: str) -> None:
        """Put the question into the queue, and run the first search for the model."""
        self._append(Turn((UserMessage(question, "question"),)))
        call = ToolCall(
            _FIRST_CALL,
            "archival_memory_search",
            json.dumps(
                {"query": question, "page": 0, "request_heartbeat": True}, ensure_ascii=False
            ),
        )
        self._append(self._executor.run(AssistantMessage("", (call,))).turn)

    def _forced_answer(self, limit: Limit | None) -> ProposedAnswer | None:
        """The answer given when only `send_message` is offered; None where none came."""
        self._meter.release_reserve()
        self._trace.event("forced", stopped_by=limit)
        text = FORCED_ANSWER.format(limit=limit or "no usable function call")
        self._append(Turn((UserMessage(text, "nudge"),)))
        send_message = tuple(spec for spec in self._specs if spec.name == "send_message")
        try:
            reply = self._complete(self._chat.complete(self._manager.request(send_message)))
        except BudgetReached:
            return None
        if reply.message.calls:
            self._progress.steps += 1
            # Nothing is refused any more: there is no further step to do better in.
            self._progress.refused_citations = self._progress.refused_not_found = True
            execution = self._executor.run(reply.message)
            self._append(execution.turn)
            return execution.answer
        text = without_reasoning(reply.message.text)
        if text and (reply.problem is None or reply.is_prose):
            return ProposedAnswer(text, (), not_found=False)
        if limit is None:
            raise ModelError(
                "The model gave no usable reply several times in a row. "
                "Try another --tool-mode, or another model."
            )
        return None

    def _complete(self, reply: ChatReply) -> ChatReply:
        """The reply with call ids of our own: unique in the run and the same in every run.

        Nine letters and digits is the form that every endpoint accepts.
        """
        self._progress.calls += 1
        calls = tuple(
            replace(call, call_id=f"c{self._progress.calls:05d}{position:03d}")
            for position, call in enumerate(reply.message.calls)
        )
        return replace(reply, message=replace(reply.message, calls=calls))

    def _nudge(self, reply: ChatReply) -> None:
        """Answer a reply without a call: say what was wrong with it, or to go on."""
        self._progress.idle += 1
        if reply.message.text.strip():
            self._append(Turn((replace(reply.message, calls=()),)))
        if reply.problem is not None:
            event = UserMessage(f"Failed: {reply.problem}", "failure")
        else:
            event = UserMessage(NUDGE_YIELD, "nudge")
            self._progress.idle += 1
        self._append(Turn((event,)))

    def _refusal_of(self, proposed: ProposedAnswer) -> str | None:
        """Why an answer is sent back, at most once for each cause; None lets it pass."""
        progress = self._progress
        if proposed.not_found:
            if progress.result_pages <= 1 and not progress.refused_not_found:
                progress.refused_not_found = True
                return NUDGE_NOT_FOUND.format(pages=progress.result_pages)
            return None
        if progress.refused_citations:
            return None
        citations = self._citations.check(proposed.citations)
        if any(citation.verified for citation in citations):
            return None
        progress.refused_citations = True
        problems = "; ".join(str(citation.problem) for citation in citations[:2])
        return NUDGE_CITATIONS.format(problems=(problems or "none was given") + ".")

    def _answer(
        self,
        question: str,
        proposed: ProposedAnswer | None,
        stopped_by: Limit | None,
        error: str | None,
    ) -> Answer:
        citations = self._citations.check(proposed.citations) if proposed else ()
        return Answer(
            run_id=self._run_id,
            question=question,
            status=_status(proposed, citations, stopped_by, error),
            answer=proposed.message if proposed else "",
            citations=citations,
            steps=self._progress.steps,
            searches=self._progress.searches,
            pages_read=len(self._pages),
            usage=self._meter.usage,
            model=self._model.model,
            tool_mode=self._model.tool_mode,
            stopped_by=stopped_by,
            elapsed_s=0.0,
            error=error,
            pages_shown=tuple(self._pages),
        )

    def _append(self, turn: Turn) -> None:
        for message in turn.messages:
            self._trace.event("message", step=self._progress.calls, **message_fields(message))
            self._count(message)
        self._manager.append(turn)

    def _count(self, message: Message) -> None:
        if isinstance(message, ToolResult):
            self._progress.searches += isinstance(message.result, SearchPage)
            self._progress.result_pages += isinstance(message.result, SearchPage | DocumentPage)

    def _on_shown(self, result: FunctionResult) -> None:
        self._session.mark_shown(passage_ids(result))
        if isinstance(result, SearchPage | DocumentPage):
            self._pages.update((page, None) for page in result.pages)

    def _on_failed(self, name: str, error: FunctionError) -> None:
        """Trace what a function of the caller's raised: the model sees the start of it at most."""
        cause = error.__cause__
        if isinstance(error, CallerFunctionError) and cause is not None:
            self._trace.event(
                "function_error",
                step=self._progress.calls,
                name=name,
                type=type(cause).__name__,
                error=str(cause),
                traceback="".join(traceback.format_exception(cause)),
            )

    def _on_flush(self, flush: Flush) -> None:
        self._session.keep_summary(flush.summary)
        self._trace.event(
            "flush",
            step=self._progress.calls,
            evicted_turns=flush.evicted_turns,
            evicted_messages=flush.evicted_messages,
            before=flush.before,
            after=flush.after,
            summary=flush.summary,
        )

    def _notice_upload(self) -> None:
        generation = self._store.generation
        if generation != self._progress.generation:
            self._progress.generation = generation
            self._append(Turn((UserMessage(UPLOAD_FINISHED, "upload"),)))

    def check_size(self, question: str) -> None:
        """Refuse a question that would leave no room for what it needs; no model is asked.

        Raises:
            UserError: it takes more than a quarter of the usable window.
        """
        most = int(self._manager.usable * RESULT_SHARE)
        size = self._manager.text_cost(question)
        if size > most:
            raise UserError(
                f"The question takes {size} tokens; a window of {self._model.context_window} "
                f"leaves {most} for it. Shorten it or use a larger --context-window."
            )

    def _fitted_notes(self) -> WorkingContext:
        """Working context within what its wrapping leaves of the share for notes."""
        wrapping = self._manager.text_cost(self._render(WorkingContextVersion(), 9999))
        notes = WorkingContext(
            limit=max(32, self._manager.notes_limit - wrapping),
            count=self._manager.text_cost,
            versions=self._session.versions or (WorkingContextVersion(DEFAULT_PERSONA),),
            on_edit=self._session.keep_version,
        )
        notes.fit()
        return notes

    def _context(self) -> str:
        return self._render(self._working_context.current, self._working_context.used)

    def _render(self, notes: WorkingContextVersion, used: int) -> str:
        inserts = len(self._session.inserts)
        return WORKING_CONTEXT.format(
            used=used,
            limit=self._manager.notes_limit,
            persona=notes.persona,
            user=notes.user,
            notes=notes.notes or "(none yet)",
            passages=self._store.passage_count,
            inserts=f" and {inserts} inserted" if inserts else "",
            recalled=len(self._session.entries),
            evicted=self._manager.evicted_messages,
        )

    def _summarize_run(self, answer: Answer) -> None:
        """Leave question and answer in the session's summary for its next run."""
        said: tuple[Message, ...] = (
            UserMessage(answer.question, "question"),
            AssistantMessage(f"Answer ({answer.status}): {answer.answer}"),
        )
        summarizer = ExtractiveSummarizer(self._counter)
        summary = summarizer.summarize(
            self._manager.queue.summary, said, self._manager.summary_limit
        )
        self._session.keep_summary(summary)

    def _trace_answer(self, answer: Answer) -> None:
        self._trace.event(
            "answer",
            status=answer.status,
            answer=answer.answer,
            citations=[
                {
                    "passage_id": citation.passage_id,
                    "document": citation.document,
                    "page": citation.page,
                    "quote": citation.quote,
                    "verified": citation.verified,
                    "problem": citation.problem,
                }
                for citation in answer.citations
            ],
            stopped_by=answer.stopped_by,
            error=answer.error,
            steps=answer.steps,
            searches=answer.searches,
            pages_read=answer.pages_read,
            elapsed_s=answer.elapsed_s,
        )


def message_fields(message: Message) -> dict[str, object]:
    """A message as the fields of a trace event."""
    fields: dict[str, object] = {"role": message.role, "text": message.text}
    if isinstance(message, UserMessage):
        fields["kind"] = message.kind
    if isinstance(message, AssistantMessage):
        fields["calls"] = [
            {"name": call.name, "arguments": call.arguments} for call in message.calls
        ]
    if isinstance(message, ToolResult):
        fields |= {"name": message.name, "failed": message.failed}
    return fields


def _status(
    proposed: ProposedAnswer | None,
    citations: tuple[Citation, ...],
    stopped_by: Limit | None,
    error: str | None,
) -> AnswerStatus:
    if error is not None:
        return "model_error"
    if proposed is None:
        return "step_limit" if stopped_by == "steps" else "budget"
    if proposed.not_found:
        return "not_found"
    return "answered" if any(citation.verified for citation in citations) else "unsupported"
