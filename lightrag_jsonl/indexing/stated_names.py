"""The other names that notes state: `aliases` of the front matter, and texts of links such as [[Note|name]]."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from lightrag_jsonl.core.types import UNKNOWN_TYPE, Chunk, EntityMention, Extraction
from lightrag_jsonl.text.names import LINKED_NAMES, clean_name, name_key
from lightrag_jsonl.text.patterns import pattern_of

AliasesByKey: TypeAlias = Mapping[str, Iterable[str]]  # by the key of the bearer's name

_ALIAS_FIELDS = ("aliases", "alias")  # of front matter, in the notes of Obsidian
_ALIAS_ARTICLE = pattern_of(r"\A(?:the|an?)\s+(?=\w)", re.IGNORECASE)
_ADDRESS_MARK = "/"  # Hugo's `aliases` are old addresses of a page
_LINK_WITH_TEXT = pattern_of(
    r"(?<!!)\[\[(?:[^\[\]|#^\n]*/)?(?P<note>[^\[\]|#^/\n\\]+)(?:[#^][^\[\]|\n]*?)?\\?\|(?P<text>[^\[\]|\n]+)\]\]"
)


def aliases_in_metadata(metadata: Mapping[str, object]) -> tuple[str, ...]:
    """The other names of a note's subject, by the front matter: a list, or names between commas; "The
    Lady" also as "Lady", for readers of names leave out articles.
    """
    names: list[str] = []
    for field in _ALIAS_FIELDS:
        value = metadata.get(field, ())
        items = value.split(",") if isinstance(value, str) else value
        if isinstance(items, list | tuple):
            names += [clean_name(item) for item in items if isinstance(item, str)]
    return tuple(
        name
        for alias in names
        for name in dict.fromkeys((alias, _ALIAS_ARTICLE.sub("", alias)))
        if name_key(name) and _ADDRESS_MARK not in name
    )


def with_linked_names(chunk: Chunk, metadata: Mapping[str, object]) -> Chunk:
    """The chunk with what the links in it to other notes are called, as the reader of Markdown hands it over."""
    names = metadata.get(LINKED_NAMES, ())
    if not (names and isinstance(names, list | tuple)):
        return chunk
    text = chunk.text.casefold()
    linked = [
        name
        for name in names
        if isinstance(name, str) and any(map(str.isalpha, name)) and name.casefold() in text
    ]
    return replace(chunk, linked_names=tuple(linked))


def may_state_names(extraction: Extraction, chunk: Chunk, metadata: Mapping[str, object]) -> bool:
    """Whether a note may have other names, in its front matter or in links; or names in an empty extraction."""
    return bool(metadata) or "[[" in chunk.text or extraction.state == "empty"


def with_stated_names(
    extraction: Extraction, chunk: Chunk, metadata: Mapping[str, object]
) -> Extraction:
    """The extraction of a chunk with the other names that the note states.

    The subject of a note is its title: where the front matter has other names for it, the first chunk mentions it. The text of
    a link is another name of the linked note if it was read as a name, too.
    """
    if extraction.state == "failed":
        return extraction
    aliases_by_key = _linked_names(chunk.text, extraction.entities)
    stated = aliases_in_metadata(metadata)
    if not (aliases_by_key or stated or extraction.state == "empty"):
        return extraction
    entities = [_with_aliases(mention, aliases_by_key) for mention in extraction.entities]
    subject = clean_name(chunk.title)
    aliases = [name for name in stated if name_key(name) != name_key(subject)]
    if chunk.index == 0 and name_key(subject) and aliases:
        entities = _with_subject(entities, subject, aliases)
    state = "ok" if extraction.state == "empty" and entities else extraction.state
    return replace(extraction, entities=tuple(entities), state=state)


def _with_subject(
    entities: list[EntityMention], subject: str, aliases: Iterable[str]
) -> list[EntityMention]:
    """The mentions, with the aliases at that of the subject, which is added where it is missing."""
    key = name_key(subject)
    if all(name_key(mention.name) != key for mention in entities):
        entities = [*entities, EntityMention(name=subject, type=UNKNOWN_TYPE, description="")]
    return [_with_aliases(mention, {key: aliases}) for mention in entities]


def _linked_names(text: str, entities: Iterable[EntityMention]) -> dict[str, list[str]]:
    """The texts of links to mentioned names, if they are mentioned names themselves."""
    if "[[" not in text:
        return {}
    keys = {name_key(mention.name) for mention in entities}
    aliases_by_key: dict[str, list[str]] = {}
    for link in _LINK_WITH_TEXT.finditer(text):
        bearer = name_key(link["note"])
        alias = clean_name(link["text"])
        if bearer in keys and name_key(alias) in keys - {bearer}:
            aliases_by_key.setdefault(bearer, []).append(alias)
    return aliases_by_key


def _with_aliases(mention: EntityMention, aliases_by_key: AliasesByKey) -> EntityMention:
    """The mention with further aliases, each once."""
    aliases = aliases_by_key.get(name_key(mention.name))
    if aliases is None:
        return mention
    names_by_key = {name_key(alias): alias for alias in reversed((*mention.aliases, *aliases))}
    return replace(mention, aliases=tuple(reversed(names_by_key.values())))
