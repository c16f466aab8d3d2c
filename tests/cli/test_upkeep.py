"""doctor, cache, vacuum, reembed: whether an index is sound, and keeping it so."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.doctor import CORE, check_index
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.derived import derived_problems
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from tests.cli.conftest import Run, RunJson
from tests.conftest import CHECKOUT
from tests.indexing.kit import damage, view

SECRET = "sk-never-shown"

DAMAGES = [
    ("DELETE FROM documents WHERE name = 'curie'", "chunks have no document"),
    ("DELETE FROM pages", "chunks are not what their page has"),
    ("UPDATE chunks SET start = start + 1", "chunks are not what their page has"),
    ("DELETE FROM chunks WHERE id = 1", "entity claims have no chunk"),
    ("UPDATE documents SET state = 'failed'", "another state than their chunks"),
    ("DELETE FROM entities WHERE id = 1", "entity claims have no entity"),
    ("DELETE FROM relations WHERE id = 1", "relation claims have no relation"),
    ("UPDATE entities SET mentions = mentions + 1 WHERE id = 2", "count other claims"),
    ("UPDATE relations SET mentions = 9 WHERE id = 1", "relations count other claims"),
    ("DELETE FROM relation_mentions WHERE relation = 1", "relations count other claims"),
    ("UPDATE relations SET low = high, high = low WHERE id = 1", "relations lack an end"),
    ("UPDATE entities SET embedding = NULL WHERE id = 1", "entities have no vector"),
    ("DELETE FROM vectors WHERE block = 1", "have no vector"),
    ("UPDATE vectors SET data = x'00000000' WHERE block = 1", "another length"),
    ("UPDATE vectors SET digests = x'00' WHERE block = 1", "rows of vectors are damaged"),
    ("UPDATE vectors SET places = places & ~1 WHERE block = 1", "rows of vectors are damaged"),
    ("DELETE FROM vector_keys WHERE id = 17", "1 vectors are not found by their texts"),
    ("UPDATE vector_keys SET id = id + 1 WHERE id = 17", "1 texts find no vector, or another's"),
    ("INSERT INTO rejections VALUES (99, 1, '', 'schema', '')", "rejections have no chunk"),
    ("INSERT INTO trace_events VALUES ('x', 1, '{}')", "events have no trace"),
    ("DELETE FROM settings WHERE key = 'dim'", "setting dim is not recorded"),
    ("INSERT INTO chunk_terms (chunk_terms) VALUES ('delete-all')", "the full text has 0 chunks"),
    ("INSERT INTO chunk_terms (rowid, terms) VALUES (77, 'x')", "the full text has 3 chunks"),
    ("UPDATE entities SET name = 'Nobody' WHERE id = 1", "entities differ from their claims"),
    ("UPDATE entities SET type = 'x' WHERE id = 1", "entities differ from their claims"),
    ("UPDATE entities SET tally = '[{},{},{}]' WHERE id = 1", "differ from their claims"),
    ("UPDATE relations SET reversed = 1 - reversed WHERE id = 1", "relations differ from"),
    ("UPDATE entity_mentions SET name = 'Other' WHERE id = 1", "another entity or relation"),
    ("UPDATE entities SET created_at = 5 WHERE id = 1", "entities differ (created_at)"),
]


def test_a_sound_index(run: Run, run_json: RunJson, kb: Path) -> None:
    """doctor finds nothing, says what will be used, and ends well."""
    found = run_json("doctor", "-w", kb)

    assert found["problems"] == []
    assert found["index"] is True and found["llm"] == "none"
    assert found["embedder"].startswith("hash")
    assert "sound" in run("doctor", "-w", kb).stdout


@pytest.mark.parametrize(("statement", "problem"), DAMAGES, ids=[one[0] for one in DAMAGES])
def test_doctor_finds_damage(kb: Path, statement: str, problem: str) -> None:
    """Whatever does not fit together in the database is named."""
    damage(kb, statement)
    found = " | ".join(check_index(kb))

    assert all(part in found for part in problem.rstrip(")").split(" ("))


DERIVED = [
    "DELETE FROM vectors",
    "INSERT INTO chunk_terms (chunk_terms) VALUES ('delete-all')",
    "UPDATE documents SET state = 'failed'",
    "DELETE FROM entities WHERE id = 1",
    "DELETE FROM relations WHERE id = 1",
    "UPDATE entities SET embedding = NULL WHERE id = 1",
    "UPDATE vectors SET data = x'00000000' WHERE block = 1",
    "UPDATE vectors SET digests = x'00' WHERE block = 1",
    "UPDATE vectors SET places = places & ~1 WHERE block = 1",
    "UPDATE vector_keys SET id = id + 1 WHERE id = 17",
    "INSERT INTO chunk_terms (rowid, terms) VALUES (77, 'x')",
    "INSERT INTO chunks SELECT 99, 'stray', 99, position, page, start, stop, text, tokens, "
    "created_at, NULL, state, report FROM chunks WHERE id = 1",
    "UPDATE entities SET created_at = 5 WHERE id = 1",
]


@pytest.mark.parametrize("statement", DERIVED)
def test_a_repair_leaves_the_index_as_it_was_before_the_damage(
    run: Run, kb: Path, statement: str
) -> None:
    """To the last term that is counted, where the documents and their claims are there."""
    before = view(kb, times=True)
    damage(kb, statement)
    healed = run("doctor", "-w", kb, "--repair")

    assert healed.exit_code == 0, healed.output
    assert check_index(kb) == [] and view(kb, times=True) == before


def test_a_file_that_is_no_database(run: Run, tmp_path: Path) -> None:
    """What cannot be opened is a problem like the others, not a crash."""
    (tmp_path / "index.sqlite").write_bytes(b"no database at all" * 100)
    result = run("doctor", "-w", tmp_path)

    assert result.exit_code == 1
    assert "problem: " in result.stdout and "damaged" in result.stdout


def test_doctor_without_an_index(run: Run, tmp_path: Path) -> None:
    """No index is no problem, and none is made."""
    result = run("doctor", "-w", tmp_path / "none")

    assert result.exit_code == 0
    assert "none yet" in result.stdout
    assert not (tmp_path / "none").exists()


def test_doctor_never_shows_a_key(run: Run, kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says whether a key is set, not which."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    shown = run("doctor", "-w", kb).stdout + run("doctor", "-w", kb, "--json").stdout

    assert SECRET not in shown
    assert "OPENAI_API_KEY  set" in shown


def test_doctor_knows_every_dependency() -> None:
    """The packages it looks for are those of pyproject.toml."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    names = {line.partition(">")[0].strip() for line in project["project"]["dependencies"]}

    assert names == set(CORE)


