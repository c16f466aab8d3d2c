"""Regular expressions that are compiled at first use: an import, which knows hundreds, compiles none."""

import re
from typing import cast


class _Pattern:
    """Stands for a compiled pattern; each attribute is looked up once."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        value = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, value)
        return value


def pattern_of(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, at the first use of the result."""
    return cast("re.Pattern[str]", _Pattern(pattern, flags))
