"""What a person sees and can do while a command runs: a progress bar, and Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

import click

from lightrag_jsonl.cli.output import say

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.runs import Progress, Watcher

INTERRUPTED = 130  # the shell's status of a program ended by Ctrl-C


@contextlib.contextmanager
def progress_bar() -> Iterator[Watcher | None]:
    """A bar of chunks on stderr, where that is a terminal; else nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(total=0, unit=" chunks", file=sys.stderr, leave=False) as bar:

        def watch(progress: Progress) -> None:
            bar.total = progress.chunks_known
            bar.set_postfix_str(f"{progress.documents_done} documents", refresh=False)
            bar.update(progress.chunks_done - bar.n)

        yield watch


@contextlib.contextmanager
def interruptible(hint: str) -> Iterator[None]:
    """The first Ctrl-C ends the work in good order, with a hint; a second one ends the process."""
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
