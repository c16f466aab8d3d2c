"""Prompts by id: loaded from folders or a configuration, rendered, asked, and answered."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, cast

from lightrag_jsonl.core.errors import LLMError, NotFoundError, PromptError
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.protocols import LLM
from lightrag_jsonl.core.types import ChunkState, Json, JsonlResult, Message, Record
from lightrag_jsonl.llm.json_values import read_json
from lightrag_jsonl.llm.prompt import Prompt, make_prompt, parsed_json, read_prompt
from lightrag_jsonl.llm.reader import parse_jsonl
from lightrag_jsonl.llm.schemas import Schema, row_schema

AskFunction: TypeAlias = Callable[[str, str], Awaitable[str]]


_PACKAGE = Path(__file__).resolve().parents[1]
_PARENTS = (_PACKAGE, _PACKAGE.parent)  # of prompt folders, in a wheel and in a checkout


class RecordList(list[Record]):
    """The valid records of a `jsonl` answer, and in `rejections` the refused lines.

    `truncated` if the answer broke off. `state` is "ok", "empty" (no line at all), "partial" (a
    part of the lines was lost) or "failed" (all lines were lost).
    """

    def __init__(self, result: JsonlResult) -> None:
        super().__init__(result.records)
        self.rejections = result.rejections
        self.truncated = result.truncated
        refused = [line for line in result.rejections if line.reason != "repaired"]
        self.state: ChunkState = "ok" if self else "empty"
        if refused or self.truncated:
            self.state = "partial" if self else "failed"


class PromptManager:
    """The prompts of an index, by id; `terms` are defaults for the variables of all prompts."""

    def __init__(
        self,
        prompts: Mapping[str, Prompt] | None = None,
        *,
        terms: Mapping[str, Json] | None = None,
    ) -> None:
        self._packaged_folder: Path | None = None
        self._terms: dict[str, Json] = dict(terms or {})
        for prompt in (prompts or {}).values():
            prompt.check()
        self._add(prompts or {})

    @classmethod
    def load(
        cls, language: str | Path = "en", overrides: str | Path | None = None
    ) -> "PromptManager":
        """A language's prompts (a code, or a folder), with the prompts of `overrides` on top.

        A user's folder is checked completely: `PromptError` names the file and the key. Packaged
        prompts are read when the first of them is needed.
        """
        folder = prompt_folder(language)
        if folder == Path(language):
            english = cls.load("en")
            prompts = _folder_prompts(folder)
            for id, prompt in prompts.items():
                prompt.check(english.find(id))
            manager = cls(prompts)
            if missing := sorted({*english.ids} - {*manager.ids}):
                raise PromptError(
                    f"{language}: lacks {', '.join(missing)}; a language needs every prompt (to "
                    "replace some prompts of a packaged language, give the folder as overrides)"
                )
        else:
            manager = cls()
            manager._packaged_folder = folder
        if overrides is not None:
            manager._add(_folder_prompts(Path(overrides)), bases=manager)
        return manager

    def load_config(self, config: Mapping[str, object], *, source: str = "config") -> None:
        """Add prompts from TrustGraph's layout or from `{id: {prompt, response-type, schema}}`.

        Values may be objects or JSON strings. Everything is checked before anything is added;
        `PromptError` names `source` and the key.
        """
        system = parsed_json(config.get("system", ""))
        prompts: dict[str, Prompt] = {}
        for id, key in _config_keys(config, source).items():
            origin = f"{source}: {key}"
            if key not in config:
                raise PromptError(f"{origin}: is in template-index but not in the configuration")
            settings = {"system": system, **_object(config[key], origin)}
            prompts[id] = make_prompt(settings, origin)
            prompts[id].check()
        terms = config.get("terms", config.get("global-terms", {}))
        self._terms.update(cast(dict[str, Json], _object(terms, f"{source}: terms")))
        self._add(prompts)

    @cached_property
    def _prompts(self) -> dict[str, Prompt]:
        """The prompts by id, at first those of the packaged folder."""
        folder = self._packaged_folder
        return {} if folder is None else _folder_prompts(folder)

    @cached_property
    def _aliases(self) -> dict[str, str]:
        """The ids of prompts by their aliases."""
        return {alias: id for id, prompt in self._prompts.items() for alias in prompt.aliases}

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all prompts, sorted, without aliases."""
        return tuple(sorted(self._prompts))

    @property
    def text(self) -> str:
        """The text of all prompts: equal for two sets with the same content."""
        texts = {
            id: [prompt.system, prompt.template, prompt.defaults]
            for id, prompt in self._prompts.items()
        }
        return json.dumps([self._terms, texts], sort_keys=True, default=str)

    def prompt(self, id: str) -> Prompt:
        """The prompt of an id or alias; `KeyError` for an unknown id lists similar names."""
        prompt = self.find(id)
        if prompt is None:
            import difflib

            near = difflib.get_close_matches(id, [*self._prompts, *self._aliases], 3, 0.5)
            near = near or [*self.ids]
            raise NotFoundError(f"no prompt {id!r}; there is: {', '.join(near)}")
        return prompt

    def terms(self, id: str) -> dict[str, Json]:
        """Defaults for a prompt's variables: the prompt's own, and the manager's for all prompts."""
        return {**self._terms, **self.prompt(id).defaults}

    def schema(self, id: str, variables: Mapping[str, object]) -> Schema | None:
        """The schema of the answer, if any: the prompt's, or made from the variable `schema-input`."""
        prompt = self.prompt(id)
        name = prompt.schema_input
        if not name:
            return prompt.checker
        try:
            return Schema(row_schema({**self.terms(id), **variables}[name]))
        except KeyError:
            raise PromptError(f"{prompt.origin}: the variable {name!r} is missing") from None
        except PromptError as error:
            raise PromptError(f"{prompt.origin}: {name}: {error}") from error

    def render(self, id: str, variables: Mapping[str, object] | None = None) -> tuple[Message, ...]:
        """The messages of a prompt; `PromptError` names a missing variable."""
        return self.prompt(id).render(variables or {}, self._terms)

    async def invoke(
        self, id: str, variables: Mapping[str, object], llm: LLM | AskFunction
    ) -> Json | RecordList:
        """Ask and read the answer: a text, one value (`json`) or the valid records (`jsonl`).

        Refused lines are logged as warnings, and kept in `RecordList.rejections`.
        `llm` is an `LLM`, or an async function of the system text and the prompt. An unreadable
        `json` answer raises `ResponseError`.
        """
        response_type = self.prompt(id).response_type
        schema = self.schema(id, variables)
        messages = self.render(id, variables)
        if hasattr(llm, "complete"):
            port = cast(LLM, llm)
            text = (await port.complete(messages, response_type=response_type)).text
        else:
            system = "".join(turn.content for turn in messages if turn.role == "system")
            text = await llm(system, messages[-1].content)
        if not isinstance(text, str):
            raise LLMError(f"the model gave {type(text).__name__}, not a text")
        if response_type == "json":
            return read_json(text, schema=schema)
        return text if response_type == "text" else RecordList(parse_jsonl(text, schema=schema))

    def parse_jsonl(self, text: str, *, prompt: str | None = None) -> list[Record]:
        """The whole records in a model's text, valid by the schema of `prompt`; never raises. Refused lines and
        an empty text are logged.
        """
        schema = None if prompt is None else self.prompt(prompt).checker
        return list(RecordList(parse_jsonl(text, schema=schema)))

    def _add(self, prompts: Mapping[str, Prompt], *, bases: "PromptManager | None" = None) -> None:
        """Add or replace prompts, also by an alias; each must be able to replace the base of the same id."""
        for id, prompt in prompts.items():
            if bases is not None:
                prompt.check(bases.find(id))
            id = self._aliases.get(id, id)
            self._prompts[id] = prompt
            self._aliases.update(dict.fromkeys(prompt.aliases, id))

    def find(self, id: str) -> Prompt | None:
        """The prompt of an id or alias; None for an unknown id."""
        return self._prompts.get(self._aliases.get(id, id))


