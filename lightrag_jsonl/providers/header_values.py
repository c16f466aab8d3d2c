"""Keys and other values for the headers of requests, cleared of blanks and line ends."""

import os
import re
from collections.abc import Iterable, Mapping

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.text.patterns import pattern_of

SHORTEST_SECRET = 4  # characters of a value that may be a key, and is not shown
SHORT_SECRET = 8  # a shorter one may also be a part of other words, where it stays
HIDDEN = "***"
_HEADER_NAME = pattern_of(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.1


def header_value(value: str, owner: str) -> str:
    """A value without surrounding white space; `ConfigError` names the `owner`, never the value.

    A header holds printable characters of ASCII only (RFC 9110, section 5.5).
    """
    stripped = value.strip()
    if not (stripped.isascii() and stripped.isprintable()):
        raise ConfigError(
            f"{owner} has a line end, a control character or characters beyond ASCII inside, which no "
            "request can hold: copy it again, whole and alone"
        )
    return stripped


def header_values(headers: Mapping[str, str], owner: str) -> dict[str, str]:
    """Headers without white space around values; `ConfigError` as by `header_value`."""
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name.strip()):
            raise ConfigError(f"{owner}: a name among the headers is no name of a header")
        checked[name.strip()] = header_value(
            value, f"{owner}: the value of the header {name.strip()}"
        )
    return checked


def environment_value(name: str) -> str:
    """An environment variable without surrounding white space, such as the line end of a file from
    Windows; "" if not set.
    """
    return os.environ.get(name, "").strip()


def without_secrets(message: str, secrets: Iterable[str]) -> str:
    """A message with the secrets masked."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= SHORT_SECRET:
            message = message.replace(secret, HIDDEN)
        elif len(secret) >= SHORTEST_SECRET:
            message = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, message)
    return message