def test_derived_indexes_that_lag_are_found(kb: Path) -> None:
    """Graph and vectors in memory are compared with the database, row by row."""
    with contextlib.closing(Database(kb)) as database:
        keeper = SnapshotKeeper(database)
        with keeper.snapshot() as snapshot:
            assert derived_problems(snapshot) == []
        damage(kb, "UPDATE relations SET weight = weight + 1 WHERE id = 1")
        damage(kb, "DELETE FROM entities WHERE id = 1")
        damage(kb, "UPDATE chunks SET embedding = 1")
        with keeper.snapshot() as snapshot:
            found = " | ".join(derived_problems(snapshot))

    assert "other entities" in found and "other relations" in found
    assert "entity vectors" in found and "chunk vectors" in found


def test_aliases_are_no_damage(kb: Path) -> None:
    """Merged entities are sound: the check follows the aliases, as the fold does."""
    with LightRAG(kb) as rag:
        rag.merge_entities(["Marie Curie", "Pierre Curie"], into="The Curies")

    assert check_index(kb) == []


def test_cache_stats_and_clear(run: Run, run_json: RunJson, kb: Path) -> None:
    """Vectors in use stay; the numbers are told before and after."""
    stats = run_json("cache", "stats", "-w", kb)
    assert stats["completions"] == 0 and stats["embeddings"] > 0

    assert run("cache", "clear", "-w", kb).exit_code == 0
    assert run_json("cache", "stats", "-w", kb)["unused_embeddings"] == 0
    assert check_index(kb) == []
    assert "vectors" in run("cache", "stats", "-w", kb).stdout


def test_vacuum(run: Run, run_json: RunJson, kb: Path) -> None:
    """Space is given back, and everything is still there."""
    run("delete", "-w", kb, "curie")

    assert "bytes" in run_json("vacuum", "-w", kb)
    assert run("vacuum", "-w", kb).exit_code == 0
    assert check_index(kb) == []


def test_reembed_is_remembered(run: Run, run_json: RunJson, kb: Path) -> None:
    """After a move to another embedder, queries use it without being told."""
    with LightRAG(kb) as rag:
        rag.reembed(Lengths())
    damage(kb, "DELETE FROM settings WHERE key = 'cli.embedder'")
    assert run("query", "-w", kb, "Who?").exit_code == 1

    moved = run_json("reembed", "-w", kb, "--embedder", "hash")
    assert moved["embedder"].startswith("hash") and moved["texts"] > 0
    assert run("query", "-w", kb, "Where was Marie Curie born?").exit_code == 0
    assert check_index(kb) == []


class Lengths:
    """An embedder of one's own."""

    name = "lengths"
    dim = 2

    async def embed(self, texts: Any, *, kind: str) -> Any:
        """Two numbers for each text."""
        import numpy as np

        rows = np.array([[1.0, len(text)] for text in texts], np.float32).reshape(-1, 2)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)
