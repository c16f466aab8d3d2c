"""Progress of an insert: what a callback is given, and the bars that are shown without one."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Never, TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an insert has come: chunks read by the extractor, out of those found so far.

    `steps` holds the step of making documents visible that is under way ("merging", "summarizing",
    "embedding" or "writing"), with (items done, items known).
    """

    chunks_done: int
    chunks_known: int
    documents_done: int
    steps: Mapping[str, tuple[int, int]] = field(default_factory=dict)


ProgressCallback: TypeAlias = Callable[[Progress], None]
ShowProgress: TypeAlias = ProgressCallback | bool | None


@contextmanager
def progress_bars(given: ShowProgress) -> Iterator[ProgressCallback | None]:
    """The given callback; with True, one that shows a bar for each stage on stderr; with False none.
    None shows bars in a terminal and in a notebook.
    """
    shown = (sys.stderr.isatty() or "ipykernel" in sys.modules) if given is None else given
    if shown is not True:
        yield shown or None
        return
    from tqdm.auto import tqdm

    with ExitStack() as stack:
        bars: dict[str, tqdm[Never]] = {}

        def show(progress: Progress) -> None:
            stages = {"chunks": (progress.chunks_done, progress.chunks_known), **progress.steps}
            for name, (done, known) in stages.items():
                if not known:
                    continue
                if name not in bars:
                    bars[name] = tqdm(desc=name, file=sys.stderr, leave=False, position=len(bars))
                    stack.callback(bars[name].close)
                bar = bars[name]
                if done < bar.n:  # of the next documents that are made visible together
                    bar.reset()
                bar.total = known
                bar.update(done - bar.n)
                bar.refresh()

        yield show
