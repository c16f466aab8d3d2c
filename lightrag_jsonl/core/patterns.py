"""Regular expressions that are compiled at first use: an import, which knows hundreds, compiles none."""

import re
from collections.abc import Callable
from functools import cached_property
from typing import cast


class LatePattern:
    """Stands for a compiled pattern; each method is looked up once."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern itself."""
        return re.compile(self.pattern, self._flags)

    def __reduce__(self) -> tuple[Callable[[str, int], object], tuple[str, int]]:
        """As a copy, or in another process: not compiled yet."""
        return LatePattern, (self.pattern, self._flags)

    def __getattr__(self, name: str) -> object:
        value = getattr(self.compiled, name)
        setattr(self, name, value)
        return value


def pattern_of(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, at the first use of the result."""
    return cast("re.Pattern[str]", LatePattern(pattern, flags))
