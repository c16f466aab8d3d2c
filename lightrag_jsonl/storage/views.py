"""The stored graph in other forms: as a networkx graph, and as JSONL records."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightrag_jsonl.storage import claims, reading
from lightrag_jsonl.storage.rows import all_ids
from lightrag_jsonl.types import Record

if TYPE_CHECKING:
    import networkx as nx


def named_graph(connection: sqlite3.Connection) -> nx.Graph:
    """A frozen networkx graph: nodes by entity name, with the attributes of `Entity` and `Relation`."""
    import networkx as nx

    graph = nx.Graph()
    for entity in reading.entities(connection, all_ids(connection, "entity")).values():
        graph.add_node(
            entity.name,
            entity_type=entity.type,
            description=entity.description,
            chunk_ids=entity.chunk_ids,
            created_at=entity.created_at,
            attributes=entity.attributes,
        )
    for relation in reading.relations(connection, all_ids(connection, "relation")).values():
        graph.add_edge(
            relation.source,
            relation.target,
            source=relation.source,
            target=relation.target,
            keywords=relation.keywords,
            description=relation.description,
            weight=relation.weight,
            chunk_ids=relation.chunk_ids,
            created_at=relation.created_at,
        )
    return nx.freeze(graph)


def records(connection: sqlite3.Connection) -> Iterator[Record]:
    """Every claim as an `extract-graph` record with its document and chunk index, in order."""
    rows = connection.execute(
        "SELECT c.id, d.name, c.position FROM chunks c JOIN documents d ON d.id = c.document "
        "ORDER BY d.id, c.position"
    ).fetchall()
    for chunk, document, position in rows:
        where: Record = {"document": document, "chunk": position}
        for entity in claims.entity_claims(connection, [chunk]):
            mention = entity.mention
            yield {
                "type": "entity",
                "name": mention.name,
                "entity_type": mention.type,
                "description": mention.description,
                **where,
            }
        for relation in claims.relation_claims(connection, [chunk]):
            said = relation.mention
            yield {
                "type": "relationship",
                "source": said.source,
                "target": said.target,
                "keywords": list(said.keywords),
                "description": said.description,
                "strength": said.strength,
                **where,
            }
