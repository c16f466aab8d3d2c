"""A prompt: templates and the form of the answer, from settings or a file, with checks of both."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import msgspec

from lightrag_jsonl.core.errors import PromptError
from lightrag_jsonl.core.types import Json, Message, ResponseType
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.text.patterns import pattern_of

if TYPE_CHECKING:
    import jinja2


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
    """A question to a model: the text, the form of the answer, and defaults for the variables.

    Templates are Jinja's, rendered in a sandbox. Lists and mappings are written as JSON, a
    conversation as lines "role: content"; `{{ values | joined(", ") }}` joins a list,
    `{{ history | turns("Q: ", "A: ") }}` writes "Q: " and "A: " for the roles of a conversation.

    - `schema` describes the whole value (`json`) or each record (`jsonl`). Instead, `schema_input`
      may name a variable with the description of a table (see `row_schema`).
    - `declared_inputs`: the variables required from callers; by default all in the templates.
    - `examples`: lines of model output, shown as `{{ examples }}`.
    - `origin`: the name of the prompt in errors.
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
        """The variables required from callers: as declared, or else all in the templates."""
        declared = self.declared_inputs
        return tuple(sorted(self.variables) if declared is None else declared)

    @property
    def example_lines(self) -> list[str]:
        """The lines of model output in the prompt."""
        return [line for line in self.examples.split("\n") if line.strip()]

    @cached_property
    def defaults(self) -> dict[str, Json]:
        """Values of variables for callers without their own: the examples and the terms."""
        examples: dict[str, Json] = {}
        if lines := self.example_lines:
            examples["examples"] = "\n".join(lines)
        return {**examples, **(self.terms or {})}

    @property
    def variables(self) -> frozenset[str]:
        """The variables in the templates, except the prompt's own examples."""
        from jinja2.meta import find_undeclared_variables

        used: set[str] = set()
        for source in (self.system, self.template):
            _compile(source, self.origin)  # its error names the prompt
            used |= find_undeclared_variables(_environment().parse(source))
        return frozenset(used - ({"examples"} if self.examples else set()))

    def render(
        self, variables: Mapping[str, object], terms: Mapping[str, Json] | None = None
    ) -> tuple[Message, ...]:
        """The messages to send; variables override the prompt's terms, and both override `terms`."""
        values = {**(terms or {}), **self.defaults, **variables}
        system = _render(self.system, values, self.origin).strip() if self.system else ""
        user = Message("user", _render(self.template, values, self.origin))
        return (Message("system", system), user) if system else (user,)

    def check(self, base: "Prompt | None" = None) -> None:
        """Raise `PromptError` with all problems, or if the prompt cannot replace the prompt `base`."""
        problems = [*self._input_problems(), *self._example_problems()]
        if base is not None and not problems:
            problems = list(self._differences(base))
        if problems:
            raise PromptError("\n".join(f"{self.origin}: {problem}" for problem in problems))

    def _input_problems(self) -> Iterator[str]:
        used = self.variables | ({self.schema_input} - {""})
        inputs = used if self.declared_inputs is None else set(self.declared_inputs)
        for name in sorted(inputs - used):
            yield f"inputs: {name!r} is declared but not used"
        for name in sorted(used - inputs - set(self.defaults)):
            yield f"inputs: {name!r} is used but not declared"

    def _example_problems(self) -> Iterator[str]:
        checker = self.checker
        for number, line in enumerate(self.example_lines, start=1):
            try:
                value = json.loads(line)
                fault = checker.error(value) if checker else None
            except ValueError as error:
                fault = f"invalid JSON: {error}"
            if fault:
                yield f"examples: line {number}: {fault}"

    def _differences(self, base: "Prompt") -> Iterator[str]:
        """The reasons why the prompt cannot replace `base`."""
        if self.response_type != base.response_type:
            yield f"response-type: must be {base.response_type!r}, as in {base.origin}"
            return
        provided = base.variables | set(base.inputs)
        if missing := sorted(self.variables - provided - set(self.defaults)):
            names = ", ".join(sorted(provided)) or "no variables"
            yield f"inputs: nothing provides {', '.join(missing)}; this prompt is given {names}"


# ── settings, as configurations and files hold them ─────────────────────────────


def make_prompt(settings: Mapping[str, object], origin: str) -> Prompt:
    """A prompt from its settings; `PromptError` names `origin` and the wrong key."""
    settings = {str(key).replace("_", "-"): value for key, value in settings.items()}
    schema = parsed_json(settings.pop("schema", None))
    object_schema = parsed_json(settings.pop("object-schema", None))
    if schema and object_schema and schema != object_schema:
        raise PromptError(f"{origin}: schema and object-schema differ; keep one of them")
    settings["schema"] = schema or object_schema or None
    settings["origin"] = origin
    try:
        return msgspec.convert(settings, Prompt)
    except msgspec.ValidationError as error:
        raise PromptError(f"{origin}: {error}") from error


