"""One prompt: its templates and the form of the answer, from settings or a file, with checks of both."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
import jinja2.sandbox
import msgspec
import yaml

from lightrag_jsonl.core.errors import PromptError
from lightrag_jsonl.core.types import Json, Message, ResponseType
from lightrag_jsonl.llm.schemas import Schema


class Prompt(
    msgspec.Struct,
    forbid_unknown_fields=True,
    dict=True,
    rename={
        "template": "prompt",
        "response_type": "response-type",
        "schema_input": "schema-input",
        "declared_inputs": "inputs",
    },
):
    """One question to a model: its text, the form of the answer, and defaults for its variables.

    Templates are Jinja's, rendered in a sandbox. Lists and mappings are written as JSON, a
    conversation as lines "role: content"; `{{ values | joined(", ") }}` joins a list,
    `{{ history | turns("Q: ", "A: ") }}` writes the roles of a conversation in these words. `schema`
    describes the whole value (`json`) or each record (`jsonl`); instead, `schema_input` may name a
    variable with the description of a table (see `row_schema`). `declared_inputs` are the variables
    that callers must give, if not simply those that the templates use. `examples` are lines of model
    output, shown as `{{ examples }}`. `origin` names the prompt in errors.
    """

    template: str
    response_type: ResponseType = "text"
    terms: dict[str, Any] | None = None
    schema: dict[str, Any] | None = None
    system: str = ""
    declared_inputs: Sequence[str] | None = None
    schema_input: str = ""
    examples: str = ""
    revision: str | int | float = 1
    aliases: Sequence[str] = ()
    origin: str = "prompt"

    def __post_init__(self) -> None:
        self.revision = str(self.revision)

    @cached_property
    def checker(self) -> Schema | None:
        """The compiled schema."""
        try:
            return None if self.schema is None else Schema(self.schema)
        except PromptError as error:
            raise PromptError(f"{self.origin}: schema: {error}") from error

    @property
    def inputs(self) -> tuple[str, ...]:
        """The variables that callers must give: as declared, or else those that the templates use."""
        declared = self.declared_inputs
        return tuple(sorted(self.variables) if declared is None else declared)

    @property
    def example_lines(self) -> list[str]:
        """The lines of model output that it shows."""
        return [line for line in self.examples.split("\n") if line.strip()]

    @cached_property
    def defaults(self) -> dict[str, Json]:
        """What its variables are where no caller gives them: its terms, and its examples."""
        lines = self.example_lines
        return {**({"examples": "\n".join(lines)} if lines else {}), **(self.terms or {})}

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the templates use, except the prompt's own examples."""
        used: set[str] = set()
        for source in (self.system, self.template):
            _compile(source, self.origin)  # its error names the prompt
            used |= jinja2.meta.find_undeclared_variables(_environment().parse(source))
        return frozenset(used - ({"examples"} if self.examples else set()))

    def render(
        self, variables: Mapping[str, object], terms: Mapping[str, Json] | None = None
    ) -> tuple[Message, ...]:
        """The messages to send; a variable overrides the prompt's term, which overrides `terms`."""
        values = {**(terms or {}), **self.defaults, **variables}
        system = _render(self.system, values, self.origin).strip() if self.system else ""
        user = Message("user", _render(self.template, values, self.origin))
        return (Message("system", system), user) if system else (user,)

    def check(self, base: "Prompt | None" = None) -> None:
        """Raise `PromptError` with all that is wrong, or if it cannot replace the prompt `base`."""
        problems = list(self._problems()) or ([] if base is None else self._differences(base))
        if problems:
            raise PromptError("\n".join(f"{self.origin}: {problem}" for problem in problems))

    def _problems(self) -> Iterator[str]:
        """What is wrong with declared and used variables, and with example lines."""
        used, checker = self.variables | ({self.schema_input} - {""}), self.checker
        inputs = used if self.declared_inputs is None else set(self.declared_inputs)
        yield from [f"inputs: {name!r} is declared but not used" for name in sorted(inputs - used)]
        missing = sorted(used - inputs - set(self.defaults))
        yield from [f"inputs: {name!r} is used but not declared" for name in missing]
        for number, line in enumerate(self.example_lines, start=1):
            try:
                value = json.loads(line)
                fault = checker.error(value) if checker else None
            except ValueError as error:
                fault = f"invalid JSON: {error}"
            if fault:
                yield f"examples: line {number}: {fault}"

    def _differences(self, base: "Prompt") -> list[str]:
        if self.response_type != base.response_type:
            return [f"response-type: must be {base.response_type!r}, as in {base.origin}"]
        given = base.variables | set(base.inputs)
        unknown = sorted(self.variables - given - set(self.defaults))
        names = ", ".join(sorted(given)) or "no variables"
        problem = f"inputs: nothing provides {', '.join(unknown)}; this prompt is given {names}"
        return [problem] if unknown else []