def check_set(language: str | Path) -> list[str]:
    """The problems of a language's or a folder's prompts, each with file and key."""
    problems: list[str] = []
    try:
        packaged = PromptManager.load("en")
        for path in _prompt_paths(prompt_folder(language)):
            try:
                read_prompt(path).check(packaged.find(path.stem))
            except PromptError as error:
                problems.append(str(error))
    except PromptError as error:
        return [str(error)]
    return problems


def prompt_folder(language: str | Path) -> Path:
    """The folder of a language's prompts: a user's folder by its path, the Chinese prompts for "zh"
    and the like, and for any further language the English prompts with the language's name.
    """
    name = str(language)
    if name not in ("en", "zh") and Path(name or "?").is_dir():
        return Path(name)
    if not re.fullmatch(r"[^\W\d_]+([ -]\w+)*", name):
        raise PromptError(
            f"no prompts in {name!r}: a language is a code or a name, such as en, zh, fr or French, "
            "or the path of a folder with prompts (`lightrag-jsonl prompts check FOLDER`)"
        )
    packaged = (parent / f"prompts_{known_language(name)}" for parent in _PARENTS)
    return next(filter(Path.is_dir, packaged))


def _folder_prompts(folder: Path) -> dict[str, Prompt]:
    """The prompts of a folder by id, not yet checked."""
    return {path.stem: read_prompt(path) for path in _prompt_paths(folder)}


def _prompt_paths(folder: Path) -> list[Path]:
    paths = sorted(path for path in folder.glob("*.md") if path.stem.lower() != "readme")
    if not paths:
        raise PromptError(f"{folder}: holds no prompt file (*.md)")
    return paths


def _config_keys(config: Mapping[str, object], source: str) -> dict[str, str]:
    """The key of the configuration for each prompt's id."""
    prefix = "template."
    templates = {key.removeprefix(prefix): key for key in config if key.startswith(prefix)}
    index = parsed_json(config.get("template-index"))
    if index is None:
        ids = [key for key in config if key not in ("system", "terms", "global-terms")]
        return templates or dict(zip(ids, ids, strict=True))
    if not isinstance(index, list) or not all(isinstance(id, str) for id in index):
        raise PromptError(f"{source}: template-index: must be a list of prompt ids")
    return {id: f"{prefix}{id}" for id in index}


def _object(value: object, origin: str) -> dict[str, object]:
    """An object, or the object of a JSON text; `PromptError` names `origin` for any other value."""
    value = parsed_json(value)
    if not isinstance(value, Mapping):
        raise PromptError(f"{origin}: must be an object, or an object as a JSON string")
    return {str(key): item for key, item in value.items()}
