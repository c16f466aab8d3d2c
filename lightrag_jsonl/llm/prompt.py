"""One prompt: its templates, the form of the answer, and checks of both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import jinja2
import jinja2.meta
import jinja2.sandbox
import msgspec

from lightrag_jsonl.core.errors import PromptError
from lightrag_jsonl.core.types import Json, Message, ResponseType
from lightrag_jsonl.llm.schemas import Schema


class Prompt:
    """One question to a model: its text, the form of the answer, and defaults for its variables.

    Templates are Jinja's, rendered in a sandbox. Lists and mappings are written as JSON, a
    conversation as lines "role: content"; `{{ values | joined(", ") }}` joins a list. `schema`
    describes the whole value (`json`) or each record (`jsonl`); instead, `schema_input` may name a
    variable with the description of a table (see `row_schema`). `examples` are lines of model
    output, shown as `{{ examples }}`. `origin` names the prompt in errors.
    """

    def __init__(
        self,
        template: str,
        response_type: ResponseType = "text",
        terms: Mapping[str, Json] | None = None,
        schema: Mapping[str, Json] | None = None,
        *,
        system: str = "",
        inputs: Sequence[str] | None = None,
        schema_input: str = "",
        examples: str = "",
        revision: str | float = 1,
        aliases: Sequence[str] = (),
        origin: str = "prompt",
    ) -> None:
        self.template, self.system, self.response_type = template, system, response_type
        self.examples = tuple(line for line in examples.split("\n") if line.strip())
        self.terms: dict[str, Json] = dict(terms or {})
        if self.examples:
            self.terms.setdefault("examples", "\n".join(self.examples))
        self.schema_input, self.revision = schema_input, str(revision)
        self.aliases, self.origin = tuple(aliases), origin
        self._inputs = inputs
        try:
            self.schema = None if schema is None else Schema(schema)
        except PromptError as error:
            raise PromptError(f"{origin}: schema: {error}") from error

    @property
    def text(self) -> tuple[str, str]:
        """The sources of the system template and the user template."""
        return self.system, self.template

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the templates use, except the prompt's own examples."""
        used: set[str] = set()
        for source in self.text:
            _compile(source, self.origin)  # its error names the prompt
            used |= jinja2.meta.find_undeclared_variables(_environment().parse(source))
        return frozenset(used - ({"examples"} if self.examples else set()))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The variables that callers must give: as declared, or else those that the templates use."""
        return tuple(sorted(self.variables) if self._inputs is None else self._inputs)

    def render(
        self, variables: Mapping[str, object], terms: Mapping[str, Json] | None = None
    ) -> tuple[Message, ...]:
        """The messages to send; a variable overrides the prompt's term, which overrides `terms`."""
        values = {**(terms or {}), **self.terms, **variables}
        system = _render(self.system, values, self.origin).strip() if self.system else ""
        user = Message("user", _render(self.template, values, self.origin))
        return (Message("system", system), user) if system else (user,)

    def problems(self) -> list[str]:
        """What is wrong: with templates, declared and used variables, or example lines."""
        try:
            return [f"{self.origin}: {problem}" for problem in self._problems()]
        except PromptError as error:
            return [str(error)]

    def check(self, base: Prompt | None = None) -> None:
        """Raise `PromptError` with all problems, or if it cannot replace the prompt `base`."""
        if problems := self.problems():
            raise PromptError("\n".join(problems))
        if base is None:
            return
        if self.response_type != base.response_type:
            raise PromptError(
                f"{self.origin}: response-type: must be {base.response_type!r}, as in {base.origin}"
            )
        given = base.variables | set(base.inputs)
        if unknown := sorted(self.variables - given - set(self.terms)):
            raise PromptError(
                f"{self.origin}: inputs: nothing provides {', '.join(unknown)}; "
                f"this prompt is given {', '.join(sorted(given)) or 'no variables'}"
            )

    def _problems(self) -> Iterator[str]:
        used = self.variables | ({self.schema_input} - {""})
        inputs = used if self._inputs is None else set(self._inputs)
        yield from [f"inputs: {name!r} is declared but not used" for name in sorted(inputs - used)]
        missing = sorted(used - inputs - set(self.terms))
        yield from [f"inputs: {name!r} is used but not declared" for name in missing]
        for number, line in enumerate(self.examples, start=1):
            try:
                value = json.loads(line)
                fault = self.schema.error(value) if self.schema else None
            except ValueError as error:
                fault = f"not JSON: {error}"
            if fault:
                yield f"examples: line {number}: {fault}"


# ── settings, as files and configurations hold them ─────────────────────────────


class _Settings(
    msgspec.Struct,
    forbid_unknown_fields=True,
    rename={"template": "prompt", "response_type": "response-type", "schema_input": "schema-input"},
):
    """The arguments of `Prompt`."""

    template: str
    response_type: ResponseType = "text"
    terms: dict[str, Any] | None = None
    schema: dict[str, Any] | None = None
    system: str = ""
    inputs: list[str] | None = None
    schema_input: str = ""
    examples: str = ""
    revision: str | int | float = 1
    aliases: list[str] = []


def make_prompt(settings: Mapping[str, object], origin: str) -> Prompt:
    """A prompt from its settings; `PromptError` names `origin` and the key that is wrong."""
    settings = {str(key).replace("_", "-"): value for key, value in settings.items()}
    schema, other = (decoded(settings.pop(key, None)) for key in ("schema", "object-schema"))
    if schema and other and schema != other:
        raise PromptError(f"{origin}: schema and object-schema differ; keep one of them")
    try:
        given = msgspec.convert({**settings, "schema": schema or other or None}, _Settings)
    except msgspec.ValidationError as error:
        raise PromptError(f"{origin}: {error}") from error
    return Prompt(**msgspec.structs.asdict(given), origin=origin)


def decoded(value: object) -> object:
    """The value of a JSON string; any other value, or text that is not JSON, unchanged."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


# ── templates ───────────────────────────────────────────────────────────────────


def _render(source: str, values: Mapping[str, object], origin: str) -> str:
    try:
        return _compile(source, origin).render(values)
    except PromptError:
        raise
    except Exception as error:  # whatever the user's own template does
        name, missing, _ = str(error).partition("' is undefined")
        problem = f"cannot be rendered: {error}"
        if isinstance(error, jinja2.UndefinedError) and missing:
            given = ", ".join(sorted(values)) or "none"
            problem = f"the variable {name[1:]!r} is missing (given: {given})"
        raise PromptError(f"{origin}: {problem}") from error


@lru_cache(256)
def _compile(source: str, origin: str) -> jinja2.Template:
    try:
        return _environment().from_string(source)
    except (jinja2.TemplateError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line} of the part)" if line else ""
        raise PromptError(f"{origin}: not a template{where}: {error}") from error


@cache
def _environment() -> jinja2.Environment:
    """The sandbox shared by all templates; it is never changed."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, autoescape=False, finalize=_written
    )
    environment.globals = {"range": environment.globals["range"]}
    environment.filters.update(joined=_joined, tojson=_json)
    return environment


def _written(value: object) -> object:
    """How a value is written in a prompt."""
    if isinstance(value, list | tuple) and value and all(isinstance(v, Message) for v in value):
        return "\n".join(f"{turn.role}: {turn.content}" for turn in value)
    if isinstance(value, Mapping | list | tuple):
        return _json(value)
    return "" if value is None else value


def _joined(values: Iterable[object], separator: str = ", ") -> str:
    """The values in one text; those that are no texts as JSON."""
    if isinstance(values, str):
        return values
    return separator.join([value if isinstance(value, str) else _json(value) for value in values])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
