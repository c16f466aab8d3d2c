"""Sample documents of a store, and all that a store holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.storage import rows as r
from lightrag_jsonl.storage.store import Store, Transaction

TEXTS = ("Marie Curie discovered radium.", "居里夫人发现了镭。", "１２ 🙂", " ", "")
ROWS = np.eye(4, dtype=np.float32)
ALL_ROWS: Mapping[Kind, Sequence[int]] = {"entity": (1, 2), "relation": (1,), "chunk": (3, 4)}
REFUSED = t.Rejection(2, "oops", "not_json", "no object")
READ = t.Extraction(rejections=(REFUSED,), gleaned=(3, 1), usage=Usage(7, 5, 1, 2))
BORN = (("born", "1867"),)
CURIE = t.EntityMention("Curie", "person", "a chemist", attributes=BORN, aliases=("居里",))
RADIUM = t.EntityMention("radium", "element", "an element", grounded=False)
FOUND = t.RelationMention("Curie", "radium", ("discovery",), "she found it", 2.0)


def sample_entities() -> list[r.EntityRow]:
    """The entities that every sample document mentions."""
    votes = ({"Curie": 4}, {"person": 4}, {"born\0001867": 4}, {"居里": 4}, 4)
    summary = ("her summary", 3, 2)
    curie = r.EntityRow(1, "curie", *votes, "a chemist", *summary, 1.5, "Curie", "person")
    radium = r.EntityRow(2, "radium", {"radium": 4}, {"element": 4}, name="radium", type="element")
    return [curie, radium]


def sample_relation() -> r.RelationRow:
    """The relation that every sample document mentions."""
    votes = ({"discovery": 4}, {"Curie": 4}, {"radium": 4})
    return r.RelationRow(1, 1, 2, *votes, 4, 0, 8_000_000, 4, "she found it", created_at=1.5)


def put_sample(transaction: Transaction, number: int, text: str = TEXTS[0]) -> None:
    """Store document `number`: two chunks, which mention the same two entities."""
    id, rows = f"d{number}", (2 * number - 1, 2 * number)
    metadata = {"year": 2000 + number, "tags": ["a", number]}
    named = (number, id, f"Title {number}", None, None)
    document = r.StoredDocument(*named, metadata, "digest", "done", 99, 1.0)
    transaction.put_document(document, [t.Page(id, 1, text), t.Page(id, 2, "第二页")])
    for row, n in zip(rows, (0, 1), strict=True):
        chunk = t.Chunk(f"{id}-{n}", id, n, 1, 0, len(text), text, 5, heading="Report › 第一章")
        transaction.put_chunks([r.StoredChunk(row, number, chunk, 2.0, READ)])
        entities = [
            r.EntityMentionRow(2 * row - 2 + entity, entity, row, 1000 * row, mention)
            for entity, mention in ((1, CURIE), (2, RADIUM))
        ]
        relation = r.RelationMentionRow(row, 1, row, 1000 * row, FOUND, True)
        transaction.put_mentions(entities, [relation])
    transaction.put_graph_rows("entity", sample_entities())
    transaction.put_graph_rows("relation", [sample_relation()])
    for kind, ids in {**ALL_ROWS, "chunk": rows}.items():
        vectors = {row: (f"{kind} {row}".encode(), ROWS[(row - 1) % 4]) for row in ids}
        transaction.put_vectors(kind, vectors)


def stored_content(store: Store) -> list[object]:
    """All that a store holds of documents, graph and vectors, to be compared."""
    with store.snapshot() as snapshot:
        graph = snapshot.graph
        ids = graph.relations_of(graph.entities)[1]
        columns = [graph.entities, graph.chunks, graph.all_ends, graph.weights(ids)]
        columns += graph.all_mentions
        found: list[object] = []
        for kind in ALL_ROWS:
            dim = snapshot.vector_matrix(kind, np.array([1])).shape[1]
            columns += snapshot.search_vectors(kind, np.ones((1, dim), np.float32), 99)
            found.append(snapshot.vector_digests(kind, range(9)))
        found += [column.tolist() for column in columns]
        found += [snapshot.documents(), snapshot.chunks(), snapshot.chunk_reports()]
        found += [snapshot.rejections(), snapshot.aliases(), snapshot.next_ids()]
        found.append(snapshot.alias_claims())
        found += [snapshot.entity_mentions(), snapshot.relation_mentions()]
        found += [snapshot.entity_rows(), snapshot.relation_rows()]
        found.append(snapshot.search_terms(["radium", "curie", "镭*"], 99))
    return found
