"""Merges of names, and the aliases that entities state."""

from collections.abc import Collection

from lightrag_jsonl.storage.rows import Aliases, Names, RowIds
from lightrag_jsonl.storage.tables.base import Tables, WritableTables, by_name

CLAIMS_AROUND = """WITH RECURSIVE own (key) AS (SELECT key FROM entities WHERE id {among} UNION
    SELECT a.key FROM own JOIN aliases a ON a.target = own.key)
    SELECT entity, key FROM stated_aliases WHERE entity {among} OR key IN (SELECT key FROM own)
    ORDER BY entity, key"""


class AliasReads(Tables):
    """Reads merges of names and aliases."""

    def entity_ids(self, keys: Collection[str]) -> dict[str, int]:
        """Row ids of the entities with these name keys; merged names count, too."""
        ends = {key: key for key in keys}
        unread = set(keys)
        test = f"target <> key AND key {self.dialect.among()}"
        while unread:
            statement = f"SELECT key, target FROM aliases WHERE {test}"
            targets: dict[str, str] = dict(self._execute(statement, self.dialect.array(unread)))
            ends = {key: targets.get(end, end) for key, end in ends.items()}
            unread = set(targets.values())
        ids: dict[str, int] = dict(self._select("key, id", "entities", "key", set(ends.values())))
        return {key: ids[end] for key, end in ends.items() if end in ids}

    def alias_claims(self, *, entities: RowIds = None, keys: Names = None) -> list[tuple[int, str]]:
        """Which entity states which alias, as (row id, name key): all claims, or the claims of some
        keys, or those by some entities or about the names of these.
        """
        if entities is not None:
            statement = CLAIMS_AROUND.format(among=self.dialect.among("?1"))
            cursor = self._execute(statement, self.dialect.array(entities))
        else:
            cursor = self._select("entity, key", "stated_aliases", "key", keys, order="entity, key")
        return [(entity, key) for entity, key in cursor]

    def aliases(self) -> Aliases:
        """The merges of names."""
        links: dict[str, str] = {}
        displays: dict[str, str] = {}
        statement = "SELECT key, target, display FROM aliases ORDER BY key"
        for row in by_name(self._execute(statement)):
            if row.target != row.key:
                links[row.key] = row.target
            if row.display is not None:
                displays[row.target] = row.display
        return Aliases(links, displays)


class AliasWrites(AliasReads, WritableTables):
    """Writes merges of names."""

    def put_aliases(self, aliases: Aliases) -> None:
        """Store merges of names in place of all earlier merges."""
        targets = dict(aliases.links)
        for key in sorted(aliases.displays.keys() - set(aliases.links.values())):
            targets.setdefault(key, key)
        self._delete_all("aliases")
        rows = [
            {"key": key, "target": target, "display": aliases.displays.get(target)}
            for key, target in targets.items()
        ]
        self._insert("aliases", rows)
        self.changed = True
