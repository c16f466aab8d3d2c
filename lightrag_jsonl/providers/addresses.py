"""The addresses of an index's models, remembered in the user's folder and never in the index's own."""

import contextlib
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from lightrag_jsonl.core.address import Address, IndexGroup, absolute_address
from lightrag_jsonl.text.strings import digest

log = logging.getLogger(__name__)


def user_folder() -> Path:
    """The folder of the user's own settings, by the XDG Base Directory Specification."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "lightrag-jsonl"


def remembered_address(index: Address, model: str) -> tuple[str, str] | None:
    """The URL last given by the user for a model of an index, and the file with the URL."""
    file = _addresses_file(index)
    url = _read_addresses(file).get(model)
    return (url, str(file)) if url else None


def remember_addresses(index: Address, addresses: Mapping[str, str]) -> None:
    """Remember the URLs of models, by name; for an unwritable file, only a warning is logged."""
    file = _addresses_file(index)
    all_addresses = _read_addresses(file) | dict(addresses)
    if all_addresses == _read_addresses(file):
        return
    content = {"index": _index_name(index), "addresses": all_addresses}
    new_file = file.with_suffix(f".{os.getpid()}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new_file.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8")
        new_file.replace(file)
    except OSError as error:
        log.warning("the next command needs --base-url again: %s", error)


def forget_addresses(index: Address) -> None:
    """Forget the addresses of an earlier index in the same place."""
    with contextlib.suppress(OSError):
        _addresses_file(index).unlink()


def _addresses_file(index: Address) -> Path:
    return user_folder() / "indexes" / f"{digest(_index_name(index))}.json"


def _index_name(index: Address) -> str:
    """The absolute path, or the URL without a password; of several indexes, the first one's."""
    if isinstance(index, IndexGroup):
        index = index.parts[0]
    return absolute_address(index)


def _read_addresses(file: Path) -> dict[str, str]:
    """The URLs by the names of models; empty for a missing or damaged file."""
    try:
        addresses = json.loads(file.read_text(encoding="utf-8"))["addresses"]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    if not isinstance(addresses, dict):
        return {}
    return {name: url for name, url in addresses.items() if isinstance(url, str)}
