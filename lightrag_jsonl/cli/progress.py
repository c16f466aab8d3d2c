"""The progress bar of a running command, and how Ctrl-C ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Never

import click

from lightrag_jsonl.cli.output import counted, say

if TYPE_CHECKING:
    from tqdm import tqdm

    from lightrag_jsonl.indexing.runs import Progress, Watcher

INTERRUPTED = 130  # the shell's status for a program ended by Ctrl-C
REFRESH_SECONDS = 0.5


@contextlib.contextmanager
def progress_bar() -> Iterator[Watcher | None]:
    """A bar that counts chunks on stderr; None if that is not a terminal."""
    with _bar("chunks") as bar:
        if bar is None:
            yield None
            return

        def watch(progress: Progress) -> None:
            bar.total = progress.chunks_known
            bar.set_description_str(_steps(progress), refresh=False)
            bar.set_postfix_str(counted(progress.documents_done, "document"), refresh=False)
            bar.update(progress.chunks_done - bar.n)

        yield watch


@contextlib.contextmanager
def text_bar() -> Iterator[Callable[[int, int], None] | None]:
    """A bar that counts texts on stderr, given how many are done of how many; None as above."""
    with _bar("texts") as bar:
        if bar is None:
            yield None
            return

        def watch(done: int, known: int) -> None:
            bar.total = known
            bar.update(done - bar.n)

        yield watch


def _steps(progress: Progress) -> str:
    """The steps that run once all chunks are read; until then "", since the bar says enough."""
    if progress.chunks_done < progress.chunks_known:
        return ""
    return ", ".join(
        f"{name} {done:,}/{known:,}" if known > 1 else name
        for name, (done, known) in progress.steps.items()
    )


@contextlib.contextmanager
def _bar(unit: str) -> Iterator[tqdm[Never] | None]:
    """A bar on stderr if that is a terminal; its clock goes on even while nothing is reported."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    ended = threading.Event()
    with tqdm(total=0, unit=f" {unit}", file=sys.stderr, leave=False) as bar:

        def refresh() -> None:
            while not ended.wait(REFRESH_SECONDS):
                bar.refresh()

        thread = threading.Thread(target=refresh, daemon=True)
        thread.start()
        try:
            yield bar
        finally:
            ended.set()
            thread.join()


@contextlib.contextmanager
def interruptible(hint: str) -> Iterator[None]:
    """The first Ctrl-C ends the work cleanly, with a hint; the second ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _first)
    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted; {hint}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGINT, before)


def _first(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, _second)
    raise KeyboardInterrupt


def _second(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
