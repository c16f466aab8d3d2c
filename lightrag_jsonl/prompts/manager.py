"""Prompts by id: loaded from folders or a configuration, rendered, asked, and their answers read."""

from __future__ import annotations

import difflib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

from lightrag_jsonl.errors import LLMError, NotFoundError, PromptError
from lightrag_jsonl.jsonl import parse_jsonl
from lightrag_jsonl.prompts.config import config_prompts
from lightrag_jsonl.prompts.files import (
    file_prompt,
    folder_prompts,
    packaged_folder,
    prompt_folder,
    prompt_paths,
)
from lightrag_jsonl.prompts.prompt import Prompt
from lightrag_jsonl.prompts.replies import read_json
from lightrag_jsonl.protocols import LLM
from lightrag_jsonl.schemas import Schema
from lightrag_jsonl.types import Json, Message, Record, ResponseType

Ask: TypeAlias = Callable[[str, str], Awaitable[str]]
MISSPELT = 0.8  # the similarity of "anwser" and "answer"; a new name is less like any packaged one

log = logging.getLogger(__name__)


class PromptManager:
    """The prompts of one index, by id; `terms` are defaults for the variables of all prompts."""

    def __init__(
        self,
        prompts: Mapping[str, Prompt] | None = None,
        *,
        terms: Mapping[str, Json] | None = None,
    ) -> None:
        self._prompts: dict[str, Prompt] = {}
        self._aliases: dict[str, str] = {}
        self._terms: dict[str, Json] = dict(terms or {})
        for id, prompt in (prompts or {}).items():
            prompt.check()
            self._add(id, prompt)

    @classmethod
    def load(
        cls, language: str | Path = "en", overrides: str | Path | None = None
    ) -> PromptManager:
        """A language's prompts (a code, or a folder), with those of the folder `overrides` on top.

        A user's folder is checked completely: `PromptError` names the file and the key. A file in
        `overrides` whose name is similar to a prompt's causes a warning.
        """
        manager = cls()
        folder = packaged_folder(language)
        if folder is not None:
            for id, prompt in folder_prompts(folder).items():
                manager._add(id, prompt)
        else:
            manager._put(folder_prompts(prompt_folder(language)), cls.load("en"))
            manager._require_all(cls.load("en").ids, language)
        if overrides is not None:
            own = folder_prompts(Path(overrides))
            for id in own:
                if manager._find(id) is None and manager._near(id):
                    log.warning("%s: %s", overrides, manager._replaces_none(id))
            manager._put(own, manager)
        return manager

    def load_config(self, config: Mapping[str, object], *, source: str = "config") -> None:
        """Add prompts from TrustGraph's layout or from `{id: {prompt, response-type, schema}}`.

        Values may be objects or JSON strings. Everything is checked before anything is added;
        `PromptError` names `source` and the key.
        """
        prompts, terms = config_prompts(config, source)
        self._terms.update(terms)
        for id, prompt in prompts.items():
            self._add(id, prompt)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all prompts, sorted, without aliases."""
        return tuple(sorted(self._prompts))

    @property
    def text(self) -> str:
        """The text of all prompts: equal for two sets with the same content."""
        said = {id: [*prompt.text, prompt.terms] for id, prompt in self._prompts.items()}
        return json.dumps([self._terms, said], sort_keys=True, default=str)

    def prompt(self, id: str) -> Prompt:
        """The prompt with this id or alias; `KeyError` for an unknown one lists similar names."""
        prompt = self._find(id)
        if prompt is None:
            near = self._near(id, n=3, cutoff=0.5) or self.ids
            raise NotFoundError(f"no prompt {id!r}; there is: {', '.join(near)}")
        return prompt

    def terms(self, id: str) -> dict[str, Json]:
        """Defaults for a prompt's variables: its own, and those of all prompts."""
        return {**self._terms, **self.prompt(id).terms}

    def schema(self, id: str, variables: Mapping[str, object]) -> Schema | None:
        """The schema of the answer, if there is one: the prompt's, or one given in a variable."""
        return self.prompt(id).schema_for({**self.terms(id), **variables})

    def render(self, id: str, variables: Mapping[str, object] | None = None) -> tuple[Message, ...]:
        """The messages of a prompt; `PromptError` names a missing variable."""
        return self.prompt(id).render(variables or {}, self._terms)

    async def invoke(
        self, id: str, variables: Mapping[str, object], llm: LLM | Ask
    ) -> Json | list[Record]:
        """Ask and read the answer: a text (`text`), one value (`json`) or the valid records (`jsonl`).

        `llm` is an `LLM`, or an async function of the system text and the prompt. An unreadable
        `json` answer raises `ResponseError`; in a `jsonl` answer bad lines are left out.
        """
        prompt = self.prompt(id)
        schema = self.schema(id, variables)
        messages = prompt.render(variables, self._terms)
        text = await _asked(llm, messages, prompt.response_type)
        if prompt.response_type == "json":
            return read_json(text, schema=schema)
        if prompt.response_type == "jsonl":
            return list(parse_jsonl(text, schema=schema).records)
        return text

    def parse_json(
        self,
        text: str,
        *,
        prompt: str | None = None,
        normalize: Callable[[Json], Json] | None = None,
    ) -> Json:
        """The JSON value in a model's text, checked against the schema of `prompt` if that is given.

        `normalize` is applied before the schema. `ResponseError` shows the text, or the path of the
        fault.
        """
        schema = None if prompt is None else self.prompt(prompt).schema
        return read_json(text, schema=schema, normalize=normalize)

    def parse_jsonl(self, text: str, *, prompt: str | None = None) -> list[Record]:
        """The whole records in a model's text that fit the schema of `prompt`; never raises."""
        schema = None if prompt is None else self.prompt(prompt).schema
        return list(parse_jsonl(text, schema=schema).records)

    def _add(self, id: str, prompt: Prompt) -> None:
        """Add or replace a prompt; one given under an alias replaces the prompt behind it."""
        id = self._aliases.get(id, id)
        self._prompts[id] = prompt
        self._aliases.update(dict.fromkeys(prompt.aliases, id))

    def _put(self, prompts: Mapping[str, Prompt], bases: PromptManager) -> None:
        """Add a user's prompts, each checked on its own and against the prompt that it replaces."""
        for id, prompt in prompts.items():
            prompt.check()
            base = bases._find(id)
            if base is not None:
                prompt.check_against(base)
            self._add(id, prompt)

    def _find(self, id: str) -> Prompt | None:
        return self._prompts.get(id) or self._prompts.get(self._aliases.get(id, id))

    def _near(self, id: str, *, n: int = 1, cutoff: float = MISSPELT) -> list[str]:
        known = [*self.ids, *sorted(self._aliases)]
        return difflib.get_close_matches(id, known, n=n, cutoff=cutoff)

    def _replaces_none(self, id: str) -> str:
        near = "".join(f"; near: {name}" for name in self._near(id))
        return f"{id}.md: no packaged prompt of this name{near} (only extract can ask with it)"

    def _require_all(self, ids: Iterable[str], language: str | Path) -> None:
        """Check that a user's language has every prompt that the packaged ones have."""
        missing = [id for id in ids if id not in self._prompts]
        if missing:
            raise PromptError(
                f"{language}: lacks {', '.join(missing)}; a language needs every prompt "
                "(to replace some prompts of a packaged language, give the folder as overrides)"
            )


