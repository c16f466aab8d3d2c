"""An index that was opened before a fork."""

import multiprocessing
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG, StorageError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are usual on Linux only")
SECONDS = 120.0  # until a child counts as hanging


def use_in_child(rag: LightRAG, results: Connection) -> None:
    """Try each way into an index that the parent opened, then close it; send the messages."""
    messages: list[str] = []
    for use in (lambda: rag.query("谁？"), lambda: list(rag.stream("Who?")), lambda: rag.graph):
        try:
            use()
        except StorageError as error:
            messages.append(str(error))
    rag.close()
    results.send(messages)


def test_a_forked_child_gets_an_error_and_the_parent_goes_on(tmp_path: Path) -> None:
    """At once, where it would wait for ever for a thread of the parent; closing ends, too."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with LightRAG(tmp_path) as rag:
        rag.insert("Marie Curie discovered radium.")
        child = context.Process(target=use_in_child, args=(rag, sender))
        child.start()
        try:
            assert receiver.poll(SECONDS), "the child hangs"
            messages = receiver.recv()
            child.join(SECONDS)
            assert child.exitcode == 0
        finally:
            child.kill()
        assert len(messages) == 3
        assert all("forked" in message and str(tmp_path) in message for message in messages)
        assert "radium" in rag.query("What did Marie Curie discover?").text
