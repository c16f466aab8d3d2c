"""Where an index is: in a folder, or in a schema of a PostgreSQL database; or where several are."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import SplitResult, quote, unquote, urlsplit

from lightrag_jsonl.core.errors import ConfigError

URL_PREFIXES = ("postgresql://", "postgres://")
# What looks like a URL: it is no folder, also if it is none of ours.
ANY_URL = re.compile(r"\s*(?:postgres(?:ql)?:|[a-z][a-z0-9+.-]*://)", re.IGNORECASE)
DEFAULT_INDEX = "lightrag"
LONGEST_INDEX = 63  # bytes of a name in PostgreSQL
SECRETS = ("password", "sslpassword")
GRAPHS = ("memory", "database")
LONGEST_TIMEOUT = 2**31 // 1_000 - 1  # seconds; PostgreSQL counts milliseconds in 32 bits
OWN_PARAMETERS = ("index", "graph", "pool_size", "lock_timeout", "statement_timeout")


@dataclass(frozen=True)
class ConnectionLimits:
    """The most connections of a process for reading, and the seconds that a statement may wait for a lock
    of a table or row, and may take; 0 for no limit.
    """

    pool_size: int = 16
    lock_timeout: float = 60.0
    statement_timeout: float = 0.0


class DatabaseURL:
    """`postgresql://user@host/database?index=name`: the schema `index` of a database.

    With `&graph=database`, searches look up neighbours in the database instead of a graph in memory;
    `pool_size`, `lock_timeout` and `statement_timeout` are the `limits`. The rest is libpq's connection
    URI, in `uri`; `whole` is the URL as given. The text and the JSON of a `DatabaseURL` leave out
    the password.
    """

    def __init__(
        self,
        uri: str,
        index: str,
        *,
        whole: str,
        without_password: str,
        graph: str = GRAPHS[0],
        limits: ConnectionLimits = ConnectionLimits(),
        parameters: tuple[str, ...] = (),
        passwords: tuple[str, ...] = (),
    ) -> None:
        self.uri = uri
        self.index = index
        self.whole = whole
        self.graph = graph
        self.limits = limits
        self.parameters = parameters  # the names of libpq's
        self._without_password = without_password
        self._passwords = passwords

    def without_passwords(self, message: str) -> str:
        """A message in which no password of this address stands."""
        for password in sorted(self._passwords, key=len, reverse=True):
            message = message.replace(password, "***")
        return message

    def beside(self, index: str) -> "DatabaseURL":
        """The address of another index in the same database."""
        query = urlsplit(self.whole).query
        kept_parameters = [(name, value) for name, value in _parameters(query) if name != "index"]
        address = as_address(
            _url(
                urlsplit(self.whole),
                [*kept_parameters, ("index", index)],
                urlsplit(self.whole).netloc,
            )
        )
        assert isinstance(address, DatabaseURL)
        return address

    def __str__(self) -> str:
        return self._without_password

    def __repr__(self) -> str:
        return f"DatabaseURL({self._without_password!r})"


@dataclass(frozen=True)
class IndexGroup:
    """The addresses of several indexes that are asked as one; a server offers them under the name `index`."""

    parts: tuple[Path | DatabaseURL, ...]
    index: str = ""

    @property
    def names(self) -> list[str]:
        """What citations call the indexes: the folders and schemas, or if two are called the same, the addresses."""
        names = [index_name(part) for part in self.parts]
        return names if len(set(names)) == len(names) else list(map(str, self.parts))

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))


Address: TypeAlias = Path | DatabaseURL | IndexGroup
AddressArgument: TypeAlias = str | Address | Sequence[str | Path | DatabaseURL]


def as_address(address: AddressArgument) -> Address:
    """The folder or the database of an address, or of several addresses; `ConfigError` for a wrong parameter, for
    the URL of something else, for a reserved or too long name, or if one of several is named twice.
    """
    if isinstance(address, DatabaseURL | IndexGroup):
        return address
    if not isinstance(address, str | Path):
        return _joined_address(address)
    if isinstance(address, str) and not address.strip():  # Python takes "" for the current folder
        raise ConfigError("the name of the folder of an index is empty")
    if not isinstance(address, str) or not ANY_URL.match(address):
        return Path(address)
    address = address.strip()
    if not address.startswith(URL_PREFIXES):
        scheme = address.partition(":")[0]
        raise ConfigError(
            f"{scheme}: is not the beginning of an index: it is in a folder, or at postgresql://…"
        )
    url = _split(address)
    query = _parameters(url.query)
    names = [name for name, _ in query]
    for name in OWN_PARAMETERS:
        if names.count(name) > 1:
            raise ConfigError(f"?{name} is given twice: leave one out")
    own = {name: value for name, value in query if name in OWN_PARAMETERS}
    index = own.get("index", DEFAULT_INDEX)
    graph = own.get("graph", GRAPHS[0])
    login, at, host = url.netloc.rpartition("@")
    public = [(name, value) for name, value in query if name not in SECRETS]
    for_libpq = [(name, value) for name, value in query if name not in OWN_PARAMETERS]
    reserved = index.startswith("pg_") or index in ("public", "information_schema")
    if not index.strip() or "\0" in index or reserved or len(index.encode()) > LONGEST_INDEX:
        raise ConfigError(
            f"?index={index!r} cannot be the name of an index: it must be a schema of its own, with "
            f"a name of at most {LONGEST_INDEX} bytes that does not begin with pg_"
        )
    if graph not in GRAPHS:
        raise ConfigError(f"?graph={graph!r} must be one of {', '.join(GRAPHS)}")
    limits: dict[str, Any] = {
        name: _limit(name, value) for name, value in own.items() if name not in ("index", "graph")
    }
    passwords = [login.partition(":")[2], *(value for name, value in query if name in SECRETS)]
    return DatabaseURL(
        _url(url, for_libpq, url.netloc),
        index,
        whole=_url(url, query, url.netloc),
        without_password=_url(url, public, login.partition(":")[0] + at + host),
        graph=graph,
        limits=ConnectionLimits(**limits),
        parameters=tuple([name for name, _ in for_libpq]),
        passwords=tuple([form for text in passwords for form in (text, unquote(text)) if text]),
    )


def index_name(address: Address) -> str:
    """What an index is called: its folder or schema, or the name that a server gives to several."""
    return address.resolve().name if isinstance(address, Path) else address.index


def absolute_address(address: Address) -> str:
    """An address as one text that is the same from every folder, without a password."""
    return str(address.resolve() if isinstance(address, Path) else address)


def address_with_password(address: Address) -> str:
    """An address as given, with its password: for a process of this program."""
    return address.whole if isinstance(address, DatabaseURL) else str(address)


def _joined_address(addresses: Sequence[str | Path | DatabaseURL]) -> Address:
    """Several addresses as one; a single one is itself."""
    parts: dict[str, Path | DatabaseURL] = {}  # by absolute path or URL
    for address in map(as_address, addresses):
        assert not isinstance(address, IndexGroup)
        name = absolute_address(address)
        if name in parts:
            raise ConfigError(f"{address} is named twice: each index is asked once")
        parts[name] = address
    if not parts:
        raise ConfigError("no index is named: name a folder, or the URL of a PostgreSQL database")
    return IndexGroup(tuple(parts.values())) if len(parts) > 1 else next(iter(parts.values()))


def _limit(name: str, value: str) -> float:
    """A limit of connections; `ConfigError` with the name if it is none."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if name == "pool_size":
        if not (1 <= number <= 1_000 and number.is_integer()):
            raise ConfigError(
                f"?pool_size={value!r} must be a whole number of connections from 1 to 1000"
            )
        return int(number)
    if not 0 <= number <= LONGEST_TIMEOUT:
        raise ConfigError(f"?{name}={value!r} must be a number of seconds, or 0 for no limit")
    return number


