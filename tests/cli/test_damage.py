"""doctor and doctor --repair over an index that somebody damaged by hand."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.indexing.kit import damage

SWAPPED = (  # an index that SQLite finds to be in another order than its table
    "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = "
    "'CREATE INDEX chunks_document ON chunks (document DESC, position)' "
    "WHERE name = 'chunks_document'"
)

# What can be made anew from what was inserted and read, or asked for again.
DERIVED = [
    *(
        f"DROP TABLE {table}"
        for table in (
            "pending",
            "rejections",
            "entities",
            "relations",
            "earlier_summaries",
            "vectors",
            "vector_keys",
            "chunk_terms",
            "chunk_terms_data",
            "chunk_terms_docsize",
            "chunk_terms_config",
            "chunk_vocabulary",
            "completions",
            "answers",
            "traces",
            "trace_events",
            "commits",
        )
    ),
    *(
        f"DELETE FROM {table}"
        for table in (
            "entities",
            "vectors",
            "chunk_terms_data",
            "chunk_terms_docsize",
            "chunk_terms_config",
        )
    ),
    "DROP INDEX chunks_document",
    "DROP INDEX traces_started",
    "ALTER TABLE traces RENAME COLUMN mode TO way",
    "CREATE TRIGGER strange AFTER INSERT ON chunks BEGIN DELETE FROM entities; END",
    SWAPPED,
    "DELETE FROM settings WHERE key IN ('dim', 'embedder', 'language', 'tokenizer')",
    "UPDATE entities SET name = x'00ff' WHERE id = 1",
    "UPDATE entities SET type = CAST(x'ff41' AS TEXT)",
    "UPDATE entities SET tally = 'garbage'",
    "UPDATE entities SET mentions = 'many'",
    "UPDATE relations SET created_at = 9e999",
    "UPDATE relations SET keywords = '[[]]'",
    "UPDATE relations SET id = 9223372036854775807 WHERE id = 1",
    "INSERT INTO earlier_summaries VALUES ('entity', 1, 5, 1, 'Of claims that are not there.')",
    "INSERT INTO earlier_summaries VALUES ('relation', 999, 0, 0, 'Of nothing.')",
    "INSERT INTO earlier_summaries VALUES ('x', 1, 0, 0, x'00ff')",
    "UPDATE vectors SET places = 'x'",
    "UPDATE vectors SET block = -1 WHERE block = 1",
    "UPDATE vectors SET block = 0 WHERE block = 1",
    "UPDATE vectors SET block = 9223372036854775807 WHERE block = 1",
    "UPDATE vectors SET data = randomblob(length(data))",
    "UPDATE vectors SET data = CAST(replace(hex(zeroblob(length(data) / 8)), '0000', 'aaaa') AS BLOB)",
    "UPDATE chunks SET embedding = 'x'",
    "UPDATE commits SET touched = 'garbage'",
    "UPDATE chunk_terms_data SET block = x'00'",
    "UPDATE chunk_terms_config SET v = 99",
]

# What nothing else tells.
SOURCES = [
    "DROP TABLE aliases",
    "DROP TABLE documents",
    "ALTER TABLE documents DROP COLUMN title",
    "UPDATE settings SET value = 'garbage' WHERE key = 'dim'",
    "UPDATE settings SET value = x'00ff'",
    "UPDATE documents SET title = x'00ff' WHERE id = 1",
    "UPDATE documents SET metadata = 'garbage'",
    "UPDATE documents SET metadata = '[]'",
    "UPDATE documents SET source = CAST(x'eda080' AS TEXT)",
    "UPDATE pages SET text = x'00ff'",
    "UPDATE chunks SET state = 'fine'",
    "UPDATE chunks SET report = ''",
    "UPDATE entity_mentions SET entity = 'somebody' WHERE id = 1",
    "UPDATE entity_mentions SET place = 1.5",
    "UPDATE entity_mentions SET attributes = '[[]]'",
    "UPDATE relation_mentions SET strength = 9e999",
    "UPDATE relation_mentions SET keywords = '{}'",
]


def everything(kb: Path) -> list[str]:
    """All that the database holds, as SQL."""
    with contextlib.closing(sqlite3.connect(kb / "index.sqlite")) as connection:
        connection.text_factory = bytes
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return [
            repr(connection.execute(f"SELECT * FROM {name.decode()}").fetchall())
            for (name,) in sorted(names)
        ]


@pytest.mark.parametrize("script", DERIVED)
def test_what_is_derived_is_told_and_made_anew(run: Run, kb: Path, script: str) -> None:
    """Whatever was done to it: after a repair all is as it was, and the index can be used."""
    before = run("export", "-w", kb, "--format", "json").stdout
    damage(kb, script)

    sick = run("doctor", "-w", kb)
    healed = run("doctor", "-w", kb, "--repair")

    assert sick.exit_code == 1 and "problem: " in sick.stdout
    assert healed.exit_code == 0, healed.output
    assert run("export", "-w", kb, "--format", "json").stdout == before
    assert "radium" in run("query", "-w", kb, "What did Marie Curie discover?").stdout


@pytest.mark.parametrize("script", SOURCES)
def test_what_nothing_else_tells_is_named_and_left(run: Run, kb: Path, script: str) -> None:
    """A repair that cannot succeed changes nothing, and says what is lost and what to do."""
    damage(kb, script)
    before = everything(kb)

    sick = run("doctor", "-w", kb)
    tried = run("doctor", "-w", kb, "--repair")

    for result in (sick, tried):
        assert result.exit_code == 1
        assert "nothing tells what was there" in result.stdout
        assert "restore the folder from a copy" in result.stdout
    assert everything(kb) == before


def test_relations_whose_ends_are_lost_go(run: Run, kb: Path) -> None:
    """A claim of an entity that is gone takes along what leads to it, and the rest is sound."""
    damage(kb, "DELETE FROM entity_mentions WHERE name = 'Marie Curie'")

    healed = run("doctor", "-w", kb, "--repair")

    assert healed.exit_code == 0, healed.output
    with contextlib.closing(sqlite3.connect(kb / "index.sqlite")) as connection:
        left = {row[0] for row in connection.execute("SELECT name FROM entities")}
        ends = connection.execute("SELECT source, target FROM relation_mentions").fetchall()
    assert ends and left >= {name for pair in ends for name in pair}
    assert "Marie Curie" not in left


def test_chunks_of_another_id_are_told(run: Run, kb: Path) -> None:
    """A document that was renamed by hand: inserted under its old id, its chunks were there twice."""
    damage(kb, "UPDATE documents SET name = 'somebody' WHERE name = 'curie'")

    assert "chunks have another id" in run("doctor", "-w", kb).stdout


def test_a_format_of_somebody_else_is_refused(run: Run, kb: Path) -> None:
    """A number that was never one of ours."""
    damage(kb, "PRAGMA user_version = -1")

    assert "another program" in run("doctor", "-w", kb).stdout


UNREADABLE = [
    "UPDATE documents SET title = x'00ff' WHERE id = 1",
    "UPDATE documents SET metadata = 'garbage'",
    "UPDATE pages SET text = x'00ff'",
    "UPDATE chunks SET report = ''",
    "UPDATE chunks SET text = NULL",
    "UPDATE entity_mentions SET name = CAST(x'ff41' AS TEXT)",
    "UPDATE relation_mentions SET strength = 9e999",
]
COMMANDS = (  # what changes the index comes last
    "status",
    "documents",
    "query What?",
    "retrieve --mode naive radium",
    "explain show",
    "explain documents curie",
    "export --format json",
    "export --format jsonl",
    "entities duplicates",
    "retry",
    "resume",
    "vacuum",
    "reembed --embedder hash",
    "insert new.txt",
    "delete curie",
)


@pytest.mark.parametrize("script", UNREADABLE)
def test_no_command_fails_over_it_without_a_word(
    run: Run, kb: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command either does not need what is damaged, or says that it is and what to do."""
    monkeypatch.chdir(kb.parent)
    Path("new.txt").write_text("Marie Curie met Lise Meitner in Berlin.", encoding="utf-8")
    run("query", "-w", kb, "What did Marie Curie discover?")
    nullable = "UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'chunks'"
    damage(kb, f"PRAGMA writable_schema = 1; {nullable}")
    damage(kb, script)

    failed = 0
    for command in COMMANDS:
        result = run(*command.split(), "-w", kb)
        if result.exit_code:
            failed += 1
            assert "lightrag-jsonl doctor" in result.stderr, f"{command}: {result.output}"
            assert result.exit_code == 1
    assert failed


def test_settings_that_cannot_be_read_are_an_error(run: Run, kb: Path) -> None:
    """Whoever opens the index is told, and gets no traceback."""
    damage(kb, "UPDATE settings SET value = 'garbage' WHERE key = 'dim'")

    for command in (["status"], ["documents"], ["query", "What?"]):
        result = run(command[0], "-w", kb, *command[1:])
        assert result.exit_code == 1 and "its settings cannot be read" in result.stderr


def test_vectors_are_kept_where_their_length_is_not_recorded(run: Run, kb: Path) -> None:
    """They were paid for: a repair records what the index is opened with, and makes none anew."""
    damage(kb, "DELETE FROM settings WHERE key = 'dim'")
    healed = run("doctor", "-w", kb, "--repair")
    assert healed.exit_code == 0 and "dim recorded" in healed.stdout
    assert "0 vectors made anew" in healed.stdout
