"""The engine of an index: single steps for programs, with the parts that the facades use."""

import ast
import json
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import lightrag_jsonl
from lightrag_jsonl import (
    AsyncLightRAG,
    ConfigError,
    Document,
    IndexOptions,
    LightRAG,
    LLMError,
    QueryParam,
    StorageError,
)
from lightrag_jsonl.rag.engine import Engine
from lightrag_jsonl.rag.engine_opening import open_engine
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.testing import HashEmbedder, Request, ScriptedLLM
from tests.kit import index, read_names, view

PACKAGE = Path(lightrag_jsonl.__file__).parent
NAMED_TUPLE_METHODS = ("_asdict", "_make", "_replace")
TEXT = "居里夫人发现了镭 １２ 🙂. Marie Curie discovered radium in Paris."


async def test_an_engine_alone_indexes_and_retrieves(tmp_path: Path) -> None:
    """No facade is needed: documents go in through `indexing`, a question through `retrieval`."""
    engine = open_engine(tmp_path / "kb")
    failures: list[Any] = []
    sources = [Document(TEXT, id="curie"), tmp_path / "missing.txt"]
    report = await engine.indexing.insert(
        engine.pending_documents(sources, failures), progress=False
    )
    context = await engine.retrieval.retrieve("Marie Curie", QueryParam(mode="naive"))
    engine.close()

    assert report.documents == ("curie",)
    assert [Path(failure.document_id).name for failure in failures] == ["missing.txt"]
    assert "radium" in context.prompt
    with pytest.raises(StorageError, match="closed"), engine.store.view():
        pass


async def test_an_index_and_its_engine_are_one(tmp_path: Path) -> None:
    """What goes in through the engine is seen by the facade, which closes the engine."""
    async with AsyncLightRAG(tmp_path / "kb") as rag:
        assert isinstance(rag.engine, Engine)
        pending = rag.engine.pending_documents(TEXT, [])
        await rag.engine.indexing.insert(pending, progress=False)
        status = await rag.status()
    assert status.documents == {"done": 1}
    with pytest.raises(StorageError, match="closed"), rag.engine.store.view():
        pass


