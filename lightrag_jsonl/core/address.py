"""Where an index is: in a folder, or in a schema of a PostgreSQL database."""

from pathlib import Path
from typing import TypeAlias
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from lightrag_jsonl.core.errors import ConfigError

URL_PREFIXES = ("postgresql://", "postgres://")
DEFAULT_INDEX = "lightrag"
LONGEST_INDEX = 63  # bytes of a name in PostgreSQL
SECRETS = ("password", "sslpassword")
GRAPHS = ("memory", "database")


class DatabaseURL:
    """`postgresql://user@host/database?index=name`: the schema `index` of a database.

    With `&graph=database`, searches look up neighbours in the database instead of a graph in memory.
    The rest is libpq's connection URI, in `uri`. The text and the JSON of a `DatabaseURL` leave out
    the password.
    """

    def __init__(
        self,
        uri: str,
        index: str,
        *,
        without_password: str,
        graph: str = GRAPHS[0],
        passwords: tuple[str, ...] = (),
    ) -> None:
        self.uri = uri
        self.index = index
        self.graph = graph
        self._without_password = without_password
        self._passwords = passwords

    def without_passwords(self, message: str) -> str:
        """A message in which no password of this address stands."""
        for password in sorted(self._passwords, key=len, reverse=True):
            message = message.replace(password, "***")
        return message

    def beside(self, index: str) -> "DatabaseURL":
        """The address of another index in the same database."""
        without_password = f"{self._without_password.partition('?')[0]}?index={index}"
        return DatabaseURL(
            self.uri,
            index,
            without_password=without_password,
            graph=self.graph,
            passwords=self._passwords,
        )

    def __str__(self) -> str:
        return self._without_password

    def __repr__(self) -> str:
        return f"DatabaseURL({self._without_password!r})"


Address: TypeAlias = Path | DatabaseURL


def as_address(address: str | Address) -> Address:
    """The folder or the database of an address; `ConfigError` for a reserved or too long name."""
    if isinstance(address, DatabaseURL):
        return address
    if not isinstance(address, str) or not address.startswith(URL_PREFIXES):
        return Path(address)
    url = _split(address.strip())
    query = parse_qsl(url.query, keep_blank_values=True)
    index = dict(query).get("index", DEFAULT_INDEX)
    graph = dict(query).get("graph", GRAPHS[0])
    login, at, host = url.netloc.rpartition("@")
    public = [(name, value) for name, value in query if name not in SECRETS]
    for_libpq = [(name, value) for name, value in query if name not in ("index", "graph")]
    uri = urlunsplit((url.scheme, url.netloc, url.path, urlencode(for_libpq), url.fragment))
    public_host = login.partition(":")[0] + at + host
    without_password = urlunsplit(
        (url.scheme, public_host, url.path, urlencode(public, safe="/"), url.fragment)
    )
    reserved = index.startswith("pg_") or index in ("public", "information_schema")
    if not index.strip() or "\0" in index or reserved or len(index.encode()) > LONGEST_INDEX:
        raise ConfigError(
            f"?index={index!r} cannot be the name of an index: it must be a schema of its own, with "
            f"a name of at most {LONGEST_INDEX} bytes that does not begin with pg_"
        )
    if graph not in GRAPHS:
        raise ConfigError(f"?graph={graph!r} must be one of {', '.join(GRAPHS)}")
    passwords = [login.partition(":")[2], *(value for name, value in query if name in SECRETS)]
    return DatabaseURL(
        uri,
        index,
        without_password=without_password,
        graph=graph,
        passwords=tuple([form for text in passwords for form in (text, unquote(text)) if text]),
    )


def _split(address: str) -> SplitResult:
    """The parts of a URL; `ConfigError`, without the URL, if a password may reach into other parts."""
    try:
        url = urlsplit(address)
        _ = url.port
        is_clear = url.netloc.count("@") <= 1 and "@" not in url.path + url.fragment
        is_clear = is_clear and not any(
            "@" in part.partition("=")[0] for part in url.query.split("&")
        )
    except ValueError:
        is_clear = False
    if not is_clear:
        raise ConfigError(
            "this is not the address of a PostgreSQL database; it looks like "
            "postgresql://user:password@host/database, and in a password / ? # @ : [ ] and % are written "
            "as %2F %3F %23 %40 %3A %5B %5D and %25"
        )
    return url
