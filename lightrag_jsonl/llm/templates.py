"""Text with `{{ variables }}`, rendered in a sandbox; a missing variable is an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

from lightrag_jsonl.core.errors import PromptError
from lightrag_jsonl.core.types import Message

if TYPE_CHECKING:
    import jinja2


class Template:
    """A Jinja template, compiled at first use; `origin` names it in errors.

    Values are data: template syntax inside them is not interpreted. Lists and mappings are written
    as JSON, a conversation (`Message`s) as a line "role: content" for each turn. `{{ values |
    joined(", ") }}` joins a list, and leaves a string as it is.
    """

    def __init__(self, source: str, *, origin: str = "template") -> None:
        self.source = source
        self.origin = origin

    @cached_property
    def _compiled(self) -> jinja2.Template:
        from jinja2 import TemplateError

        try:
            return _environment().from_string(self.source)
        except (TemplateError, RecursionError) as error:
            line = getattr(error, "lineno", None)
            where = f" (line {line} of the part)" if line else ""
            raise PromptError(f"{self.origin}: not a template{where}: {error}") from error

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names that the template uses and does not set itself."""
        from jinja2 import meta

        _ = self._compiled  # raises for a template that is not valid
        return frozenset(meta.find_undeclared_variables(_environment().parse(self.source)))

    def render(self, values: Mapping[str, object]) -> str:
        """The text with `values` filled in; `PromptError` names a missing variable."""
        from jinja2 import TemplateError

        missing = sorted(self.variables - values.keys())
        if missing:
            given = ", ".join(sorted(values)) or "none"
            raise PromptError(
                f"{self.origin}: the variable {missing[0]!r} is missing (given: {given})"
            )
        try:
            return self._compiled.render(values)
        except (TemplateError, ValueError, TypeError, LookupError, ArithmeticError) as error:
            raise PromptError(f"{self.origin}: cannot be rendered: {error}") from error
        except (AttributeError, RecursionError) as error:
            raise PromptError(f"{self.origin}: cannot be rendered: {error}") from error


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
    if isinstance(value, Mapping | list | tuple):
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