def test_the_store_of_an_engine_serves_any_thread(tmp_path: Path) -> None:
    """A blocking index has its engine, too: its store in every thread, all else through `run`."""
    counts: list[int] = []
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(TEXT, progress=False)

        def count_chunks() -> None:
            with rag.engine.store.view() as view:
                counts.append(view.counts().chunks)

        async def count_in_loop(index: AsyncLightRAG) -> int:
            counts = await read(index.engine.store, lambda view: view.counts())
            return counts.chunks

        threads = [threading.Thread(target=count_chunks) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert rag.run(count_in_loop) == 1
    assert counts == [1] * 4


async def test_pipelines_follow_a_new_embedder(tmp_path: Path) -> None:
    """After `reembed`, indexing and questions use the new embedder; the client of the model stays."""
    smaller = HashEmbedder(dim=64)
    async with AsyncLightRAG(tmp_path / "kb") as rag:
        await rag.insert(TEXT, progress=False)
        client = rag.engine.client
        await rag.admin.reembed(smaller, progress=False)
        await rag.insert("Pierre Curie taught in Paris.", progress=False)
        context = await rag.retrieve("Pierre Curie", mode="naive")
        assert rag.engine.embedder is smaller
        assert rag.engine.client is client
        assert (await rag.status()).embedder == smaller.name
    assert "taught" in context.prompt


async def test_another_model_in_the_pipelines_leaves_the_index_alone(tmp_path: Path) -> None:
    """`client_for` and `indexing_for` work beside the engine's own client, which asks its own model."""
    own_llm = ScriptedLLM([entity("Ann")], name="own")
    second_llm = ScriptedLLM([entity("Bob")], name="second")
    async with AsyncLightRAG(tmp_path / "kb", llm=own_llm) as rag:
        engine = rag.engine
        indexing = engine.indexing_for(engine.client_for(second_llm))
        await indexing.insert(engine.pending_documents("Bob met Ann.", []), progress=False)
        assert own_llm.requests == []
        assert (await rag.entities.get("Bob")).type == "person"
        await rag.insert("Ann met Bob.", progress=False)
        assert len(own_llm.requests) == len(second_llm.requests) == 1


def test_a_clock_must_return_seconds(tmp_path: Path) -> None:
    """A clock in milliseconds is named as the fault before anything is stored."""
    engine: Engine = open_engine(tmp_path / "kb", clock=lambda: 1_700_000_000_000.0)
    with pytest.raises(ConfigError, match="seconds since 1970"):
        list(engine.pending_documents(TEXT, []))
    engine.close()


@pytest.mark.slow
def test_no_room_uses_private_names_of_another() -> None:
    """A room is a folder or a module at the top. Where it uses a private attribute of an object that
    is not `self`, the attribute is its own, another package's, or a public method of named tuples.
    """
    owners: defaultdict[str, set[str]] = defaultdict(set)
    uses: list[tuple[str, str, str]] = []
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        room = place.parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                owners[node.name].add(room)
            elif isinstance(node, ast.Attribute) and is_private(node.attr):
                if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                    owners[node.attr].add(room)
                elif node.attr not in NAMED_TUPLE_METHODS:
                    uses.append((node.attr, room, f"{place}:{node.lineno}"))
    foreign = [
        f"{line} {name}" for name, room, line in uses if owners[name] and room not in owners[name]
    ]

    assert len(owners) > 100
    assert foreign == []


def entity(name: str) -> str:
    """A model's answer with one record."""
    record = {"type": "entity", "name": name, "entity_type": "person", "description": "A person."}
    return json.dumps(record)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


async def test_extracting_stores_nothing_and_gives_records_to_insert(tmp_path: Path) -> None:
    """Neither the text nor the model's answer is kept; the records give the graph of an insert."""
    text = "".join(f"Marie Curie met Person{n} in Paris １２ 🙂. " for n in range(40))
    document = Document(text, id="curie", title="居里夫人", date="1904-02-01")
    options = IndexOptions(chunk_tokens=200, chunk_overlap=0, max_gleanings=0)
    llm = ScriptedLLM(read_names)
    async with index(tmp_path / "a", llm, options=options) as rag:
        extractions = await rag.extract(document)
        asked = len(llm.requests)
        assert len(extractions) == asked > 1
        assert all("1904-02-01" in request.question for request in llm.requests)
        assert (await rag.status()).documents == {}
        assert not await rag.entities.list()

        await rag.insert(document)
        assert len(llm.requests) == 2 * asked
    records = [
        record
        for number, extraction in enumerate(extractions)
        for record in extraction.as_records(number)
    ]
    async with index(tmp_path / "b", options=options) as rag:
        report = await rag.insert_records(document, records)
        assert report.extraction.rejections == {}

    graphs = [(view(folder).entities, view(folder).relations) for folder in tmp_path.iterdir()]
    assert graphs[0] == graphs[1] and graphs[0][0]


async def test_an_error_that_would_stop_every_chunk_is_raised_by_extracting(tmp_path: Path) -> None:
    """With its cost; a chunk that fails alone has its error, and the others are read."""
    answers = iter([LLMError("odd text"), LLMError("odd text"), LLMError("odd text")])

    def respond(request: Request) -> str:
        error = next(answers, None)
        if error is not None:
            raise error
        return read_names(request)

    options = IndexOptions(chunk_tokens=20, chunk_overlap=0, max_gleanings=0)
    text = "Marie Curie discovered radium in Paris. " * 9
    async with index(tmp_path / "a", ScriptedLLM(respond), options=options) as rag:
        states = [extraction.state for extraction in await rag.extract(text)]
        assert {"failed", "ok"} == set(states)

    def refuse(request: Request) -> str:
        raise LLMError("wrong key", permanent=True)

    async with index(tmp_path / "b", ScriptedLLM(refuse), options=options) as rag:
        with pytest.raises(LLMError, match="wrong key"):
            await rag.extract(text)


def test_extracting_needs_no_model(tmp_path: Path) -> None:
    """Language rules read the text, also through the blocking facade."""
    with LightRAG(tmp_path) as rag:
        (extraction,) = rag.extract("Marie Curie discovered radium in Paris.")
    assert "Marie Curie" in {entity.name for entity in extraction.entities}


async def test_merged_records_are_what_an_index_would_hold(tmp_path: Path) -> None:
    """Of several texts, one with two chunks; the index itself stays empty, and no model is asked."""
    texts = [
        "".join(f"Marie Curie met Person{n} in Paris １２ 🙂. " for n in range(20)),
        "MARIE CURIE and Person3 met in Warsaw. 居里夫人生于华沙。",
    ]
    options = IndexOptions(chunk_tokens=200, chunk_overlap=0, max_gleanings=0)
    llm = ScriptedLLM(read_names)
    async with index(tmp_path / "a", llm, options=options) as rag:
        pairs = []
        for text in texts:
            extractions = await rag.extract(text)
            records = [
                record
                for number, extraction in enumerate(extractions)
                for record in extraction.as_records(number)
            ]
            pairs.append((text, records))
        asked = len(llm.requests)
        wrong = ("Nothing.", [{"type": "entity"}])
        merged = await rag.entities.of_records([*pairs, wrong])
        assert len(llm.requests) == asked and (await rag.status()).documents == {}
    async with index(tmp_path / "b", options=options) as rag:
        for text, records in pairs:
            await rag.insert_records(text, records)
        entities = await rag.entities.list()
        relations = await rag.entities.relations()

    assert [(entity.name, entity.type, entity.description) for entity in merged.entities] == [
        (entity.name, entity.type, entity.description) for entity in entities
    ]
    assert [(relation.source, relation.weight) for relation in merged.relations] == [
        (relation.source, relation.weight) for relation in relations
    ]
    assert len(entities) > 1 and merged.rejections == {"schema": 1}


def test_records_are_merged_through_the_blocking_facade(tmp_path: Path) -> None:
    """The names of two texts, in two spellings, are one entity."""
    first = {
        "type": "entity",
        "name": "Ann Lee",
        "entity_type": "person",
        "description": "Ann Lee is a smith.",
    }
    second = {**first, "name": "ann lee", "description": "Ann Lee is old."}
    relation = {
        "type": "relationship",
        "source": "Ann Lee",
        "target": "Leeds",
        "description": "Ann Lee left Leeds.",
    }
    with LightRAG(tmp_path) as rag:
        merged = rag.entities.of_records(
            [("Ann Lee left Leeds.", [first, relation]), ("ann lee", [second])]
        )
    by_name = {entity.name: entity for entity in merged.entities}
    assert set(by_name) == {"Ann Lee", "Leeds"}
    assert by_name["Ann Lee"].description.count("\n") == 1
    assert [(edge.source, edge.target) for edge in merged.relations] == [("Ann Lee", "Leeds")]
