"""One prompt: what is asked, what form the answer has, and checks of both."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import get_args

from lightrag_jsonl.errors import PromptError
from lightrag_jsonl.prompts.rows import row_schema
from lightrag_jsonl.prompts.templates import Template
from lightrag_jsonl.schemas import Schema, compile_schema
from lightrag_jsonl.types import Json, Message, ResponseType

RESPONSE_TYPES: tuple[ResponseType, ...] = get_args(ResponseType)

_EXAMPLES = "examples"  # the template's variable for the examples in the front matter
_KEYS = (
    "prompt",
    "system",
    "response-type",
    "schema",
    "object-schema",
    "schema-input",
    "terms",
    "inputs",
    "examples",
    "revision",
    "aliases",
)


class Prompt:
    """One question to a model: its text, the form of the answer, and defaults for its variables.

    `schema` describes the whole value (`json`) or each record (`jsonl`). Instead, `schema_input`
    may name a variable with the description of a table (see `row_schema`). `examples` are lines of
    model output, which templates show as `{{ examples }}`. Templates and schemas are compiled at
    first use, or by `check`. `origin` names the prompt in errors.
    """

    def __init__(
        self,
        template: str,
        response_type: str = "text",
        terms: Mapping[str, Json] | None = None,
        schema: Mapping[str, Json] | None = None,
        *,
        system: str = "",
        inputs: Sequence[str] | None = None,
        schema_input: str = "",
        examples: str = "",
        revision: str = "1",
        aliases: Sequence[str] = (),
        origin: str = "prompt",
    ) -> None:
        if response_type not in RESPONSE_TYPES:
            known = ", ".join(RESPONSE_TYPES)
            raise PromptError(f"{origin}: response-type: {response_type!r} is none of {known}")
        self.response_type = response_type
        self.examples = tuple(line for line in examples.split("\n") if line.strip())
        self.terms: dict[str, Json] = dict(terms or {})
        if self.examples:
            self.terms.setdefault(_EXAMPLES, "\n".join(self.examples))
        self._inputs = None if inputs is None else tuple(inputs)
        self.schema_input = schema_input
        self.revision = revision
        self.aliases = tuple(aliases)
        self.origin = origin
        self._user = Template(template, origin=f"{origin}: prompt")
        self._system = Template(system, origin=f"{origin}: system")
        self._source = schema
        self._schema: Schema | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The variables that callers must give: as declared, or else those that the templates use."""
        return tuple(sorted(self.variables())) if self._inputs is None else self._inputs

    @property
    def template(self) -> str:
        """The source of the user template."""
        return self._user.source

    @property
    def text(self) -> tuple[str, str]:
        """The sources of the system template and the user template."""
        return self._system.source, self._user.source

    @property
    def schema(self) -> Schema | None:
        """The compiled schema; `PromptError` if it is not valid."""
        if self._schema is None and self._source is not None:
            try:
                self._schema = compile_schema(self._source)
            except PromptError as error:
                raise PromptError(f"{self.origin}: schema: {error}") from error
        return self._schema

    def schema_for(self, variables: Mapping[str, object]) -> Schema | None:
        """The schema of a call: the prompt's own, or made from its `schema-input` variable."""
        if not self.schema_input:
            return self.schema
        if self.schema_input not in variables:
            raise PromptError(f"{self.origin}: the variable {self.schema_input!r} is missing")
        try:
            return compile_schema(row_schema(variables[self.schema_input]))
        except PromptError as error:
            raise PromptError(f"{self.origin}: {self.schema_input}: {error}") from error

    def render(
        self, variables: Mapping[str, object], terms: Mapping[str, Json] | None = None
    ) -> tuple[Message, ...]:
        """The messages to send; a variable overrides the prompt's term, which overrides `terms`."""
        values = {**(terms or {}), **self.terms, **variables}
        system = self._system.render(values).strip() if self._system.source else ""
        user = Message("user", self._user.render(values))
        return (Message("system", system), user) if system else (user,)

    def variables(self) -> frozenset[str]:
        """The variables that the templates use, except the prompt's own examples."""
        own = {_EXAMPLES} if self.examples else set()
        return (self._system.variables() | self._user.variables()) - own

    def check(self) -> None:
        """Raise `PromptError` with everything that is wrong with this prompt."""
        if problems := self.problems():
            raise PromptError("\n".join(problems))

    def problems(self) -> list[str]:
        """What is wrong: with templates, schema, declared and used variables, or example lines."""
        found: list[str] = []
        for look in (self._check_inputs, self._check_examples):
            try:
                found.extend(look())
            except PromptError as error:
                found.append(str(error))
        return found

    def check_against(self, base: Prompt) -> None:
        """Check that a replacement answers in the same form and uses only variables that callers give."""
        if self.response_type != base.response_type:
            raise PromptError(
                f"{self.origin}: response-type: must be {base.response_type!r}, as in {base.origin}"
            )
        given = base.variables() | set(base.inputs)
        unknown = sorted(self.variables() - given - set(self.terms))
        if unknown:
            raise PromptError(
                f"{self.origin}: inputs: nothing provides {', '.join(unknown)}; "
                f"this prompt is given {', '.join(sorted(given)) or 'no variables'}"
            )

    def _check_inputs(self) -> list[str]:
        used = self.variables() | ({self.schema_input} if self.schema_input else set())
        if self._inputs is None:
            return []
        unused = sorted(set(self._inputs) - used)
        undeclared = sorted(used - set(self._inputs) - set(self.terms))
        return [f"{self.origin}: inputs: {name!r} is declared but not used" for name in unused] + [
            f"{self.origin}: inputs: {name!r} is used but not declared" for name in undeclared
        ]

    def _check_examples(self) -> list[str]:
        schema = self.schema
        found = []
        for number, line in enumerate(self.examples, start=1):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                found.append(f"{self.origin}: examples: line {number} is not JSON: {error}")
                continue
            if schema is not None and (trouble := schema.error(value)):
                found.append(f"{self.origin}: examples: line {number}: {trouble}")
        return found


