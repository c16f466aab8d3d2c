"""Starts the trace of a question: the record of each step."""

from collections.abc import Callable
from dataclasses import dataclass

from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Mode
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.rag.clock import Clock
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.tracing.events import Session
from lightrag_jsonl.tracing.recorder import Listener, Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRecording:
    """Makes a `Recorder` for each question; the newest `keep_traces` traces stay in the store."""

    store: Store
    clock: Clock
    new_id: Callable[[], str]
    keep_traces: int

    def recorder(
        self,
        question: str,
        *,
        mode: Mode,
        meter: UsageMeter,
        listener: Listener | None = None,
    ) -> Recorder:
        """The recorder of a question about the present state of the index."""
        with self.store.view() as view:
            generation = view.generation
        session = Session(
            trace_id=self.new_id(),
            question=sanitize(question),
            mode=mode,
            started_at=self.clock.now(),
            generation=generation,
        )
        return Recorder(
            store=self.store,
            session=session,
            meter=meter,
            listener=listener,
            clock=self.clock.now,
            keep=self.keep_traces,
        )
