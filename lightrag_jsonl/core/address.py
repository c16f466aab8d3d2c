"""Where an index is: in a folder, or in a schema of a PostgreSQL database."""

from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

from lightrag_jsonl.core.errors import ConfigError

SCHEMES = ("postgresql", "postgres")
DEFAULT_INDEX = "lightrag"
LONGEST_INDEX = 63  # bytes of a name in PostgreSQL
SECRETS = ("password", "sslpassword")
GRAPHS = ("memory", "database")


class DatabaseURL:
    """`postgresql://user@host/database?index=name`, whose schema `index` holds the index.

    With `&graph=database` searches look up neighbours there, with the graph not kept in memory. All
    else is libpq's connection URI, kept in `uri`. As a text, and in JSON, it is shown without its
    password.
    """

    def __init__(self, uri: str, index: str, shown: str, graph: str = GRAPHS[0]) -> None:
        self.uri, self.index, self.graph, self._shown = uri, index, graph, shown

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"DatabaseURL({self._shown!r})"


Address: TypeAlias = Path | DatabaseURL


def as_address(given: str | Address) -> Address:
    """The folder or the database that is meant; `ConfigError` for a name that no index may have."""
    if not isinstance(given, str) or not given.startswith(tuple(f"{one}://" for one in SCHEMES)):
        return given if isinstance(given, DatabaseURL) else Path(given)
    url = urlsplit(given)
    query = parse_qsl(url.query, keep_blank_values=True)
    index = dict(query).get("index", DEFAULT_INDEX)
    graph = dict(query).get("graph", GRAPHS[0])
    login, at, host = url.netloc.rpartition("@")
    public = [(name, value) for name, value in query if name not in SECRETS]
    rest = [(name, value) for name, value in query if name not in ("index", "graph")]
    shown = url._replace(
        netloc=login.partition(":")[0] + at + host, query=urlencode(public, safe="/")
    )
    reserved = index.startswith("pg_") or index in ("public", "information_schema")
    if not index.strip() or "\0" in index or reserved or len(index.encode()) > LONGEST_INDEX:
        raise ConfigError(
            f"?index={index!r} cannot be the name of an index: it must be a schema of its own, with "
            f"a name of at most {LONGEST_INDEX} bytes that does not begin with pg_"
        )
    if graph not in GRAPHS:
        raise ConfigError(f"?graph={graph!r} must be one of {', '.join(GRAPHS)}")
    return DatabaseURL(url._replace(query=urlencode(rest)).geturl(), index, shown.geturl(), graph)