def prompt_from(settings: Mapping[str, Json], *, template: str, system: str, origin: str) -> Prompt:
    """A prompt from its settings; every key is checked."""
    settings = {key.replace("_", "-"): value for key, value in settings.items()}
    for key in settings:
        if key not in _KEYS and (near := difflib.get_close_matches(key, _KEYS, n=1, cutoff=0.75)):
            raise PromptError(f"{origin}: {key}: unknown key; did you mean {near[0]!r}?")
    terms = settings.get("terms") or {}
    if not isinstance(terms, dict):
        raise PromptError(f"{origin}: terms: must be a mapping of names to values")
    return Prompt(
        template,
        _text(settings, "response-type", origin) or "text",
        terms,
        _schema_source(settings, origin),
        system=system,
        inputs=_names(settings, "inputs", origin) if "inputs" in settings else None,
        schema_input=_text(settings, "schema-input", origin),
        examples=_text(settings, "examples", origin),
        revision=str(settings.get("revision", 1)),
        aliases=_names(settings, "aliases", origin),
        origin=origin,
    )


def json_object(value: object, origin: str) -> dict[str, Json]:
    """An object, or one written as a JSON string; `PromptError` names `origin` if it is neither."""
    value = decoded(value)
    if not isinstance(value, Mapping):
        raise PromptError(f"{origin}: must be an object, or an object as a JSON string")
    return {str(key): item for key, item in value.items()}


def decoded(value: object) -> object:
    """The value of a JSON string; any other value, or text that is not JSON, unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _schema_source(settings: Mapping[str, Json], origin: str) -> dict[str, Json] | None:
    """The schema, under either of its names; both are an error unless they are equal."""
    found = [
        json_object(settings[key], f"{origin}: {key}")
        for key in ("schema", "object-schema")
        if settings.get(key) not in (None, "")
    ]
    if len(found) == 2 and found[0] != found[1]:
        raise PromptError(f"{origin}: schema and object-schema differ; keep one of them")
    return found[0] if found else None


def _text(settings: Mapping[str, Json], key: str, origin: str) -> str:
    value = settings.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    raise PromptError(f"{origin}: {key}: must be a text, not {type(value).__name__}")


def _names(settings: Mapping[str, Json], key: str, origin: str) -> tuple[str, ...]:
    value = settings.get(key) or []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise PromptError(f"{origin}: {key}: must be a list of names")
    return tuple(str(name) for name in value)
