"""Text with `{{ variables }}`, rendered in a sandbox; a missing variable is an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from lightrag_jsonl.errors import MISREAD, PromptError
from lightrag_jsonl.types import Message

if TYPE_CHECKING:
    import jinja2


class Template:
    """A Jinja template, compiled at first use; `origin` names it in errors.

    Values are data: template syntax inside them is not interpreted. Lists and mappings are written
    as JSON, a conversation (`Message`s) as a line "role: content" for each turn. `{{ values |
    joined(", ") }}` joins a list, and leaves a string as it is.
    """

    __slots__ = ("_compiled", "_last", "_used", "origin", "source")

    def __init__(self, source: str, *, origin: str = "template") -> None:
        self.source = source
        self.origin = origin
        self._compiled: jinja2.Template | None = None
        self._used: tuple[str, ...] | None = None
        self._last: tuple[object, str] | None = None

    def compile(self) -> jinja2.Template:
        """The compiled template; `PromptError` if it is not valid."""
        if self._compiled is None:
            from jinja2 import TemplateError

            try:
                self._compiled = _environment().from_string(self.source)
            except (TemplateError, RecursionError) as error:
                line = getattr(error, "lineno", None)
                where = f" (line {line} of the part)" if line else ""
                raise PromptError(f"{self.origin}: not a template{where}: {error}") from error
        return self._compiled

    def variables(self) -> frozenset[str]:
        """The names that the template uses and does not set itself."""
        from jinja2 import meta

        self.compile()
        return frozenset(meta.find_undeclared_variables(_environment().parse(self.source)))

    def render(self, values: Mapping[str, object]) -> str:
        """The text with `values` filled in; `PromptError` names a missing variable."""
        if self._used is None:
            self._used = tuple(sorted(self.variables()))
        given = tuple(_plain(values.get(name, _MISSING)) for name in self._used)
        if self._last is not None and self._last[0] == given and _MISSING not in given:
            return self._last[1]  # the fixed part of a prompt is the same for every chunk
        text = self._rendered(values)
        self._last = (given, text)
        return text

    def _rendered(self, values: Mapping[str, object]) -> str:
        from jinja2 import TemplateError

        compiled = self.compile()
        try:
            return compiled.render(values)
        except TemplateError as error:
            raise PromptError(f"{self.origin}: {_trouble(error, values)}") from error
        except (
            *MISREAD,
            RecursionError,
        ) as error:  # an expression got a value of an unexpected type
            raise PromptError(f"{self.origin}: cannot be rendered: {error}") from error


_MISSING = object()


def _plain(value: object) -> object:
    """A value that can be compared later: immutable ones as they are, lists of strings as tuples.

    Any other value becomes an object that equals nothing. Equal numbers of different types (1, 1.0,
    True; 0.0, -0.0) are written differently, so they must not count as equal.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return type(value), repr(value)
    if isinstance(value, (list, tuple)) and set(map(type, value)) <= {str}:
        return tuple(value)
    return _MISSING


def _trouble(error: jinja2.TemplateError, values: Mapping[str, object]) -> str:
    """A rendering error in words; a missing variable is named, with what was given."""
    from jinja2 import UndefinedError

    message = error.message or type(error).__name__
    name, found, _ = message.partition("' is undefined")
    if isinstance(error, UndefinedError) and found:
        given = ", ".join(sorted(values)) or "none"
        return f"the variable {name[1:]!r} is missing (given: {given})"
    return f"cannot be rendered: {message}"


@cache
def _environment() -> jinja2.Environment:
    """The sandbox shared by all templates; it is never changed."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, finalize=_written
    )
    environment.globals = {"range": environment.globals["range"]}
    environment.filters["joined"] = _joined
    environment.filters["tojson"] = _json
    return environment


def _written(value: object) -> object:
    """How a value is written in a prompt."""
    if value is None:
        return ""
    if isinstance(value, (Mapping, list, tuple)):
        turns = [turn for turn in value if isinstance(turn, Message)]
        if turns and len(turns) == len(value):
            return "\n".join(f"{turn.role}: {turn.content}" for turn in turns)
        return _json(value)
    return value


def _joined(value: object, separator: str = ", ") -> object:
    """The items of a list, or the `key: value` pairs of a mapping, joined; a string as it is."""
    if isinstance(value, Mapping):
        return separator.join(f"{key}: {_item(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return separator.join(_item(item) for item in value)
    return value


def _item(value: object) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
