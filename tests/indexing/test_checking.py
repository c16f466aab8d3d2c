"""`check` finds what differs from its sources, and `rebuild` puts it right."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import Document, EntityMention, IndexOptions, RelationMention
from lightrag_jsonl.storage.rows import EntityRow, RelationRow
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.kit import entity, index, jsonl, relation, text_of

OPTIONS = IndexOptions(max_gleanings=0, chunk_tokens=60, chunk_overlap=0, summarize_fragments=4)
UNCHANGED = {  # here: what the samples leave empty, and what is no column or leads to nothing else
    EntityRow: {"id", "quoted", "edited"},
    RelationRow: {
        *("id", "high", "edited"),
        *("summary", "summarized_to", "summarized_mentions"),
    },
    EntityMention: {"grounded", "quoted", "attributes", "valid_from", "valid_to"},
    RelationMention: {"valid_from", "valid_to"},
}


def fields_of(kind: Any) -> str:
    """The fields of a class as the columns of which a value is changed."""
    return " ".join(name for name in kind.__match_args__ if name not in UNCHANGED[kind])


COLUMNS = {  # of which one value is changed at a time
    "entities": fields_of(EntityRow),
    "relations": fields_of(RelationRow),
    "entity_mentions": f"entity position {fields_of(EntityMention)}",
    "relation_mentions": f"relation position forward {fields_of(RelationMention)}",
    "stated_aliases": "key",
    "entity_vectors": "digest data",
    "relation_vectors": "digest data",
    "chunk_vectors": "digest data",
    "chunks": "name position page start stop text state report fingerprint",
    "pages": "text number",
    "documents": "characters name title source date metadata content state",
    "chunk_terms_docsize": "id",
}
OTHER_ROWS = {"low": -1, "entity": 2, "relation": 2, "id": 1000}  # what is added to an id
FACTS = {"entity_mentions", "relation_mentions", "chunks", "pages", "documents"}
TEXT = "Ann met Person{0}, who called her Annie Oo, on a walk by a lake, and Person{0} sang."
DOCUMENTS = [
    Document(
        TEXT.format(number),
        id=f"d{number}",
        title=f"Walk {number}",
        source="湖",
        date=f"2001-01-0{number + 1}",
        metadata={"year": 2001},
    )
    for number in range(6)
]
CASES = [(table, column) for table, names in COLUMNS.items() for column in names.split()]
KEYS = {"stated_aliases": "entity"}  # instead of `rowid`


def read(request: Request) -> str:
    if request.question.startswith("Subject:"):
        return "Ann is known to many."
    text = text_of(request)
    who = text.split()[2].strip(",")
    return jsonl(
        entity("Ann", f"Ann knows {who}.", aliases=["Annie Oo"]), entity(who), relation("Ann", who)
    )


def change(path: Path, table: str, column: str) -> None:
    """Change one value of the first row, as a flipped bit or another program would."""
    key = KEYS.get(table, "rowid")
    first = f"{key} = (SELECT min({key}) FROM {table})"
    with closing(sqlite3.connect(path)) as other:
        (value,) = other.execute(f"SELECT {column} FROM {table} WHERE {first}").fetchone()
        new = changed(value, column)
        other.execute(f"UPDATE {table} SET {column} = ? WHERE {first}", [new])
        other.commit()
        assert other.total_changes == 1 and new != value, (table, column)


def changed(value: Any, column: str) -> object:
    """Another value of this kind: a number, bytes, JSON or a text."""
    if column in ("reversed", "forward", "summarized_to"):
        return 1 - value
    if column == "state":
        return {"done": "partial", "ok": "empty"}[value]
    if column == "report":
        return value.replace('"ok":1', '"ok":0').replace('"empty":0', '"empty":1')
    if isinstance(value, int | float):
        return value + OTHER_ROWS.get(column, 1)
    if isinstance(value, bytes):
        return b"\0\x3c\0\x3c"
    if column == "attributes" and value[:1] == "{":
        return '{"x": {"x": 1}}'
    return {"{": '{"x": 1}', "[": '["x"]'}.get(value[:1], f"{value}x")


@pytest.mark.slow
async def test_every_changed_value_is_found(tmp_path: Path) -> None:
    """One value is changed at a time: a full check finds it, and a rebuild repairs what is derived
    (a vector with the digest of its text is kept: `reembed` makes it anew).
    """
    llm, path = ScriptedLLM(read), tmp_path / "index.sqlite"
    missed, left = [], {}
    async with index(tmp_path, llm, options=OPTIONS) as rag:
        await rag.insert(DOCUMENTS)
        assert await rag.admin.check(full=True) == await rag.admin.check() == []
        await rag.admin.vacuum()  # empties the log
    sound = path.read_bytes()
    for table, column in CASES:
        path.write_bytes(sound)
        change(path, table, column)
        async with index(tmp_path, llm, options=OPTIONS) as rag:
            if not await rag.admin.check(full=True):
                missed.append((table, column))
            if table not in FACTS and column != "data":
                await rag.admin.rebuild()
                if found := await rag.admin.check(full=True):
                    left[table, column] = found
    assert missed == [("entity_mentions", "description")]  # it only went into a summary
    assert not left, left


async def test_a_rebuild_gets_over_a_relation_whose_end_lost_its_name(tmp_path: Path) -> None:
    """A flipped bit in the only mention of an entity: it has the other name, and no relation."""
    llm = ScriptedLLM(read)
    async with index(tmp_path, llm, options=OPTIONS) as rag:
        await rag.insert(DOCUMENTS)
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as other:
        other.execute("UPDATE entity_mentions SET name = 'Qerson0' WHERE name = 'Person0'")
        other.commit()
    async with index(tmp_path, llm, options=OPTIONS) as rag:
        assert await rag.admin.check(full=True)
        await rag.admin.rebuild()
        assert await rag.admin.check(full=True) == []
        found = await rag.entities.neighbours("Qerson0")
        assert found.relations == () and len((await rag.entities.neighbours("Ann")).relations) == 5
        await rag.entities.merge(["Qerson0"], into="Person1")
        await rag.entities.unmerge("Qerson0")
        await rag.delete("d0")
        assert await rag.admin.check(full=True) == []


@pytest.mark.parametrize("text", ["\u0308\u0308 \u0327", "\u0e48", "\u0301 Zoë 雪", "\u20dd"])
async def test_marks_without_a_letter_are_no_fault(tmp_path: Path, text: str) -> None:
    """A text of nothing else has no term in the full text, and misses none."""
    async with index(tmp_path) as rag:
        await rag.insert(Document(text, id="marks"))
        assert await rag.admin.check(full=True) == []