def parsed_json(value: object) -> object:
    """The value of a JSON text; another value, or a text in another format, unchanged."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


_PROMPT_FILE = pattern_of(
    r"\s*---[ \t]*\n(?P<settings>.*?)^---[ \t]*\n(?P<body>.*)", re.DOTALL | re.MULTILINE
)
_PART_HEADING = pattern_of(r"^# (system|user)[ \t]*\n", re.MULTILINE)


def read_prompt(path: Path) -> Prompt:
    """The prompt of a Markdown file with YAML front matter, not yet checked.

    `PromptError` for a file in another form. Only `# system` and `# user` begin a part; further
    headings belong to the part around. An unchanged file is parsed once, and each prompt can be changed
    without the others.
    """
    if path.exists() and not path.is_file():  # a pipe would be read for ever
        raise PromptError(f"{path}: is not a regular file")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise PromptError(f"{path}: cannot be read: {error}") from error
    settings = _parsed_settings(text, str(path))
    return make_prompt(deepcopy(settings), str(path))


@lru_cache(256)
def _parsed_settings(text: str, origin: str) -> dict[str, Any]:
    """The front matter and the parts of a file, as settings of a prompt."""
    import yaml

    file = _PROMPT_FILE.match(text + "\n")
    if file is None:
        raise PromptError(f"{origin}: must begin with YAML front matter between two lines of ---")
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        settings = yaml.load(file["settings"], Loader=loader)
    except (yaml.YAMLError, ValueError, IndexError, RecursionError) as error:
        raise PromptError(f"{origin}: the front matter cannot be read: {error}") from error
    if not isinstance(settings, dict) or {"prompt", "system"} & settings.keys():
        raise PromptError(
            f"{origin}: front matter: must hold `key: value` lines; `prompt` and `system` are parts"
        )
    before, *parts = _PART_HEADING.split(file["body"])
    if before.strip() or parts[::2] not in (["user"], ["system", "user"]):
        raise PromptError(
            f"{origin}: needs one part `# user`, before it at most one `# system`; other text before "
            "these belongs to no part"
        )
    texts = [text.strip() for text in parts[1::2]]
    return {**settings, "prompt": texts.pop(), "system": "".join(texts)}


# ── templates ───────────────────────────────────────────────────────────────────


def _render(source: str, values: Mapping[str, object], origin: str) -> str:
    template = _compile(source, origin)
    try:
        return template.render(values)
    except Exception as error:  # whatever the user's own template does
        import jinja2

        name, missing, _ = str(error).partition("' is undefined")
        problem = f"cannot be rendered: {error}"
        if isinstance(error, jinja2.UndefinedError) and missing:
            names = ", ".join(sorted(values)) or "none"
            problem = f"the variable {name[1:]!r} is missing (given: {names})"
        raise PromptError(f"{origin}: {problem}") from error


@lru_cache(256)
def _compile(source: str, origin: str) -> "jinja2.Template":
    import jinja2

    try:
        return _environment().from_string(source)
    except (jinja2.TemplateError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line} of the part)" if line else ""
        raise PromptError(f"{origin}: not a template{where}: {error}") from error


@cache
def _environment() -> "jinja2.Environment":
    """The sandbox shared by all templates; it is never changed."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, finalize=_prompt_text
    )
    environment.globals = {"range": environment.globals["range"]}
    environment.filters.update(joined=_joined_values, tojson=_as_json, turns=_turn_lines)
    return environment


def _prompt_text(value: object) -> object:
    """The form of a value in a prompt: a conversation as lines, lists and mappings as JSON."""
    if _is_conversation(value):
        return "\n".join(f"{turn.role}: {turn.content}" for turn in value)
    if isinstance(value, Mapping | list | tuple):
        return _as_json(value)
    return "" if value is None else value


def _is_conversation(value: object) -> TypeGuard[Sequence[Message]]:
    turns = value if isinstance(value, list | tuple) else ()
    return len(turns) > 0 and all(isinstance(turn, Message) for turn in turns)


def _joined_values(values: Iterable[object], separator: str = ", ") -> str:
    """The values in one text; all but texts as JSON."""
    if isinstance(values, str):
        return values
    texts = [value if isinstance(value, str) else _as_json(value) for value in values]
    return separator.join(texts)


def _turn_lines(value: object, user: str, assistant: str) -> object:
    """A conversation as lines that begin with the role in words; a text is unchanged."""
    if not isinstance(value, list | tuple):
        return value
    roles = {"user": user, "assistant": assistant}
    return "\n".join([f"{roles.get(turn.role, turn.role)}{turn.content}" for turn in value])


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
