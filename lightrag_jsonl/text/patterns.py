"""Regular expressions that are compiled at first use: an import, which knows hundreds, compiles none."""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Literal, cast


class LatePattern:
    """Stands for a compiled pattern; each method is looked up once."""

    def __init__(self, pattern: str, flags: int, module: str) -> None:
        self.pattern = pattern
        self._flags = flags
        self._module = module

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern itself."""
        if self._module == "re":
            return re.compile(self.pattern, self._flags)
        import regex

        pattern: re.Pattern[str] = regex.compile(self.pattern, self._flags)
        return pattern

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, int, str]]:
        """As a copy, or in another process: not compiled yet."""
        return LatePattern, (self.pattern, self._flags, self._module)

    def __getattr__(self, name: str) -> object:
        value = getattr(self.compiled, name)
        setattr(self, name, value)
        return value


def pattern_of(
    pattern: str, flags: int = 0, *, module: Literal["re", "regex"] = "re"
) -> re.Pattern[str]:
    """As `compile` of the module, at the first use of the result; `regex` knows the properties of Unicode."""
    return cast("re.Pattern[str]", LatePattern(pattern, flags, module))
