"""Progress of an insert: the values for a callback, and bars in a terminal or a notebook."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Never, TypeAlias

from msgspec import Struct

from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.client import UsageMeter

if TYPE_CHECKING:
    from tqdm.auto import tqdm


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an insert: chunks read by the extractor, of the chunks known so far.

    `steps` holds the step of making documents visible that is under way ("merging", "summarizing",
    "embedding" or "writing"), with (items done, items known). `usage` is the cost so far.
    """

    chunks_done: int
    chunks_known: int
    documents_done: int
    steps: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    usage: Usage = Usage()


ProgressCallback: TypeAlias = Callable[[Progress], None]
ShowProgress: TypeAlias = ProgressCallback | bool | None


class ProgressCounter(Struct):
    """Counts the chunks and documents of an insert, and tells a callback, with what `meter` has counted."""

    callback: ProgressCallback | None
    meter: UsageMeter
    chunks_known: int = 0
    chunks_done: int = 0
    documents_done: int = 0

    def step(self, name: str, items_done: int, items_known: int) -> None:
        """Tell of the step of a commit that is under way; a step without items is no news."""
        if items_known:
            self.tell({name: (items_done, items_known)})

    def tell(self, steps: Mapping[str, tuple[int, int]] | None = None) -> None:
        """Call the callback, if there is one."""
        if self.callback is None:
            return
        progress = Progress(
            chunks_done=self.chunks_done,
            chunks_known=self.chunks_known,
            documents_done=self.documents_done,
            steps=steps or {},
            usage=self.meter.spent,
        )
        self.callback(progress)


@contextmanager
def progress_bars(progress: ShowProgress) -> Iterator[ProgressCallback | None]:
    """The callback in `progress`; with True, bars on stderr, one for each stage; with False none.

    None stands for bars in a terminal and in a notebook.
    """
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    if progress is True:
        with ExitStack() as stack:
            yield _Bars(stack).show
    else:
        yield progress or None


class _Bars:
    """A bar for each stage of an insert."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack  # closes the bars
        self._bars: dict[str, tqdm[Never]] = {}

    def show(self, progress: Progress) -> None:
        chunks = (progress.chunks_done, progress.chunks_known)
        steps = {"chunks": chunks, **progress.steps}
        for name, (items_done, items_known) in steps.items():
            if items_known:
                self._update(self._bar(name), items_done, items_known)

    def _bar(self, name: str) -> "tqdm[Never]":
        from tqdm.auto import tqdm

        if name not in self._bars:
            position = len(self._bars)
            bar: tqdm[Never] = tqdm(desc=name, file=sys.stderr, leave=False, position=position)
            self._bars[name] = bar
            self._stack.callback(bar.close)
        return self._bars[name]

    def _update(self, bar: "tqdm[Never]", items_done: int, items_known: int) -> None:
        if items_done < bar.n:  # of the next documents that are made visible together
            bar.reset()
        bar.total = items_known
        bar.update(items_done - bar.n)
        bar.refresh()
