"""The languages with prompts and rules."""

from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]


def known_language(name: str) -> Language:
    """Chinese for zh, zh-CN, zh-Hant and the like, English for every other name."""
    return "zh" if name.casefold().startswith("zh") else "en"