# ── settings, as configurations and files hold them ─────────────────────────────


def make_prompt(settings: Mapping[str, object], origin: str) -> Prompt:
    """A prompt from its settings; `PromptError` names `origin` and the key that is wrong."""
    settings = {str(key).replace("_", "-"): value for key, value in settings.items()}
    schema, other = (decoded(settings.pop(key, None)) for key in ("schema", "object-schema"))
    if schema and other and schema != other:
        raise PromptError(f"{origin}: schema and object-schema differ; keep one of them")
    settings |= {"schema": schema or other or None, "origin": origin}
    try:
        return msgspec.convert(settings, Prompt)
    except msgspec.ValidationError as error:
        raise PromptError(f"{origin}: {error}") from error


def decoded(value: object) -> object:
    """The value of a JSON string; any other value, or text that is not JSON, unchanged."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


_FILE = re.compile(
    r"\s*---[ \t]*\n(?P<settings>.*?)^---[ \t]*\n(?P<body>.*)", re.DOTALL | re.MULTILINE
)
_HEADING = re.compile(r"^# (system|user)[ \t]*\n", re.MULTILINE)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_prompt(path: Path) -> Prompt:
    """The prompt of a Markdown file with YAML front matter, not yet checked.

    `PromptError` if the file has another form. Only `# system` and `# user` begin a part; other
    headings belong to the part they are in.
    """
    if path.exists() and not path.is_file():  # a pipe would be read for ever
        raise PromptError(f"{path}: is not a regular file")
    try:
        match = _FILE.match(path.read_text(encoding="utf-8-sig") + "\n")
        if match is None:
            raise PromptError(f"{path}: must begin with YAML front matter between two lines of ---")
        settings = yaml.load(match["settings"], Loader=_LOADER)
    except (OSError, yaml.YAMLError, ValueError, IndexError, RecursionError) as error:
        raise PromptError(f"{path}: the front matter cannot be read: {error}") from error
    if not isinstance(settings, dict) or {"prompt", "system"} & settings.keys():
        raise PromptError(
            f"{path}: front matter: must hold `key: value` lines; `prompt` and `system` are parts"
        )
    before, *parts = _HEADING.split(match["body"])
    if before.strip() or parts[::2] not in (["user"], ["system", "user"]):
        raise PromptError(
            f"{path}: needs one part `# user`, before it at most one `# system`; other text before "
            "these belongs to no part"
        )
    texts = [text.strip() for text in parts[1::2]]
    return make_prompt({**settings, "prompt": texts.pop(), "system": "".join(texts)}, str(path))


# ── templates ───────────────────────────────────────────────────────────────────


def _render(source: str, values: Mapping[str, object], origin: str) -> str:
    template = _compile(source, origin)
    try:
        return template.render(values)
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
    environment.filters.update(joined=_joined, tojson=_json, turns=_turns)
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


def _turns(value: object, user: str, assistant: str) -> object:
    """A conversation as lines that begin with the role in words; a text as it is."""
    if not isinstance(value, list | tuple):
        return value
    words = {"user": user, "assistant": assistant}
    return "\n".join([f"{words.get(one.role, one.role)}{one.content}" for one in value])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
