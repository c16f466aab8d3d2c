"""Writes the pages of a wiki into a folder, and deletes the pages of an earlier export."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.files import unwritten
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import digest

MANIFEST = ".wiki.json"  # the pages of the last export with their digests
_PAGE_PATH = pattern_of(r"(?:(?:entities|communities|documents)/[^/\\]+|index)\.md")


def write_wiki(folder: Path, pages: Mapping[str, str]) -> None:
    """Write the pages into a folder: changed pages are written, former pages deleted.

    Files of other origin stay; `ConfigError` where such a file is in the way of a page. An export that
    ends halfway leaves a manifest of the former and the new pages, so that the next one goes on.
    """
    _refuse_links(folder, MANIFEST)
    former = _former_pages(folder)
    digests = {path: digest(text) for path, text in sorted(pages.items())}
    for path in sorted({*digests, *former}):
        _refuse_links(folder, path)
    in_the_way = [path for path in digests if path not in former and (folder / path).exists()]
    if in_the_way:
        raise ConfigError(
            f"{folder / in_the_way[0]} was not written by an export; choose an empty folder, or move the file"
        )
    changed = [path for path in digests if _digest_of(folder / path) != digests[path]]
    _write_manifest(folder, {**dict.fromkeys(former, ""), **digests})
    for path in changed:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        _replace(folder, path, pages[path])
    for path in former:
        if path not in digests:
            (folder / path).unlink(missing_ok=True)
    for part in ("entities", "communities", "documents"):
        subfolder = folder / part
        if subfolder.is_dir() and not any(subfolder.iterdir()):
            subfolder.rmdir()
    _write_manifest(folder, digests)


def _write_manifest(folder: Path, digests: Mapping[str, str]) -> None:
    text = json.dumps(digests, ensure_ascii=False, indent=0) + "\n"
    _replace(folder, MANIFEST, text)


def _replace(folder: Path, path: str, text: str) -> None:
    """Replace a file at once, or the link in its place: after a kill or on a full disk there is the old or
    the new one, and nothing is ever written through a link.
    """
    draft = folder / f"{MANIFEST}.new"
    try:
        draft.unlink(missing_ok=True)
        with draft.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
        draft.replace(folder / path)
    except OSError as error:
        raise unwritten(folder / path, error) from error


def _refuse_links(folder: Path, path: str) -> None:
    """`ConfigError` for a link in the place of a page or of a folder of pages, which leads elsewhere."""
    places = [folder / path]
    places += [folder / parent for parent in Path(path).parents[:-1]]
    for place in places:
        if place.is_symlink():
            raise ConfigError(f"{place} is a symbolic link: remove it, or choose an empty folder")


def _former_pages(folder: Path) -> Sequence[str]:
    """The paths of the last export into a folder; only pages below the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / MANIFEST
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        paths = [str(path) for path in content]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{manifest} is damaged; delete the folder, and export again") from error
    return [path for path in paths if _PAGE_PATH.fullmatch(path)]


def _digest_of(path: Path) -> str | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    return digest(content.decode("utf-8", "replace"))
