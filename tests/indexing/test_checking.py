"""`check` finds what differs from its sources, and `rebuild` puts it right."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from lightrag_jsonl import IndexOptions
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.kit import entity, index, jsonl, relation, text_of

OPTIONS = IndexOptions(max_gleanings=0, chunk_tokens=60, chunk_overlap=0, summarize_fragments=4)
FLIPS = {  # one value of one row, by table and column
    "entities": {
        "key": "'x' || key",
        "name": "'x' || name",
        "type": "'x' || type",
        "description": "substr(description, 1, length(description) - 1) || 'x'",
        "names": "replace(names, '6', '7')",
        "types": "replace(types, '6', '7')",
        "attributes": "json('{\"a\": 1}')",
        "aliases": "replace(aliases, 'o', 'i')",
        "mentions": "mentions + 1",
        "summary": "substr(coalesce(summary, ' '), 2)",
        "summarized_to": "summarized_to + 1 - 2 * (summary IS NOT NULL) * summarized_to",
        "summarized_mentions": "summarized_mentions + 99",
        "created_at": "created_at + 1",
    },
    "relations": {
        "low": "low - 1",
        "reversed": "1 - reversed",
        "description": "upper(description)",
        "keywords": "replace(keywords, 'knows', 'snows')",
        "low_names": "replace(low_names, '1}', '3}')",
        "high_names": "upper(high_names)",
        "forward": "forward + 1",
        "backward": "backward + 1",
        "weight": "weight + 1",
        "mentions": "mentions + 1",
        "created_at": "created_at - 1",
    },
    "entity_mentions": {
        "entity": "entity % 3 + 1",
        "name": "upper(name)",
        "type": "'x'",
        "description": "'x' || description",
        "aliases": "json('[\"x\"]')",
    },
    "relation_mentions": {
        "relation": "relation % 3 + 1",
        "source": "upper(source)",
        "target": "upper(target)",
        "keywords": "json('[\"x\"]')",
        "description": "'x' || description",
        "strength": "strength + 1",
        "forward": "1 - forward",
    },
    "stated_aliases": {"key": "'x'"},
    "entity_vectors": {"digest": "x'00'", "data": "x'003c003c'"},
    "relation_vectors": {"digest": "x'00'", "data": "x'003c003c'"},
    "chunk_vectors": {"digest": "x'00'", "data": "x'003c003c'"},
    "chunks": {
        "name": "'chunk-0000000000000000'",
        "page": "page + 1",
        "start": "start + 1",
        "stop": "stop + 1",
        "text": "replace(text, 'a', 'o')",
    },
    "pages": {"text": "replace(text, 'a', 'o')"},
    "documents": {"characters": "characters + 1", "name": "'x' || name"},
    "chunk_terms_docsize": {"id": "id + 1000"},
}
FACTS = {"entity_mentions", "relation_mentions", "chunks", "pages", "documents"}
TEXT = "Ann met Person{0}, who called her Annie Oo, on a walk by a lake, and Person{0} sang."
DOCUMENTS = [Document(TEXT.format(number), id=f"d{number}") for number in range(6)]
CASES = [(table, column) for table, columns in FLIPS.items() for column in columns]


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
        other.execute(f"UPDATE {table} SET {column} = {FLIPS[table][column]} WHERE {first}")
        other.commit()
        assert other.total_changes == 1, (table, column)


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
