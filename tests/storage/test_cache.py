"""What was paid for is found again, and costs little to store."""

import random
from itertools import pairwise
from pathlib import Path

from lightrag_jsonl import Completion
from tests.kit import store_at


def test_an_answer_changes_few_pages(tmp_path: Path) -> None:
    """What an answer adds to the log does not grow with the number of answers."""
    store = store_at(tmp_path)
    chance = random.Random(1)
    log = tmp_path / "index.sqlite-wal"
    sizes = []
    with store.view() as view:
        assert view.completion_stats() == (0, 0)  # the log is kept for as long as this is seen
        for _ in range(4):
            for _ in range(500):
                with store.transaction(durable=False) as transaction:
                    transaction.put_completion(chance.randbytes(32), Completion("x" * 900))
            sizes.append(log.stat().st_size)
    added = [later - earlier for earlier, later in pairwise(sizes)]
    assert max(added) < 1.1 * min(added) and max(added) / 500 < 4 * 4096
