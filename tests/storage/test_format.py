"""What is stored keeps its form, whatever it is called in memory."""

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.kit import store_at
from tests.storage.contract import put_sample

STATEMENTS = (  # rows with votes in another order
    """UPDATE entities SET attributes = '{"born":{"1867":3},"居":{"里":1},"odd":{"":1}}' WHERE id = 1""",
    """UPDATE relations SET keywords = '{"teacher":1}', backward_keywords = '{"pupil":2,"teacher":1}'""",
)


def stored_texts(folder: Path) -> list[object]:
    """The votes for attributes and keywords, as they are in the file."""
    with contextlib.closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        rows = connection.execute(
            "SELECT attributes FROM entities WHERE id = 1 UNION ALL SELECT keywords FROM relations "
            "UNION ALL SELECT backward_keywords FROM relations"
        )
        return [json.loads(text) for (text,) in rows]


def test_stored_votes_are_read(tmp_path: Path) -> None:
    """Names and values of attributes, and directions of keywords, are told apart, and written back
    as they were.
    """
    store = store_at(tmp_path)
    with store.transaction() as transaction:
        put_sample(transaction, 1)
    with contextlib.closing(sqlite3.connect(tmp_path / "index.sqlite")) as connection:
        for statement in STATEMENTS:
            connection.execute(statement)
        connection.commit()
    texts = stored_texts(tmp_path)
    with store.transaction() as transaction:
        entities: list[Any] = list(transaction.entity_rows().values())
        relations: list[Any] = list(transaction.relation_rows().values())
        assert entities[0].attributes == {"born": {"1867": 3}, "居": {"里": 1}, "odd": {"": 1}}
        assert relations[0].keywords == {"teacher": 1}
        assert relations[0].backward_keywords == {"pupil": 2, "teacher": 1}
        assert relations[0].directed_keywords == (("teacher",), ("pupil",))
        transaction.put_graph_rows("entity", entities)
        transaction.put_graph_rows("relation", relations)
    assert stored_texts(tmp_path) == texts
