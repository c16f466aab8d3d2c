"""The settings of an index that the page changes: the model, after a test, and the language."""

import asyncio
from dataclasses import replace
from typing import Annotated, Final

from msgspec import Meta, Struct
from starlette.exceptions import HTTPException

from lightrag_jsonl.core.errors import ConfigError, LLMError
from lightrag_jsonl.core.languages import Language, usual_language
from lightrag_jsonl.core.modes import DEFAULT_MODE, MODES, Mode
from lightrag_jsonl.core.protocols import LLM
from lightrag_jsonl.core.types import Message
from lightrag_jsonl.llm.prompt_manager import PromptManager
from lightrag_jsonl.providers.addresses import remember_addresses
from lightrag_jsonl.providers.connection import checked_url, gets_no_key
from lightrag_jsonl.providers.model_names import NO_MODEL, make_llm
from lightrag_jsonl.providers.settings import MAY_HOLD_SECRETS, Setup, endpoint
from lightrag_jsonl.rag.opening import given_addresses
from lightrag_jsonl.rag.settings import is_built
from lightrag_jsonl.readers.formats import FILE_FORMATS
from lightrag_jsonl.server.routing import Call
from lightrag_jsonl.storage.store import read, write

TEST_SECONDS: Final = 90  # a local server may have to load the model
TEST_TOKENS: Final = 256  # a model that thinks first needs some
NO_KEY: Final = "no-key"  # in place of the environment's key, which no request sends anywhere
NOT_PERSONAL: Final = (
    "the model of a server with a token or another host name is set where the server is started: "
    "lightrag-jsonl serve --llm NAME --base-url URL"
)
LANGUAGE_IS_FIXED: Final = "the language of an index is fixed by its first document"

ModelName = Annotated[str, Meta(min_length=1, max_length=200)]
ConnectionText = Annotated[str, Meta(max_length=2_000)]


class SettingsBody(Struct):
    """The model that answers ("none" without a model), the address of the server, and the language.

    `may_set_model` and `may_set_language` say whether a request may change these settings now. `modes`
    are the modes of questions, the default first, and `formats` the formats of files that are read:
    each with its name by language.
    """

    llm: str
    base_url: str
    language: str
    embedder: str
    may_set_model: bool
    may_set_language: bool
    modes: dict[Mode, dict[Language, str]]
    formats: list[dict[Language, str]]


class NewSettings(Struct, forbid_unknown_fields=True):
    """A model by name ("none" for no model) with address and key, or the language of the texts."""

    llm: ModelName | None = None
    base_url: ConnectionText = ""
    api_key: ConnectionText = ""
    language: Annotated[str, Meta(min_length=2, max_length=40)] | None = None


async def get_settings(call: Call) -> SettingsBody:
    """The model that answers, and the settings that can be changed."""
    engine = call.index.rag.engine
    recorded = await read(engine.store, lambda view: view.settings())
    is_writable = not engine.store.read_only
    return SettingsBody(
        llm=engine.llm.name if engine.llm is not None else NO_MODEL,
        base_url=str(getattr(engine.llm, "url", "")),
        language=engine.language,
        embedder=engine.embedder.name,
        may_set_model=call.indexes.is_personal and is_writable,
        may_set_language=is_writable and not is_built(recorded),
        modes={mode: _by_language(MODES[mode].names) for mode in (DEFAULT_MODE, *MODES)},
        formats=[_by_language(format.names) for format in FILE_FORMATS],
    )


def _by_language(names: tuple[str, str]) -> dict[Language, str]:
    english, chinese = names
    return {"en": english, "zh": chinese}


async def change_settings(call: Call) -> SettingsBody:
    """Set the model, after a test answer, or the language of an index without documents.

    A key stays in the memory of the server, and gets into no file.
    """
    body: NewSettings = call.body
    if body.language is not None:
        await _set_language(call, body.language)
    if body.llm is not None:
        await _set_model(call, body.llm, base_url=body.base_url, api_key=body.api_key)
    return await get_settings(call)


async def _set_language(call: Call, language: str) -> None:
    engine = call.index.rag.engine
    recorded = await read(engine.store, lambda view: view.settings())
    language = usual_language(language, engine.language)
    if engine.language == language:
        return
    if is_built(recorded):
        raise ConfigError(LANGUAGE_IS_FIXED)
    PromptManager.load(language, None)  # `PromptError` for a language without prompts
    await write(engine.store, lambda writer: writer.put_settings({"language": language}))
    engine.use_language(language)
    call.index.jobs.setup = replace(call.index.jobs.setup, language=language)


async def _set_model(call: Call, name: str, *, base_url: str, api_key: str) -> None:
    if not call.indexes.is_personal:
        raise HTTPException(403, NOT_PERSONAL)
    index = call.index
    setup = _setup_of(call, name, base_url=base_url.strip(), api_key=api_key.strip())
    llm = make_llm(name, setup)
    if llm is not None:
        await _answer_once(llm, setup)
    index.rag.engine.use_llm(llm)
    if _needs_no_secret(setup):
        await index.rag.engine.record_models()
        remember_addresses(index.address, given_addresses(setup))
    index.jobs.setup = setup


def _setup_of(call: Call, name: str, *, base_url: str, api_key: str) -> Setup:
    """The setup with a model from a request. `ConfigError` if a secret of the user's settings would
    go to an address from the request.
    """
    setup = replace(
        call.index.jobs.setup,
        working_dir=call.index.address,
        llm=name,
        models={},
        base_url=checked_url(base_url) if base_url else None,
        api_key=api_key or (NO_KEY if base_url else None),
    )
    secrets = sorted({*MAY_HOLD_SECRETS} & endpoint(setup).settings.keys())
    if base_url and secrets:
        raise ConfigError(
            f"your settings have {', '.join(secrets)}, which would be sent to {base_url}: set base_url beside them"
        )
    return setup


def _needs_no_secret(setup: Setup) -> bool:
    """Whether the model answers after the next start as well, without a key from the page."""
    if setup.base_url is None:
        return setup.api_key is None
    without_key = endpoint(replace(setup, api_key=None))
    return setup.api_key == NO_KEY and gets_no_key(setup.base_url) and without_key.api_key is None


async def _answer_once(llm: LLM, setup: Setup) -> None:
    """Have the model answer a short request; `LLMError` in words for a failure."""
    try:
        async with asyncio.timeout(TEST_SECONDS):
            await llm.complete([Message("user", "Reply with: ok")], max_tokens=TEST_TOKENS)
    except TimeoutError as error:
        address = endpoint(setup).url or "its server"
        raise LLMError(
            f"{llm.name} at {address} has not answered within {TEST_SECONDS} seconds"
        ) from error
