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
    addresses = index.parts if isinstance(index, IndexGroup) else [index]
    for address in addresses:
        name = index_name(address)
        shorter[absolute_address(address)] = name
        is_word = isinstance(address, Path) and len(address.parts) <= 1  # "." or a single name
        if not is_word:  # a word may stand in a message for other things
            shorter[str(address)] = name
    private_folders = {
        Path(lightrag_jsonl.__file__).parent.parent: "",
        Path(tempfile.gettempdir()): "",
        Path.home(): "~/",
    }
    for folder, short in private_folders.items():
        if len(folder.parts) > 1:
            shorter[f"{folder}/"] = short
    longest_first = sorted(shorter, key=len, reverse=True)
    return _replaced(message, {text: shorter[text] for text in longest_first})


def _replaced(value: JsonValue, shorter: dict[str, str]) -> JsonValue:
    result: object = value
    if isinstance(value, str):
        message: str = value
        for text, short in shorter.items():
            message = message.replace(text, short)
        result = message
    elif isinstance(value, list | tuple):
        result = [_replaced(item, shorter) for item in value]
    elif isinstance(value, dict):
        result = {key: _replaced(item, shorter) for key, item in value.items()}
    return result  # type: ignore[return-value]
