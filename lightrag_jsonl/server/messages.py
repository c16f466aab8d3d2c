"""Messages for clients, without folders of the server's machine."""

import tempfile
from pathlib import Path
from typing import TypeVar

import lightrag_jsonl
from lightrag_jsonl.core.address import Address, IndexGroup, absolute_address, index_name

JsonValue = TypeVar("JsonValue")


def without_folders(message: JsonValue, index: Address) -> JsonValue:
    """A text, or JSON with texts, in which the index's name stands for its folder or database.

    The folders of the user, of temporary files and of the package are left out, too.
    """
    shorter: dict[str, str] = {}
    for address in index.parts if isinstance(index, IndexGroup) else [index]:
        name = index_name(address)
        shorter[absolute_address(address)] = name
        is_word = isinstance(address, Path) and len(address.parts) <= 1  # "." or a single name
        if not is_word:  # a word may stand in a message for other things
            shorter[str(address)] = name
    package = Path(lightrag_jsonl.__file__).parent.parent
    for private, short in ((package, ""), (Path(tempfile.gettempdir()), ""), (Path.home(), "~")):
        if len(private.parts) > 1:
            shorter[f"{private}/"] = f"{short}/".lstrip("/")
    return _replaced(message, dict(sorted(shorter.items(), key=lambda pair: -len(pair[0]))))


def _replaced(value: JsonValue, shorter: dict[str, str]) -> JsonValue:
    result: object = value
    if isinstance(value, str):
        result = value
        for text, short in shorter.items():
            result = str(result).replace(text, short)
    elif isinstance(value, list | tuple):
        result = [_replaced(item, shorter) for item in value]
    elif isinstance(value, dict):
        result = {key: _replaced(item, shorter) for key, item in value.items()}
    return result  # type: ignore[return-value]