def _parameters(query: str) -> list[tuple[str, str]]:
    """The names and values in a query, as libpq reads them: a plus sign is a plus sign."""
    pairs = [part.partition("=") for part in query.split("&") if part]
    return [(unquote(name), unquote(value)) for name, _, value in pairs]


def _url(url: SplitResult, query: Sequence[tuple[str, str]], netloc: str) -> str:
    """A URL with other parameters and another login; without a host, the two slashes stay."""
    parameters = "&".join(
        f"{quote(name, safe='')}={quote(value, safe='/')}" for name, value in query
    )
    fragment = f"#{url.fragment}" if url.fragment else ""
    return f"{url.scheme}://{netloc}{url.path}{'?' if parameters else ''}{parameters}{fragment}"


def _split(address: str) -> SplitResult:
    """The parts of a URL; `ConfigError`, without the URL, if a password may reach into other parts."""
    try:
        url = urlsplit(address)
        is_clear = url.netloc.count("@") <= 1 and "@" not in url.path + url.fragment
        is_clear = is_clear and not any(
            "@" in part.partition("=")[0] for part in url.query.split("&")
        )
        if "," not in url.netloc:  # several hosts, each with a port
            _ = url.port
    except ValueError:
        is_clear = False
    if not is_clear:
        raise ConfigError(
            "this is not the address of a PostgreSQL database; it looks like "
            "postgresql://user:password@host/database, and in a password / ? # @ : [ ] and % are written "
            "as %2F %3F %23 %40 %3A %5B %5D and %25"
        )
    return url
