"""The languages with prompts and rules of their own."""

from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]


def known_language(name: str) -> Language:
    """Chinese for zh, zh-CN, zh-Hant and the like, English for all others."""
    return "zh" if name.casefold().startswith("zh") else "en"
