"""Text with `{{ variables }}`, rendered in a sandbox where a missing variable is an error."""

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
    """A Jinja template, compiled when it is first needed; `origin` names it in errors.

    Values are data: template syntax inside them is written out as it stands. A list or
    mapping is written as JSON, a conversation (`Message`s) as one "role: content" line a turn.
    `{{ values | joined(", ") }}` joins a list and leaves a string alone.
    """

    __slots__ = ("_compiled", "_last", "_used", "origin", "source")

    def __init__(self, source: str, *, origin: str = "template") -> None:
        self.source = source
        self.origin = origin
        self._compiled: jinja2.Template | None = None
        self._used: tuple[str, ...] | None = None
        self._last: tuple[object, str] | None = None

    def compile(self) -> jinja2.Template:
        """The compiled template; `PromptError` where it is none."""
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
        """The names that the template reads and does not set itself."""
        from jinja2 import meta

        self.compile()
        return frozenset(meta.find_undeclared_variables(_environment().parse(self.source)))

    def render(self, values: Mapping[str, object]) -> str:
        """The text with `values` filled in; `PromptError` names a variable that is missing."""
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
        except (*MISREAD, RecursionError) as error:  # an expression met another kind of value
            raise PromptError(f"{self.origin}: cannot be rendered: {error}") from error


_MISSING = object()


def _plain(value: object) -> object:
    """The value, if it cannot change; a list of strings as a tuple; else something equal to nothing.

    Equal numbers are written in several ways: 1, 1.0 and True, 0.0 and -0.0.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return type(value), repr(value)
    if isinstance(value, (list, tuple)) and set(map(type, value)) <= {str}:
        return tuple(value)
    return _MISSING


def _trouble(error: jinja2.TemplateError, values: Mapping[str, object]) -> str:
    """Words for a rendering error; a missing variable is named, with what was given."""
    from jinja2 import UndefinedError

    message = error.message or type(error).__name__
    name, found, _ = message.partition("' is undefined")
    if isinstance(error, UndefinedError) and found:
        given = ", ".join(sorted(values)) or "none"
        return f"the variable {name[1:]!r} is missing (given: {given})"
    return f"cannot be rendered: {message}"


@cache
def _environment() -> jinja2.Environment:
    """The sandbox every template shares; it is never changed after it is made."""
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
    """How a value stands in a prompt."""
    if value is None:
        return ""
    if isinstance(value, (Mapping, list, tuple)):
        turns = [turn for turn in value if isinstance(turn, Message)]
        if turns and len(turns) == len(value):
            return "\n".join(f"{turn.role}: {turn.content}" for turn in turns)
        return _json(value)
    return value


def _joined(value: object, separator: str = ", ") -> object:
    """A list's items (a mapping's `key: value` pairs) with `separator` between; a string as it is."""
    if isinstance(value, Mapping):
        return separator.join(f"{key}: {_item(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return separator.join(_item(item) for item in value)
    return value


def _item(value: object) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
