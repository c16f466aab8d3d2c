"""Communities and lists of an index in PostgreSQL are those of the same index in a file."""

from collections.abc import Callable
from pathlib import Path

from lightrag_jsonl import Document
from tests.kit import entity, index, relation

Url = Callable[[object], str]


async def test_communities_are_those_of_a_file(tmp_path: Path, url: Url) -> None:
    """The same documents have the same communities in both stores, after a deletion, too."""
    listed = []
    for place in (tmp_path / "index", url(tmp_path)):
        async with index(place) as rag:
            for number, names in enumerate(
                (("Petrel", "Ostrom"), ("周师傅", "熔炉"), ("Hedda", "Osric"))
            ):
                records = [entity(names[0]), entity(names[1]), relation(*names)]
                text = f"{names[0]} met {names[1]}. １２ 😀"
                await rag.insert_records(Document(text, id=f"d{number}"), records)
            await rag.delete("d2")
            listed.append(await rag.communities.list())
    assert listed[0] == listed[1]
    assert {"Petrel", "周师傅"} <= {name for part in listed[0] for name in part.entities}
