"""Settings, and commits: the rows that each visible change touched."""

from collections.abc import Collection, Mapping

from msgspec.json import decode as parse

from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.tables.base import (
    TABLE_NAMES,
    Tables,
    WritableTables,
    json_text,
    only_column,
)

COMMITS_KEPT = 1_000  # an index in memory that is further behind is loaded anew
TOUCHED_LIMIT = 10_000  # rows of one commit; if it touched more, all is loaded anew, too


class SettingReads(Tables):
    """Reads settings and commits."""

    @property
    def generation(self) -> int:
        """The number of the last visible change of documents or graph."""
        statement = "SELECT coalesce(max(generation), 0) FROM commits"
        (generation,) = only_column(self.dialect.execute(statement))
        return int(generation)

    def purge_marks(self) -> set[str]:
        """The marks that purged documents have left."""
        return set(only_column(self.dialect.execute("SELECT digest FROM purge_marks")))

    def settings(self) -> dict[str, str]:
        """Settings of the index, by name."""
        return dict(self.dialect.execute("SELECT name, value FROM settings ORDER BY name"))

    def touched_since(self, generation: int) -> dict[Kind, set[int]] | None:
        """The rows touched after a generation; None if any row may have been."""
        statement = "SELECT touched FROM commits WHERE generation > ?"
        commits = only_column(self.dialect.execute(statement, generation))
        if generation < 0 or len(commits) != self.generation - generation or None in commits:
            return None
        touched: dict[Kind, set[int]] = {kind: set() for kind in TABLE_NAMES}
        for commit in commits:
            for kind, rows in zip(TABLE_NAMES, parse(commit), strict=True):
                touched[kind].update(rows)
        return touched


class SettingWrites(SettingReads, WritableTables):
    """Writes settings and commits."""

    def put_settings(self, settings: Mapping[str, str]) -> None:
        """Record settings of the index."""
        rows = [{"name": name, "value": value} for name, value in settings.items()]
        self._put("settings", rows, key="name")

    def put_purge_marks(self, marks: Collection[str]) -> None:
        """Remember that documents were purged."""
        rows = [{"digest": mark} for mark in sorted(set(marks) - self.purge_marks())]
        self._insert("purge_marks", rows)

    def delete_purge_marks(self, marks: Collection[str]) -> None:
        """Forget that documents were purged."""
        self._delete("purge_marks", "digest", list(marks))

    def record_commit(self) -> None:
        """Note the touched rows, if documents, graph or vectors were changed."""
        touched = [sorted(rows) for rows in self.touched.values()]
        if not any(touched) and not self.changed:
            return
        count = sum(len(rows) for rows in touched)
        generation = self.generation + 1
        commit = {
            "generation": generation,
            "touched": json_text(touched) if count <= TOUCHED_LIMIT else None,
        }
        self._insert("commits", [commit])
        self.dialect.execute("DELETE FROM commits WHERE generation <= ?", generation - COMMITS_KEPT)
