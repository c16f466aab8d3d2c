"""Moves an index to another embedder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.indexing.embedding import PassageEmbedder, Texts
from lightrag_jsonl.indexing.merging import entity_text, relation_text
from lightrag_jsonl.storage.store import Reader, Store, Transaction, read, write

AT_ONCE = 512  # texts embedded and stored, or vectors moved


async def reembed(
    store: Store,
    embedder: PassageEmbedder,
    settings: Mapping[str, str],
    *,
    relations: bool,
    progress: Callable[[int, int], None],
) -> int:
    """Move the index to another embedder; the old vectors are used until all new ones are stored.

    New vectors are kept as they come, so an interrupted move goes on where it stopped. `progress`
    is called with (done, all). Returns the number of texts. Raises `ConfigError` if the new
    embedder has the name of the old one but vectors of another length.
    """
    recorded = await read(store, lambda reader: reader.settings())
    if recorded.get("embedder") == settings["embedder"] and recorded.get("dim") != settings["dim"]:
        raise ConfigError(
            f"the index has vectors of {recorded.get('dim')} dimensions by "
            f"{settings['embedder']!r}; give the embedder of {settings['dim']} another name"
        )
    texts = await read(store, partial(_all_texts, relations))
    digests = {kind: embedder.digests(rows) for kind, rows in texts.items()}
    distinct = {key: text for rows in digests.values() for key, text in rows.values()}
    items = list(distinct.items())
    for start in range(0, len(items), AT_ONCE):
        some = dict(items[start : start + AT_ONCE])
        kept = await read(store, partial(_kept_vectors, some))
        missing = {key: text for key, text in some.items() if key not in kept}
        await embedder.make(missing, lambda done, known: None, keep=True)
        progress(start + len(some), len(items))

    def switch(writer: Transaction) -> None:
        for kind, rows in digests.items():
            moved = [(row, digest) for row, (digest, _) in rows.items()]
            for start in range(0, len(moved), AT_ONCE):
                some = moved[start : start + AT_ONCE]
                vectors = writer.cached_vectors({digest for _, digest in some})
                writer.put_vectors(kind, {row: (key, vectors[key]) for row, key in some})
        writer.delete_cached_vectors(distinct)
        writer.put_settings(settings)

    await write(store, switch)
    return len(distinct)


def _kept_vectors(digests: Collection[bytes], reader: Reader) -> Collection[bytes]:
    return reader.cached_vectors(digests).keys()


def _all_texts(all_relations: bool, reader: Reader) -> Texts:
    """The texts to embed for every row that needs a vector or has one."""
    relations = reader.relation_rows()
    wanted = relations if all_relations else reader.vector_digests("relation", relations)
    chunks = reader.document_chunks([document.id for document in reader.documents()])
    return {
        "entity": {id: entity_text(row) for id, row in reader.entity_rows().items()},
        "relation": {id: relation_text(relations[id]) for id in wanted},
        "chunk": {row: chunk.text for row, chunk in chunks.items()},
    }
