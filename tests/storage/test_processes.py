"""Several processes on one index see what the others commit."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from lightrag_jsonl import Completion
from tests.kit import store_at
from tests.processes import run_python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # processes that write

DOCUMENTS = 40
WRITER = """
import sys
from lightrag_jsonl import Completion
from tests.kit import store_at
from tests.storage.contract import put_sample

store = store_at(sys.argv[1])
for number in range(1, int(sys.argv[2]) + 1):
    with store.transaction(durable=False) as transaction:
        transaction.put_completion(number.to_bytes(32), Completion(str(number)))
    with store.transaction() as transaction:
        put_sample(transaction, number)
"""

OPENERS = """
import os
import sys
from contextlib import closing
from tests.kit import store_at
from tests.storage.contract import put_sample

children = []
for number in range(3):  # forked, so that they come at the same time
    children.append(os.fork())
    if not children[-1]:
        with closing(store_at(sys.argv[1])) as store:
            if not number:
                with store.transaction() as transaction:
                    put_sample(transaction, 1)
        sys.exit()
statuses = [os.waitpid(child, 0)[1] for child in children]
sys.exit(any(statuses))
"""


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Where an index is made: a folder in a folder that does not exist."""
    return str(tmp_path / "deep" / "kb")


@contextmanager
def writer(place: object, documents: int = DOCUMENTS) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stores documents; killed at the end of the block."""
    command = [sys.executable, "-c", WRITER, str(place), str(documents)]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


def test_two_processes_share_an_index(place: str) -> None:
    """While another process writes, each snapshot shows one generation, in memory as on the disk;
    transactions of both wait for each other, and none is lost.
    """
    store, seen, own = store_at(place), [0], 0
    with closing(store), writer(place) as process:
        while seen[-1] < DOCUMENTS:
            own += 1
            with store.transaction(durable=False) as transaction:
                transaction.put_completion(own.to_bytes(32, "little"), Completion("mine"))
            with store.snapshot() as snapshot:
                stored = list(snapshot.chunks())
                assert snapshot.graph.chunks.tolist() == stored
                ids, _ = snapshot.vectors_by_kind["chunk"].search(np.ones((1, 4), np.float32), 999)
                assert sorted(ids.ravel().tolist()) == stored
                assert len(snapshot.search_terms(["radium"], 999)) == len(stored)
                seen.append(len(stored) // 2)
        assert process.wait() == 0 and seen == sorted(seen)
        with store.view() as view:
            assert view.completion_stats()[0] == DOCUMENTS + own


def test_processes_create_one_index(place: str) -> None:
    """Several processes may open a new index at the same time."""
    ended = run_python(OPENERS, place)
    assert ended.returncode == 0, ended.stderr
    with closing(store_at(place, create=False)) as store, store.view() as view:
        assert view.counts().chunks == 2
