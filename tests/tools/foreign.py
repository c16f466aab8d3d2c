"""A small working directory, written as LightRAG and nano-graphrag write theirs."""

import json
from collections.abc import Iterable
from pathlib import Path

import networkx as nx

TEXT = "Scrooge kept a counting house.\fMarley was dead. 张骞出使西域。"


class Foreign:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.graph = nx.Graph()
        self.stores: dict[str, dict[str, object]] = {"full_docs": {}, "text_chunks": {}}

    def document(self, id: str, text: str, chunks: Iterable[str]) -> None:
        self.stores["full_docs"][id] = {"content": text}
        for order, chunk in enumerate(chunks):
            self.chunk(f"{id}-{order}", id, order, chunk)

    def chunk(self, id: str, document: str, order: int, text: str) -> None:
        entry = {"content": text, "chunk_order_index": order, "full_doc_id": document}
        self.stores["text_chunks"][id] = entry

    def node(self, name: str, chunks: str, description: str = "") -> None:
        """One node; parts are joined by <SEP>."""
        self.graph.add_node(name, entity_type="person", description=description, source_id=chunks)

    def edge(self, source: str, target: str, chunks: str, weight: float = 1.0) -> None:
        fields = {"weight": weight, "description": "They met.", "source_id": chunks}
        self.graph.add_edge(source, target, **fields)

    def write(self) -> Path:
        self.folder.mkdir(exist_ok=True)
        nx.write_graphml(self.graph, self.folder / "graph_chunk_entity_relation.graphml")
        for name, store in self.stores.items():
            text = json.dumps(store, ensure_ascii=False)
            (self.folder / f"kv_store_{name}.json").write_text(text, encoding="utf-8")
        return self.folder


def small(folder: Path) -> Foreign:
    """One document of two chunks and two connected nodes."""
    made = Foreign(folder)
    made.document("doc-a", TEXT, ["Scrooge kept a counting house.", "Marley was dead."])
    made.node('"SCROOGE"', "doc-a-0<SEP>doc-a-1", '"He kept a house."<SEP>"He was there."')
    made.node('"MARLEY"', "doc-a-1", '"Marley was dead."')
    made.edge('"SCROOGE"', '"MARLEY"', "doc-a-1", 8.0)
    return made