def check_set(folder: str | Path) -> list[str]:
    """What is wrong with the prompt files of a folder, each problem with its file and key."""
    paths = prompt_paths(Path(folder))
    if not paths:
        return [f"{folder}: holds no prompt file (*.md)"]
    problems: list[str] = []
    packaged = PromptManager.load("en")
    for path in paths:
        try:
            prompt = file_prompt(path)
            problems.extend(prompt.problems())
            base = packaged._find(path.stem)
            if base is not None:
                prompt.check_against(base)
        except PromptError as error:
            problems.append(str(error))
    return list(dict.fromkeys(problems))


def strangers(folder: str | Path) -> list[str]:
    """Remarks on the prompt files of a folder that replace no packaged prompt."""
    packaged = PromptManager.load("en")
    ids = [path.stem for path in prompt_paths(Path(folder))]
    return [packaged._replaces_none(id) for id in ids if packaged._find(id) is None]


async def _asked(llm: LLM | Ask, messages: Sequence[Message], response_type: ResponseType) -> str:
    """The model's text, from a port or from a plain function of (system, prompt)."""
    if hasattr(llm, "complete"):
        port = cast(LLM, llm)
        text = (await port.complete(messages, response_type=response_type)).text
    else:
        system = "".join(message.content for message in messages if message.role == "system")
        text = await llm(system, messages[-1].content)
    if not isinstance(text, str):
        raise LLMError(f"the model gave {type(text).__name__}, not a text")
    return text
