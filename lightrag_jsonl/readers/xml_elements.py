"""Parses XML, finds elements by their names in any namespace, and reads numbers in attributes."""

from typing import Any

from lightrag_jsonl.core.errors import ConfigError


def xml_root(data: bytes) -> Any | None:
    """The root of XML, as far as it can be read; None for anything else.

    No entity is resolved, and nothing is fetched from a network.
    """
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        recover=True,
        collect_ids=False,
        huge_tree=True,  # 2,048 levels instead of 256
    )
    if not data.strip():
        return None
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        return None


def is_damaged(root: Any) -> bool:
    """Whether a parsed text has faults of form."""
    return bool(root.getroottree().parser.error_log)


def check_depth(parser: Any) -> None:
    """`ConfigError` if a parser gave up what it read, since elements stand too deep in each other."""
    if any(entry.message.startswith("Excessive depth") for entry in parser.error_log):
        raise ConfigError("is nested too deeply")


def elements_named(root: Any, name: str) -> list[Any]:
    """The elements with a name, at any depth."""
    return list(root.iter("{*}" + name))


def local_name(element: Any) -> str:
    """The name of an element without its namespace; nothing for comments and instructions."""
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    return tag.rpartition("}")[2]


def whole_number(text: str | None, default: int = 0) -> int:
    """A number in an attribute; the default for anything else."""
    if not text or len(text) >= 10:
        return default
    return int(text) if text.isascii() and text.isdecimal() else default
