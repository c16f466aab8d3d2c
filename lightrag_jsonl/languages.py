"""The languages that have rules of their own here, and which of them a language name means."""

from __future__ import annotations

from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]


def known_language(name: str) -> Language:
    """Chinese for zh, zh-CN, zh-Hant and the like, English for all others."""
    return "zh" if name.casefold().startswith("zh") else "en"
