"""Documents in posted JSON, read one after another."""

import json
import re
from collections.abc import Iterator
from typing import Final, Never

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document, Json
from lightrag_jsonl.indexing.loading import document_from

BODY_BEGINNING: Final = re.compile(r'\s*\{\s*"documents"\s*:\s*\[\s*')
VALUE_SEPARATOR: Final = re.compile(r"\s*(,|\])\s*")
BODY_END: Final = re.compile(r"\s*\}\s*\Z")
EXPECTED_BODY: Final = 'the body must be {"documents": […]}, with at least one document'


def posted_documents(body: bytes) -> Iterator[Document]:
    """The documents in `{"documents": […]}`; `ConfigError` names the faulty document.

    A single document at a time is in memory, beside the text of the body.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"the body is not UTF-8: {error}") from error
    for number, value in enumerate(_values(text)):
        yield document_from(value, where=f"documents[{number}]")


def _values(text: str) -> Iterator[Json]:
    """The values in the list of documents."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    beginning = BODY_BEGINNING.match(text)
    if beginning is None or text.startswith("]", beginning.end()):
        raise ConfigError(EXPECTED_BODY)
    position = beginning.end()
    separator = ","
    while separator == ",":
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"invalid JSON in the body: {error}") from error
        yield value
        match = VALUE_SEPARATOR.match(text, position)
        if match is None:
            raise ConfigError(f"invalid JSON in the body: expected , or ] at character {position}")
        separator = match[1]
        position = match.end()
    if not BODY_END.match(text, position):
        raise ConfigError(f"{EXPECTED_BODY}; there is more at character {position}")


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is no JSON")
