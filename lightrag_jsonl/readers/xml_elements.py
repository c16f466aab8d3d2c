"""Finds elements of XML by their names, in any namespace."""

from typing import Any


def elements_named(root: Any, name: str) -> list[Any]:
    """The elements with a name, at any depth."""
    return list(root.iter("{*}" + name))


def local_name(element: Any) -> str:
    """The name of an element without its namespace; nothing for comments and instructions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
