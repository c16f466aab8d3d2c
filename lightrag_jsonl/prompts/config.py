"""Prompts from a configuration: TrustGraph's layout, or `{id: {prompt, response-type, schema}}`."""

from __future__ import annotations

from collections.abc import Mapping

from lightrag_jsonl.errors import PromptError
from lightrag_jsonl.prompts.prompt import Prompt, decoded, json_object, prompt_from
from lightrag_jsonl.types import Json


def config_prompts(
    config: Mapping[str, object], source: str
) -> tuple[dict[str, Prompt], dict[str, Json]]:
    """The prompts of a configuration, each checked, and its global terms.

    Values may be objects or JSON strings. `PromptError` names `source` and the key.
    """
    system = _config_text(config.get("system", ""), f"{source}: system")
    prompts = {}
    for id, key in _config_keys(config, source).items():
        origin = f"{source}: {key}"
        if key not in config:
            raise PromptError(f"{origin}: is in template-index but not in the configuration")
        settings = json_object(config[key], origin)
        template = settings.get("prompt")
        if not isinstance(template, str):
            raise PromptError(f"{origin}: prompt: must be a text")
        own = settings.get("system", system)
        if not isinstance(own, str):
            raise PromptError(f"{origin}: system: must be a text")
        prompts[id] = prompt_from(settings, template=template, system=own, origin=origin)
        prompts[id].check()
    return prompts, _config_terms(config, source)


def _config_keys(config: Mapping[str, object], source: str) -> dict[str, str]:
    """Each prompt's id, and the key of the configuration that holds it."""
    templates = {key[9:]: key for key in config if key.startswith("template.")}
    if "template-index" not in config and not templates:
        return {key: key for key in config if key not in ("system", "terms", "global-terms")}
    index = decoded(config.get("template-index"))
    if index is None:
        return templates
    if not isinstance(index, list) or not all(isinstance(id, str) for id in index):
        raise PromptError(f"{source}: template-index: must be a list of prompt ids")
    return {id: f"template.{id}" for id in index}


def _config_terms(config: Mapping[str, object], source: str) -> dict[str, Json]:
    for key in ("terms", "global-terms"):
        if key in config:
            return json_object(config[key], f"{source}: {key}")
    return {}


def _config_text(value: object, origin: str) -> str:
    """A text, plain or (as in TrustGraph's files) as a JSON string."""
    text = decoded(value)
    if isinstance(text, str):
        return text
    if isinstance(value, str):
        return value
    raise PromptError(f"{origin}: must be a text")
